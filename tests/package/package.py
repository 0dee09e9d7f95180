"""Shared by the tests of what is installed: gives each a prefix of its own, moved after it was installed."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ("bench", "cache", "tune", "verify", "warmup")


def run(*command, **options):
    """The standard output; a failure shows both."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False, **options)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def header_version(header):
    text = Path(header).read_text(encoding="utf-8")
    return ".".join(re.search(rf"#define GEMVJIT_VERSION_{part} (\d+)", text).group(1)
                    for part in ("MAJOR", "MINOR", "PATCH"))


def symbol_versions(binary, prefix):
    """The versions of the symbols that the binary needs or has, such as GLIBC_2.34, as tuples of numbers."""
    found = re.findall(rf"\({prefix}_([\d.]+)\)|\b{prefix}_([\d.]+)\b", run("objdump", "-T", binary))
    return {tuple(int(part) for part in (a or b).split(".")) for a, b in found}


class InstalledTest(unittest.TestCase):
    """`prefix` has the components of the class, installed below DESTDIR and then moved somewhere else."""

    BUILD = None  # the build folder, set by the test's main
    CMAKE = None
    components = ()

    @classmethod
    def setUpClass(cls):
        # realpath: so that texts can be searched for this folder's name
        cls.folder = Path(os.path.realpath(tempfile.mkdtemp(prefix="gemvjit-package-")))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.stage = cls.folder / "stage"
        cls.environment = {**os.environ, "GEMVJIT_CONFIG": "none", "HOME": str(cls.folder)}
        for name in ("LD_LIBRARY_PATH", "CMAKE_PREFIX_PATH", "PKG_CONFIG_PATH", "DESTDIR"):
            cls.environment.pop(name, None)
        for component in cls.components:
            run(cls.CMAKE, "--install", cls.BUILD, "--prefix", "/opt/gemvjit", "--component", component,
                env={**cls.environment, "DESTDIR": str(cls.stage)})
        cls.prefix = cls.folder / "moved" / "here"
        cls.prefix.parent.mkdir()
        os.rename(cls.stage / "opt" / "gemvjit", cls.prefix)

    def one(self, pattern):
        found = sorted(self.prefix.glob(pattern))
        self.assertEqual(len(found), 1, f"{pattern}: {found}")
        return found[0]
