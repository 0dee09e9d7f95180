"""The programs of examples/ compile without a warning, stay short, and say what is wrong.

    examples_test.py C_COMPILER LIBRARY

What they compute is checked on a GPU by bindings/python/tests/test_gpu.py."""

import json
import os
import re
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COMPILER, LIBRARY = sys.argv[1], Path(sys.argv[2])
SOURCE = ROOT / "examples/c/mlp_block.c"


class MlpBlock(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.program = Path(cls.folder.name) / "mlp_block"
        done = subprocess.run([COMPILER, "-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'include'}", SOURCE,
                               LIBRARY, "-ldl", f"-Wl,-rpath,{LIBRARY.parent}", "-o", cls.program],
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise AssertionError(done.stderr)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def run_on(self, content, *arguments):
        path = Path(self.folder.name) / "model.safetensors"
        path.write_bytes(content)
        done = subprocess.run([self.program, path, *arguments], capture_output=True, text=True, check=False,
                              env=os.environ | {"GEMVJIT_LIBCUDA": "/none", "GEMVJIT_CONFIG": "none"})
        return done.returncode, done.stderr

    def test_it_is_short(self):
        self.assertLess(SOURCE.read_text().count("\n"), 200)

    def test_wrong_use_and_wrong_files_are_told(self):
        self.assertEqual(self.run_on(b"")[0], 1)
        for content in (b"", b"1234567", struct.pack("<Q", 1 << 60) + b"{}"):
            code, error = self.run_on(content, "p", "1", "x", "y")
            self.assertEqual(code, 1)
            self.assertIn("is no safetensors file", error)
        header = json.dumps({"p.gate_proj.weight": {"dtype": "U8", "shape": [8, 8], "data_offsets": [0, 64]}}).encode()
        code, error = self.run_on(struct.pack("<Q", len(header)) + header, "p", "1", "x", "y")
        self.assertEqual(code, 1, error)  # without a driver it ends there, with one at the file that is too short
        self.assertRegex(error, "libcuda|outside of its file")


class Guide(unittest.TestCase):
    """The C of docs/integrating.md, as one file, since later parts use earlier ones."""

    def build(self, text):
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / "guide.c"
            source.write_text(text)
            done = subprocess.run([COMPILER, "-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'include'}",
                                   "-shared", "-fPIC", "-Wl,--no-undefined", "-o", f"{folder}/guide.so", source, LIBRARY],
                                  capture_output=True, text=True, check=False)
            return done.stderr

    def test_its_code_compiles(self):
        page = (ROOT / "docs/integrating.md").read_text(encoding="utf-8")
        parts = re.findall(r"<!-- example: compiled -->\n```c\n(.*?)```", page, re.DOTALL)
        self.assertEqual(len(parts), 2)
        self.assertEqual(self.build("".join(parts)), "")
        self.assertIn("no_such", self.build("".join(parts).replace("scale_segments =", "no_such =")))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
