"""The layer rule: every #include of the product against the table in docs/architecture.md, which this test reads.

Also from that page: what may be said only in some places, and how long a file may be. The negative controls feed
made-up files that must be caught, so that a check which has gone blind fails.
"""

import re
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("src", "cache", "kernels", "tools", "include")
SOURCES = (".h", ".cpp", ".c", ".inc", ".cu", ".cuh")
MAX_LINES = 500
THIRD_PARTY = {"fmt/": "fmt", "spdlog/": "spdlog", "nlohmann/": "nlohmann", "CLI/": "CLI", "gtest/": "gtest",
               "gmock/": "gmock", "cuda": "cuda", "nvrtc": "cuda", "cuda/": "cuda"}
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"]+)"|<([^>]+)>|(.*))', re.MULTILINE)
COMMENT_OR_STRING = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.DOTALL)


def table_after(marker, text):
    """Rows of the markdown table that follows <!-- marker: ... -->, as lists of cells."""
    _, found, rest = text.partition(f"<!-- {marker}:")
    if not found:
        raise AssertionError(f"docs/architecture.md has no table marked '{marker}'")
    rows = []
    for line in rest.splitlines()[1:]:
        if line.startswith("|"):
            rows.append([cell.strip() for cell in line.strip().strip("|").split("|")])
        elif rows:
            break
    return rows[2:]  # without heading and rule


def code_words(cell):
    return re.findall(r"`([^`]+)`", cell)


def read_rules(text):
    rooms = {}
    for level, room, _, may_include, third_party in table_after("layers", text):
        rooms[code_words(room)[0]] = (int(level), code_words(may_include), third_party.split())
    places = {code_words(what)[0]: code_words(where) for what, where in table_after("places", text)}
    return rooms, places


def is_below(path, folder):
    return path == folder or path.startswith(folder + "/")


def longest(path, names):
    return max((name for name in names if is_below(path, name)), key=len, default=None)


def third_party_of(name):
    prefix = max((p for p in THIRD_PARTY if name.startswith(p)), key=len, default=None)
    return THIRD_PARTY[prefix] if prefix else None


def target_of(name):
    """Where a quoted include points, from the repository root."""
    return f"include/{name}" if name.startswith("gemvjit/") else name


def include_problem(path, room, rooms, quoted, angled):
    """None, or why this include of file `path` is not allowed."""
    _, may_include, third_party = rooms[room]
    if angled is not None and not angled.startswith("gemvjit/"):
        library = third_party_of(angled)
        if library:
            return None if library in third_party else f"<{angled}>: {room} may not use {library}"
        if is_below(room, "kernels"):
            return f"<{angled}>: kernels include no system header" if room != "kernels/shared" else None
        standard = re.fullmatch(r"[a-z_0-9]+(\.h)?|(sys|linux)/[a-z_0-9]+\.h", angled)
        return None if standard else f"<{angled}> is neither the system's nor a library of the table"
    target = target_of(quoted or angled)
    # A room is a folder with a row; the longest row that covers the target says whose file it is.
    if longest(target, rooms) == room:
        return None
    allowed = [name for name in may_include if is_below(target, name)]
    if not allowed:
        return f'"{target}": {room} may include {" ".join(may_include) or "no other room"}'
    return None


def check_files(files, rooms, places):
    """files: path -> text. Returns a list of complaints."""
    complaints = []
    for path, text in sorted(files.items()):
        if text.count("\n") > MAX_LINES:
            complaints.append(f"{path}: {text.count(chr(10))} lines, more than {MAX_LINES}")
        room = longest(str(Path(path).parent), rooms)
        if room is None:
            complaints.append(f"{path}: its folder is no room of docs/architecture.md")
            continue
        for match in INCLUDE.finditer(text):
            quoted, angled, other = match.groups()
            line = text.count("\n", 0, match.start()) + 1
            if other is not None:
                complaints.append(f"{path}:{line}: an include that is no plain name: {other}")
            elif problem := include_problem(path, room, rooms, quoted, angled):
                complaints.append(f"{path}:{line}: {problem}")
        includes = " ".join(f"{q or a or ''}" for q, a, _ in INCLUDE.findall(text))
        code = COMMENT_OR_STRING.sub(" ", text) + includes
        for what, where in places.items():
            if re.search(r"(?<!\w)" + re.escape(what) + r"(?:(?<=\W)|(?!\w))", code) and not longest(path, where):
                complaints.append(f"{path}: says {what}, which belongs in {' '.join(where) or 'no file'}")
    return complaints


def product_files():
    files = {}
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in SOURCES and path.is_file():
                files[path.relative_to(ROOT).as_posix()] = path.read_text(encoding="utf-8")
    return files


