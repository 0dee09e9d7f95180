"""The wheel: built from a finished build folder, installed into a fresh environment without a network, imported there,
asked a question through ctypes, its console scripts run. Exits 77 (skipped, with the reason) where setuptools is
missing or too old.

    wheel_test.py BUILD_DIR
"""

import os
import platform
import subprocess
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
BUILD = Path(sys.argv[1]).resolve()
sys.path.insert(0, str(ROOT / "bindings" / "python"))
sys.dont_write_bytecode = True
import platform_tag  # noqa: E402

try:
    import setuptools.command.bdist_wheel  # noqa: F401  (before pip: both change distutils)
    import pip  # noqa: F401
except ImportError as error:
    print(f"SKIPPED: {error}; building a wheel needs pip and setuptools 70.1")
    sys.exit(77)


def run(*command, **more):
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith(("GEMVJIT_", "PYTHON", "PIP_"))}
    environment.update(GEMVJIT_CONFIG="none", PIP_NO_INDEX="1", PIP_DISABLE_PIP_VERSION_CHECK="1",
                       **more.pop("environment", {}))
    return subprocess.run([str(part) for part in command], env=environment, capture_output=True, text=True,
                          check=False, **more)


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = Path(cls.folder.name)
        built = run(ROOT / "tools" / "build_wheel.sh", BUILD, cls.path / "out",
                    environment={"GEMVJIT_PYTHON": sys.executable})
        if built.returncode:
            raise AssertionError(built.stdout + built.stderr)
        cls.wheel = Path(built.stdout.strip())
        cls.venv = cls.path / "venv"
        for step in ((sys.executable, "-m", "venv", "--without-pip", cls.venv),
                     (sys.executable, "-m", "pip", "--python", cls.venv / "bin" / "python", "install", "--no-deps",
                      cls.wheel)):
            done = run(*step)
            if done.returncode:
                raise AssertionError(done.stdout + done.stderr)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_tag_and_content(self):
        self.assertRegex(self.wheel.name, r"^gemvjit-0\.1\.0-py3-none-(manylinux_2_\d+|linux)_"
                         + platform.machine() + r"\.whl$")
        with zipfile.ZipFile(self.wheel) as wheel:
            names = wheel.namelist()
            for name in ("gemvjit/__init__.py", "gemvjit/torch.py", "gemvjit/lib/libgemvjit.so.0",
                         "gemvjit/bin/gemvjit-warmup", "gemvjit/bin/gemvjit-cache"):
                self.assertIn(name, names)
            self.assertFalse([name for name in names if "tests" in name or name.endswith(".pyc")])
            metadata = wheel.read("gemvjit-0.1.0.dist-info/WHEEL").decode()
        self.assertIn("Root-Is-Purelib: false", metadata)

    def test_import_and_a_call_without_torch(self):
        code = ("import gemvjit, gemvjit._library as l, sys\n"
                "print(gemvjit.version(), gemvjit.pick_nt(4096, 4096, 1, arch='sm_90a'))\n"
                "print(l.load().gemvjit_python_path)\n"
                "assert 'torch' not in sys.modules\n")
        done = run(self.venv / "bin" / "python", "-c", code, cwd=self.path)
        self.assertEqual(done.returncode, 0, done.stderr)
        first, opened = done.stdout.splitlines()
        self.assertEqual(first, "0.1.0 1")
        self.assertTrue(Path(opened).is_relative_to(self.venv), opened)

    def test_console_scripts_are_the_tools(self):
        for name in ("gemvjit-cache", "gemvjit-warmup"):
            done = run(self.venv / "bin" / name, "--version", cwd=self.path)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stdout, run(BUILD / "bin" / name, "--version").stdout)
        self.assertEqual(run(self.venv / "bin" / "gemvjit-cache", "--no-such", cwd=self.path).returncode,
                         run(BUILD / "bin" / "gemvjit-cache", "--no-such").returncode)

    def test_a_build_folder_without_the_tools(self):
        done = run(ROOT / "tools" / "build_wheel.sh", self.path, self.path / "none",
                   environment={"GEMVJIT_PYTHON": sys.executable})
        self.assertEqual(done.returncode, 1)
        self.assertIn("libgemvjit.so is missing", done.stderr)


class Tag(unittest.TestCase):
    def needs(self, *versions):
        lines = [f"  0x0010:   Name: {version}  Flags: none  Version: 3" for version in versions]
        # Versions that a library defines itself are no needs.
        defined = "Version definition section\n  Name: GLIBC_2.99\n"
        return defined + "Version needs section '.gnu.version_r'\n" + "\n".join(lines)

    def test_the_newest_need_decides(self):
        self.assertEqual(platform_tag.tag([self.needs("GLIBC_2.2.5")]), "manylinux_2_17_x86_64")
        self.assertEqual(platform_tag.tag([self.needs("GLIBC_2.2.5", "GLIBC_2.34"), self.needs("GLIBC_2.4")]),
                         "manylinux_2_34_x86_64")
        self.assertEqual(platform_tag.tag([self.needs("GLIBC_2.34", "GLIBCXX_3.4.9", "GLIBCXX_3.4.30")]),
                         "manylinux_2_35_x86_64")
        self.assertEqual(platform_tag.tag([self.needs("GLIBCXX_3.4.99")]), "linux_x86_64")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
