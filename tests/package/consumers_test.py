"""Programs in C99 and C++20 that are built against the installed package, shared and static, and run.

    consumers_test.py CMAKE BUILD C_COMPILER CXX_COMPILER GENERATOR CLASS    CLASS: CMake or PkgConfig
"""

import re
import shutil
import sys
import unittest
from pathlib import Path

from package import ROOT, InstalledTest, header_version, run

InstalledTest.CMAKE, InstalledTest.BUILD = sys.argv[1], Path(sys.argv[2])
C_COMPILER, CXX_COMPILER, GENERATOR, CLASS = sys.argv[3:7]
SOURCES = ROOT / "tests/package"
EXPECTED = header_version(ROOT / "include/gemvjit/gemvjit.h") + " 3"  # a kernel for nt 1, 2 and 4


class Consumers(InstalledTest):
    components = ("runtime", "development")

    def assert_works(self, program, shared):
        environment = dict(self.environment)
        if shared:
            environment["LD_LIBRARY_PATH"] = str(self.one("lib*/**/libgemvjit.so").parent)
        needed = re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "--dynamic", "--wide", program))
        self.assertEqual("libgemvjit.so.0" in needed, shared, needed)
        self.assertEqual(run(program, env=environment).strip(), EXPECTED)


class CMake(Consumers):
    def configure(self, source, *arguments):
        binary = self.folder / f"{source}{len(list(self.folder.iterdir()))}"
        text = run(self.CMAKE, "-G", GENERATOR, "-S", SOURCES / source, "-B", binary,
                   f"-DCMAKE_PREFIX_PATH={self.prefix}", f"-DCMAKE_C_COMPILER={C_COMPILER}", "-DCMAKE_BUILD_TYPE=Release",
                   "-DCMAKE_C_FLAGS_RELEASE=-O0", "-DCMAKE_CXX_FLAGS_RELEASE=-O0", *arguments, env=self.environment)
        return binary, text

    def test_c_and_c_plus_plus(self):
        binary, _ = self.configure("consumer", "-DLANGUAGES=C;CXX", f"-DCMAKE_CXX_COMPILER={CXX_COMPILER}")
        run(self.CMAKE, "--build", binary, env=self.environment)
        for name in ("c_shared", "c_static", "cpp_shared", "cpp_static"):
            with self.subTest(name):
                self.assert_works(binary / name, "shared" in name)

    def test_a_project_of_c_alone(self):
        binary, _ = self.configure("consumer", "-DLANGUAGES=C")
        run(self.CMAKE, "--build", binary, env=self.environment)
        for name in ("c_shared", "c_static"):
            with self.subTest(name):
                self.assert_works(binary / name, "shared" in name)

    def test_other_versions_are_refused(self):
        major, minor, patch = map(int, EXPECTED.split()[0].split("."))
        wanted = [f"{major}.{minor + 1}", f"{major}.{minor}.{patch + 1}", f"{major + 1}.0"]
        if major == 0 and minor > 0:
            wanted.append(f"0.{minor - 1}")  # minor versions may differ in all until there is a 1.0
        _, text = self.configure("versions", f"-DVERSIONS={';'.join(wanted)}")
        for version in wanted:
            self.assertIn(f"gemvjit {version}: found=0 considered={major}.{minor}.{patch}", text)


@unittest.skipUnless(shutil.which("pkg-config"), "pkg-config is not installed")
class PkgConfig(Consumers):
    def flags(self, *options):
        environment = {**self.environment, "PKG_CONFIG_LIBDIR": str(self.one("lib*/**/gemvjit.pc").parent)}
        return run("pkg-config", *options, "gemvjit", env=environment).split()

    def build(self, name, compiler, source, flags):
        program = self.folder / name
        run(compiler, *self.flags("--cflags"), "-o", program, SOURCES / "consumer" / source, *flags,
            env=self.environment)
        return program

    def static_flags(self):
        """Both libraries are in one folder, and a linker prefers the shared one: -l: names the static one."""
        return ["-l:libgemvjit.a" if flag == "-lgemvjit" else flag for flag in self.flags("--static", "--libs")]

    def test_c(self):
        compiler = [C_COMPILER, "-std=c99"]
        self.assert_works(self.build("c_shared", C_COMPILER, "consumer.c", ["-std=c99", *self.flags("--libs")]), True)
        self.assert_works(self.build("c_static", C_COMPILER, "consumer.c", ["-std=c99", *self.static_flags()]), False)

    def test_c_plus_plus(self):
        for name, flags in (("cpp_shared", self.flags("--libs")), ("cpp_static", self.static_flags())):
            self.assert_works(self.build(name, CXX_COMPILER, "consumer.cpp", ["-std=c++20", *flags]), "shared" in name)

    def test_its_folders_are_those_of_the_moved_tree(self):
        self.assertEqual(Path(self.flags("--variable=includedir")[0]).resolve(), self.prefix / "include")
        self.assertEqual(Path(self.flags("--variable=libdir")[0]).resolve(),
                         self.one("lib*/**/libgemvjit.so").parent)

    def test_a_version_that_is_not_there_is_refused(self):
        with self.assertRaisesRegex(AssertionError, "exit"):
            self.flags("--exists", "--print-errors", "--atleast-version=99")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], CLASS], verbosity=2)