class Layers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.rooms, cls.places = read_rules((ROOT / "docs" / "architecture.md").read_text(encoding="utf-8"))

    def test_every_include_follows_the_table(self):
        files = product_files()
        self.assertGreater(len(files), 50, "the product's files were found")
        complaints = check_files(files, self.rooms, self.places)
        self.assertFalse(complaints, "\n" + "\n".join(complaints))

    def test_tests_and_scripts_keep_to_the_length_limit(self):
        for folder in ("tests", "tools", "cmake"):
            for path in (ROOT / folder).rglob("*"):
                if path.suffix in SOURCES + (".py", ".sh", ".cmake") and path.is_file():
                    self.assertLessEqual(path.read_text(encoding="utf-8").count("\n"), MAX_LINES, path)

    def test_the_tables_arrows_point_down(self):
        for room, (level, may_include, _) in self.rooms.items():
            for target in may_include:
                owner = longest(target, self.rooms)
                if owner is not None:
                    below = self.rooms[owner][0]
                    self.assertLess(below, level, f"{room} (level {level}) -> {target} (level {below})")

    def test_every_room_of_the_table_exists(self):
        for room, (_, may_include, _) in self.rooms.items():
            self.assertTrue((ROOT / room).is_dir(), room)
            for target in may_include:
                if longest(target, self.rooms):
                    self.assertTrue((ROOT / target).exists(), f"{room} -> {target}")
        for what, where in self.places.items():
            for place in where:
                self.assertTrue((ROOT / place).exists(), f"{what}: {place}")

    def test_bad_lines_are_caught(self):
        bad = {
            "up": ("src/base/x.cpp", '#include "src/runtime/options.h"'),
            "sideways": ("src/launch/x.cpp", '#include "src/compile/specialize.h"'),
            "more of the cache than the plain headers": ("src/compile/x.h", '#include "cache/store.h"'),
            "indented": ("cache/x.cpp", '  #  include "src/catalog/arch.h"'),
            "from the own folder": ("src/base/x.cpp", '#include "status.h"'),
            "relative": ("cache/x.cpp", '#include "../src/catalog/arch.h"'),
            "through a macro": ("cache/x.cpp", "#include HEADER"),
            "public header by its short name": ("src/catalog/x.cpp", "#include <gemvjit/gemvjit.h>"),
            "cuda.h": ("src/launch/x.cpp", "#include <cuda.h>"),
            "cuda.h in quotes": ("src/launch/x.cpp", '#include "cuda.h"'),
            "runtime header": ("src/catalog/x.cpp", "#include <cuda_bf16.h>"),
            "nvrtc.h": ("src/compile/x.cpp", "#include <nvrtc.h>"),
            "json": ("cache/x.cpp", "#include <nlohmann/json.hpp>"),
            "spdlog": ("src/runtime/x.cpp", "#include <spdlog/spdlog.h>"),
            "spdlog in another file of base": ("src/base/x.cpp", "#include <spdlog/spdlog.h>"),
            "unknown library": ("src/base/x.cpp", "#include <boost/any.hpp>"),
            "header in a kernel": ("kernels/x.cu", "#include <stdint.h>"),
            "library in the public header": ("include/gemvjit/x.h", "#include <fmt/format.h>"),
            "environment": ("cache/x.cpp", 'const char* a = ::secure_getenv("HOME");'),
            "the user's environment": ("src/runtime/options.cpp", 'const char* a = std::getenv("HOME");'),
            "launch": ("src/runtime/x.cpp", "driver.cuLaunchKernelEx(&config);"),
            "no room": ("tools/unheard_of/x.cpp", ""),
            "length": ("src/base/x.cpp", "\n" * (MAX_LINES + 1)),
        }
        for name, (path, text) in bad.items():
            with self.subTest(name):
                self.assertNotEqual(check_files({path: text + "\n"}, self.rooms, self.places), [])

    def test_good_lines_are_not(self):
        good = {
            "src/runtime/x.cpp": '#include "src/launch/launcher.h"\n#include "cache/store.h"\n#include <sys/stat.h>\n',
            "src/runtime/options.cpp": '#include <cstdlib>\nauto a = ::secure_getenv("HOME");\n',
            "src/compile/x.cpp": '#include "cache/kernel_key.h"\n#include "embedded/embedded_kernel_sources.h"\n',
            "cache/x.cpp": '// not getenv( nor dlopen( here\nauto a = "getenv(";\n#include <fmt/format.h>\n',
            "kernels/x.cu": '#include "kernel_config.h"\n#include "kernels/device/types.cuh"\n',
            "src/base/log.cpp": "#include <spdlog/logger.h>\n",
        }
        self.assertEqual(check_files(good, self.rooms, self.places), [])


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    unittest.main(verbosity=1)
