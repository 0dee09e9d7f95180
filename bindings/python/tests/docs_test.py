"""The examples of docs/python.md: the first runs here, the others are compiled and may only use names that exist;
test_gpu.py runs them. The table of functions has the signatures of the code.

    docs_test.py LIBRARY
"""

import ast
import inspect
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "bindings" / "python"))
sys.dont_write_bytecode = True
import gemvjit  # noqa: E402
from gemvjit import _errors  # noqa: E402

PAGE = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")


def examples(marker, page=PAGE):
    return re.findall(rf"<!-- example: {marker}[^>]*-->\n```python\n(.*?)```", page, re.DOTALL)


def unknown_names(code):
    """gemvjit.X that the package has not; of gemvjit.torch the file is read, since torch may be missing."""
    in_torch = re.search(r"__all__ = \[(.*?)\]", (ROOT / "bindings/python/gemvjit/torch.py").read_text()).group(1)
    known = {f"gemvjit.{name}" for name in gemvjit.__all__} | {f"gemvjit.torch.{name}"
                                                               for name in re.findall(r'"(\w+)"', in_torch)}
    used = {ast.unparse(node) for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Attribute)}
    return {name for name in used if re.fullmatch(r"gemvjit(\.torch)?\.\w+", name)} - known - {"gemvjit.torch"}


class Examples(unittest.TestCase):
    def test_the_first_runs(self):
        [code] = examples("run by")
        with tempfile.TemporaryDirectory() as folder:
            environment = dict(os.environ, GEMVJIT_LIBRARY=sys.argv[1], GEMVJIT_CONFIG="none",
                               GEMVJIT_CACHE_DIR=folder, PYTHONPATH=str(ROOT / "bindings" / "python"))
            done = subprocess.run([sys.executable, "-B", "-c", code], env=environment, capture_output=True, text=True,
                                  check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("N must be a multiple of 8", done.stdout)

    def test_the_others_use_what_exists(self):
        codes = examples("compiled by")
        self.assertEqual(len(codes), 2)
        for code in codes:
            compile(code, "docs/python.md", "exec")
            self.assertEqual(unknown_names(code), set())
        self.assertEqual(unknown_names("gemvjit.no_such(gemvjit.torch.Nothing, gemvjit.seal())"),
                         {"gemvjit.no_such", "gemvjit.torch.Nothing"})


class Tables(unittest.TestCase):
    def test_signatures(self):
        shown = re.findall(r"^\| `(\w+)\(([^).]+)\)` \|", PAGE, re.MULTILINE)
        self.assertGreaterEqual(len(shown), 7)
        for name, arguments in shown:
            positional = [parameter for parameter in inspect.signature(getattr(gemvjit, name)).parameters.values()
                          if parameter.kind is not parameter.KEYWORD_ONLY]
            self.assertEqual(arguments, ", ".join(map(str, positional)), name)

    def test_every_public_name_is_on_the_page(self):
        errors = {cls.__name__ for cls in _errors.CLASSES.values()}
        for name in set(gemvjit.__all__) - errors - {"Kernel", "Status"}:
            self.assertRegex(PAGE, rf"`{name}\b", name)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
