"""What `cmake --install` puts where, that none of it names the folders of the build, and what the binaries need.

    install_test.py CMAKE BUILD CXX_COMPILER CLASS    CLASS: Layout or Needs
"""

import os
import re
import sys
import unittest
from pathlib import Path

from package import ROOT, TOOLS, InstalledTest, header_version, run, symbol_versions

InstalledTest.CMAKE, InstalledTest.BUILD, COMPILER = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
HAS_TOOLS = (InstalledTest.BUILD / "bin" / "gemvjit-warmup").exists()


class Layout(InstalledTest):
    components = ("runtime", "development", "tools") if HAS_TOOLS else ("runtime", "development")

    def binaries(self):
        return [self.one("lib*/**/libgemvjit.so.*.*.*"), *(self.prefix / "bin").glob("*")]

    def test_the_libraries_and_the_header(self):
        version = header_version(ROOT / "include/gemvjit/gemvjit.h")
        library = self.one("lib*/**/libgemvjit.so.*.*.*")
        self.assertEqual(library.name, f"libgemvjit.so.{version}")
        self.assertEqual(os.readlink(library.parent / "libgemvjit.so"), f"libgemvjit.so.{version.split('.')[0]}")
        self.assertTrue((library.parent / "libgemvjit.a").is_file())
        self.assertEqual(header_version(self.prefix / "include/gemvjit/gemvjit.h"), version)
        self.assertEqual([file.name for file in self.prefix.glob("include/**/*") if file.is_file()], ["gemvjit.h"])

    def test_one_version_everywhere(self):
        """CMake's project, the header's macros, the package of CMake and that of pkg-config say the same."""
        version = header_version(ROOT / "include/gemvjit/gemvjit.h")
        cmake = self.one("lib*/**/cmake/gemvjit/gemvjitConfigVersion.cmake").read_text()
        self.assertEqual(re.search(r'set\(PACKAGE_VERSION "(.*)"\)', cmake).group(1), version)
        pc = self.one("lib*/**/pkgconfig/gemvjit.pc").read_text()
        self.assertEqual(re.search(r"^Version: (.*)$", pc, re.M).group(1), version)
        project = re.search(r"\bVERSION (\d+\.\d+\.\d+)", (ROOT / "CMakeLists.txt").read_text()).group(1)
        self.assertEqual(project, version)

    def test_the_license(self):
        self.assertEqual(self.one("share/doc/gemvjit/LICENSE").read_bytes(), (ROOT / "LICENSE").read_bytes())

    @unittest.skipUnless(HAS_TOOLS, "the tools are not built")
    def test_tools_with_pages_completions_and_tables(self):
        names = {f"gemvjit-{tool}" for tool in TOOLS}
        self.assertEqual({file.name for file in (self.prefix / "bin").iterdir()}, names)
        pages = {file.name for file in self.prefix.glob("share/man/man*/*")}
        self.assertEqual(pages, {f"{name}.1" for name in names} | {"gemvjit-config.5"})
        for folder, form in (("bash-completion/completions", "{}"), ("zsh/site-functions", "_{}"),
                             ("fish/vendor_completions.d", "{}.fish")):
            found = {file.name for file in (self.prefix / "share" / folder).iterdir()}
            self.assertEqual(found, {form.format(name) for name in names})
        tables = {file.name: file.read_bytes() for file in (ROOT / "tuning_tables").iterdir()
                  if file.suffix in (".json", ".md")}
        installed = {file.name: file.read_bytes() for file in self.prefix.glob("share/gemvjit/tuning_tables/*")}
        self.assertEqual(installed, tables)
        for name in names:
            self.assertEqual(run(self.prefix / "bin" / name, "--version", env=self.environment).strip(),
                             header_version(ROOT / "include/gemvjit/gemvjit.h"))

    def test_nothing_names_the_build_or_the_prefix(self):
        """Texts name neither the prefix nor DESTDIR nor source and build folder; binaries have no search path."""
        foreign = [str(self.BUILD.resolve()), str(ROOT), str(self.stage), "/opt/gemvjit"]
        texts = [file for file in self.prefix.rglob("*") if file.suffix in (".cmake", ".pc", ".h")]
        self.assertGreater(len(texts), 4)
        for file in texts:
            for folder in foreign:
                self.assertNotIn(folder, file.read_text(), file)
        for file in self.binaries():
            self.assertNotRegex(run("readelf", "--dynamic", "--wide", file), "RPATH|RUNPATH", file)

    def test_the_static_library_keeps_its_names_to_itself(self):
        """Its strong symbols are gemvjit_* and what lies in namespace gemvjit; the rest is weak: templates and inline
        functions, as every program in C++ has them."""
        lines = run("nm", "--extern-only", "--defined-only", "--format=posix",
                    self.one("lib*/**/libgemvjit.a")).splitlines()
        strong = {line.split()[0] for line in lines if len(line.split()) > 1 and line.split()[1] not in "VWu"}
        own = re.compile(r"gemvjit_|_Z(T[VISTCW]|GV|Th?n?\d+_)?N?K?7gemvjit")
        self.assertGreater(len(strong), 300)
        self.assertEqual(sorted(name for name in strong if not own.match(name)), [])
        for foreign in ("_ZN3fmt2v96formatEv", "main", "_Z7gemvjix", "SHA256_Init", "_ZN6spdlog7gemvjitEv"):
            self.assertIsNone(own.match(foreign), foreign)


class Needs(InstalledTest):
    """No library of CUDA, and nothing newer than this machine's C and C++ libraries."""

    components = Layout.components
    binaries = Layout.binaries
    ALLOWED = r"lib(c|m|dl|pthread|gcc_s|stdc\+\+)\.so\.\d+|ld-linux.*\.so\.\d+"

    def test_needs_only_the_c_and_c_plus_plus_libraries(self):
        for file in self.binaries():
            needed = re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "--dynamic", "--wide", file))
            self.assertIn("libc.so.6", needed, file)
            foreign = [name for name in needed if not re.fullmatch(self.ALLOWED, name)]
            self.assertEqual(foreign, [], file)
        for name in ("libcuda.so.1", "libnvrtc.so.13", "libcudart.so.13", "libcurl.so.4"):
            self.assertIsNone(re.fullmatch(self.ALLOWED, name))

    def test_needs_no_newer_c_library_than_this_machine_has(self):
        here = {"GLIBC": tuple(int(part) for part in os.confstr("CS_GNU_LIBC_VERSION").split()[1].split("."))}
        runtime = run(COMPILER, "-print-file-name=libstdc++.so.6").strip()
        for prefix in ("GLIBCXX", "CXXABI"):
            here[prefix] = max(symbol_versions(runtime, prefix))
        self.assertLess((2, 9), (2, 34))  # numbers, not texts
        for prefix, newest in here.items():
            needed = {file.name: max(symbol_versions(file, prefix), default=(0,)) for file in self.binaries()}
            name, most = max(needed.items(), key=lambda item: item[1])
            print(f"{prefix}: {'.'.join(map(str, most))} is needed ({name}), {'.'.join(map(str, newest))} is here")
            self.assertGreater(most, (0,), prefix)
            self.assertLessEqual(most, newest, name)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], sys.argv[4]], verbosity=2)
