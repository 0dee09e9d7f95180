"""The README's C example compiles as C99 without a warning and links against libgemvjit.so; its links lead somewhere.

    readme_test.py COMPILER LIBRARY
"""

import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COMPILER, LIBRARY = sys.argv[1], Path(sys.argv[2])
FLAGS = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'include'}"]


def example():
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    found = re.search(r"<!-- example:[^>]*-->\n```c\n(.*?)```", page, re.DOTALL)
    return found.group(1) if found else None


def build(text):
    """Makes a shared object with no symbol missing (the example needs no main). Returns the compiler's complaints."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "example.c"
        source.write_text(text)
        command = [COMPILER, *FLAGS, "-shared", "-fPIC", "-Wl,--no-undefined", "-o", str(Path(folder) / "example.so"),
                   str(source), str(LIBRARY)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return "" if done.returncode == 0 else done.stderr or f"exit {done.returncode}"


class Readme(unittest.TestCase):
    def test_example_compiles_and_links(self):
        text = example()
        self.assertIsNotNone(text, "README.md has a C example below its marker")
        self.assertLessEqual(text.count("\n"), 40)
        self.assertEqual(build(text), "")

    def test_a_wrong_example_would_fail(self):
        text = example()
        self.assertIn("no_such_field", build(text.replace("args.pdl", "args.no_such_field")))
        unknown = "void gemvjit_no_such(void);\nvoid f(void);\nvoid f(void) { gemvjit_no_such(); }\n"
        self.assertIn("gemvjit_no_such", build(unknown))

    def test_links_in_the_pages_lead_to_files(self):
        pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
        self.assertGreater(len(pages), 3)
        for page in pages:
            for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8")):
                if not re.match(r"[a-z]+:", target):
                    self.assertTrue((page.parent / target).exists(), f"{page.name}: {target}")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
