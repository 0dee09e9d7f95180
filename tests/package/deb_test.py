"""The Debian packages of cpack: names, dependencies, contents; unpacked (never installed) their tools run.

    deb_test.py CPACK BUILD CLASS    CLASS: DebianPackages or Lintian
"""

import gzip
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from package import ROOT, TOOLS, header_version, run

CPACK, BUILD, CLASS = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
VERSION = header_version(ROOT / "include/gemvjit/gemvjit.h")
LIBRARY = f"libgemvjit{VERSION.split('.')[0]}"
PACKAGES = (LIBRARY, "libgemvjit-dev", "gemvjit-tools")


def packed(folder, compression):
    """{package: file}. "Ninja" keeps cpack from building first: what there is gets packed."""
    run(CPACK, "-G", "DEB", "--config", BUILD / "CPackConfig.cmake", "-B", folder / "out", "-D",
        "CPACK_CMAKE_GENERATOR=Ninja", "-D", f"CPACK_DEBIAN_COMPRESSION_TYPE={compression}", cwd=folder)
    return {file.name.split("_")[0]: file for file in (folder / "out").glob("*.deb")}


@unittest.skipUnless(shutil.which("dpkg-deb"), "dpkg-deb is not installed")
class DebianPackages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = Path(tempfile.mkdtemp(prefix="gemvjit-deb-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.files = packed(cls.folder, "none")  # compression takes most of the time otherwise
        cls.control, cls.root = {}, {}
        for name, file in cls.files.items():
            text = run("dpkg-deb", "--info", file, "control")
            cls.control[name] = dict(re.findall(r"^([\w-]+): (.*)$", text, re.M))
            cls.root[name] = cls.folder / name
            run("dpkg-deb", "-x", file, cls.root[name])

    def contents(self, name):
        """{path below /: mode}"""
        lines = run("dpkg-deb", "--contents", self.files[name]).splitlines()
        self.assertTrue(all(line.split()[1] == "root/root" for line in lines))
        return {line.split(None, 5)[5].split(" -> ")[0][2:]: line.split()[0] for line in lines}

    def test_names_and_versions(self):
        self.assertEqual(set(self.files), set(PACKAGES))
        for name in PACKAGES:
            self.assertEqual(self.control[name]["Package"], name)
            self.assertRegex(self.control[name]["Version"], rf"^{re.escape(VERSION)}-\d+$")
            self.assertRegex(self.control[name]["Maintainer"], r"^.+ <.+@.+>$")
        self.assertEqual(len({self.control[name]["Description"] for name in PACKAGES}), len(PACKAGES))

    def test_dependencies(self):
        development = self.control["libgemvjit-dev"]
        self.assertEqual(development["Depends"], f"{LIBRARY} (= {development['Version']})")
        if not shutil.which("dpkg-shlibdeps"):
            self.skipTest("dpkg-shlibdeps is not installed: the dependencies of the binaries are not found out")
        for name in (LIBRARY, "gemvjit-tools"):
            for wanted in ("libc6 (>=", "libstdc++6 (>="):
                self.assertIn(wanted, self.control[name]["Depends"])
            self.assertNotRegex(self.control[name]["Depends"], "cuda|nvrtc|curl|ssl")

    def test_programs_depend_on_the_library_by_its_soname(self):
        text = run("dpkg-deb", "--info", self.files[LIBRARY], "shlibs")
        self.assertEqual(text, f"libgemvjit {VERSION.split('.')[0]} {LIBRARY} (>= {VERSION})\n")
        self.assertEqual(run("dpkg-deb", "--info", self.files[LIBRARY], "triggers"), "activate-noawait ldconfig\n")

    def test_no_file_is_in_two_packages(self):
        seen = {}
        for name in PACKAGES:
            for path in (path for path in self.contents(name) if not path.endswith("/")):
                self.assertNotIn(path, seen)
                seen[path] = name
        owner = lambda end: {name for path, name in seen.items() if path.endswith(end)}
        self.assertEqual(owner(f"/libgemvjit.so.{VERSION}"), {LIBRARY})
        for end in ("/libgemvjit.so", "/libgemvjit.a", "/gemvjit.h", "/gemvjitConfig.cmake", "/gemvjit.pc"):
            self.assertEqual(owner(end), {"libgemvjit-dev"}, end)
        self.assertEqual(owner("/tuning_tables/sm_90a.json"), {"gemvjit-tools"})

    def test_modes(self):
        for name in PACKAGES:
            for path, mode in self.contents(name).items():
                folder_or_program = path.endswith("/") or path.startswith("usr/bin/")
                wanted = "rwxrwxrwx" if mode[0] == "l" else "rwxr-xr-x" if folder_or_program else "rw-r--r--"
                self.assertEqual(mode[1:], wanted, path)

    def test_pages_and_documents_as_debian_wants_them(self):
        pages = sorted(self.root["gemvjit-tools"].glob("usr/share/man/man*/*"))
        self.assertEqual([page.name for page in pages],
                         [*(f"gemvjit-{tool}.1.gz" for tool in sorted(TOOLS)), "gemvjit-config.5.gz"])
        self.assertIn(".TH", gzip.decompress(pages[0].read_bytes()).decode())
        for name in PACKAGES:
            documents = self.root[name] / "usr/share/doc" / name
            self.assertIn("License: Apache-2.0", (documents / "copyright").read_text())
            self.assertEqual(gzip.decompress((documents / "changelog.gz").read_bytes()),
                             (ROOT / "CHANGELOG.md").read_bytes())
            entry = gzip.decompress((documents / "changelog.Debian.gz").read_bytes()).decode()
            self.assertTrue(entry.startswith(f"gemvjit ({self.control[name]['Version']}) "), entry)
            for file in documents.glob("*.gz"):
                self.assertEqual(file.read_bytes()[4:8], bytes(4), f"{file} has a time stamp")

    def test_binaries_are_stripped(self):
        for file in [*self.root["gemvjit-tools"].glob("usr/bin/*"), *self.root[LIBRARY].rglob("libgemvjit.so.*.*.*")]:
            self.assertNotIn(".symtab", run("readelf", "--sections", "--wide", file), file)

    def test_unpacked_tools_run(self):
        programs = sorted(self.root["gemvjit-tools"].glob("usr/bin/*"))
        self.assertEqual([program.name for program in programs], [f"gemvjit-{tool}" for tool in sorted(TOOLS)])
        environment = {"GEMVJIT_CONFIG": "none", "HOME": str(self.folder), "PATH": "/usr/bin:/bin"}
        for program in programs:
            self.assertEqual(run(program, "--version", env=environment).strip(), VERSION)
        listing = run(self.root["gemvjit-tools"] / "usr/bin/gemvjit-warmup", "--shape", "4096x4096:nvfp4", "--arch",
                      "sm_90a", "--dry-run", "--cache-dir", self.folder / "cache", env=environment)
        self.assertIn("n4096-k4096", listing)


@unittest.skipUnless(shutil.which("dpkg-deb") and shutil.which("lintian"), "dpkg-deb or lintian is not installed")
class Lintian(unittest.TestCase):
    """Debian's own check, which takes a minute or two: in the exhaustive configuration."""

    def test_finds_no_error(self):
        with tempfile.TemporaryDirectory() as folder:
            files = packed(Path(folder), "gzip")
            self.assertEqual(set(files), set(PACKAGES))
            done = subprocess.run(["lintian", "--allow-root", *map(str, files.values())], capture_output=True,
                                  text=True, check=False)
            print(done.stdout)
            self.assertEqual(re.findall(r"^E: .*", done.stdout, re.M), [], done.stderr)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], CLASS], verbosity=2)
