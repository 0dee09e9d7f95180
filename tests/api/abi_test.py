"""Programs built with an earlier gemvjit.h of this soname still work: nothing of tests/api/abi_<major>.txt is gone or
changed, and what is new has been written down there.

    abi_test.py LIBRARY HEADER COMPILER
    abi_test.py LIBRARY HEADER COMPILER --update    adds what is new to the list; refuses if something broke
"""

import sys
import unittest
from pathlib import Path

import abi

LIBRARY, HEADER, COMPILER = Path(sys.argv[1]), Path(sys.argv[2]).read_text(encoding="utf-8"), sys.argv[3]
VERSION = abi.version_of(HEADER)
LIST = Path(__file__).parent / f"abi_{VERSION.split('.')[0]}.txt"


def current(header=HEADER):
    return [*abi.symbols_of_library(LIBRARY), *abi.items_of_header(COMPILER, header)]


def stored():
    return abi.parse(LIST.read_text(encoding="utf-8")) if LIST.exists() else {}


def update():
    old, now = stored(), current()
    broken, added = abi.compare(old, now)
    if broken:
        sys.exit("\n".join(["not updated, since these are gone or changed:", *broken]))
    old.update({item: VERSION for item in added})
    kinds = ["symbol", "enum", "field", "size"]
    lines = sorted(old, key=lambda item: kinds.index(item.split()[0]))  # stable: in the header's order, new ones last
    about = "# What programs rely on, and the version it came with; see abi.py. Additions: abi_test.py --update.\n"
    LIST.write_text(about + "".join(f"{item} {old[item]}\n" for item in lines), encoding="utf-8")


class Abi(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.stored, cls.now = stored(), current()

    def test_nothing_is_gone_or_changed(self):
        self.assertEqual(abi.compare(self.stored, self.now)[0], [])

    def test_all_that_is_new_is_in_the_list(self):
        self.assertEqual(abi.compare(self.stored, self.now)[1], [],
                         f"add it: tests/api/abi_test.py {LIBRARY} include/gemvjit/gemvjit.h {COMPILER} --update")

    def test_no_item_is_from_the_future(self):
        key = lambda version: [int(part) for part in version.split(".")]
        self.assertEqual([item for item, version in self.stored.items() if key(version) > key(VERSION)], [])

    def test_the_reader_leaves_no_field_out(self):
        """Between two fields that it found there is no room for another that it did not."""
        ends = {}
        for item in self.now:
            if item.startswith("field "):
                name, offset, size = item.split()[1].split(".")[0], *(int(part[1:]) for part in item.split()[2:4])
                self.assertLess(offset - ends.get(name, 0), 8, item)
                ends[name] = offset + size
        self.assertEqual(set(ends), set(abi.sizes(self.now)))
        for name, size in abi.sizes(self.now).items():
            self.assertLess(size - ends[name], 8, name)
        opaque = HEADER.count("typedef struct gemvjit_context gemvjit_context")
        self.assertEqual(HEADER.count("typedef struct") - opaque, len(ends))
        self.assertEqual(abi.without_comments(HEADER).count("GEMVJIT_OUTCOME_"),
                         sum("GEMVJIT_OUTCOME_" in item for item in self.now))


class AbiBreaks(unittest.TestCase):
    """Changes that must be seen, made to a copy of the header."""

    def compared(self, *change):
        self.assertEqual(HEADER.count(change[0]), 1, change[0])
        now = [item for item in current(HEADER.replace(*change)) if not item.startswith("symbol")]
        return abi.compare({item: "0" for item in current() if not item.startswith("symbol")}, now)

    def test_a_field_in_the_middle(self):
        broken, _ = self.compared("  int32_t compile_threads;", "  int64_t more;\n  int32_t compile_threads;")
        self.assertTrue(any("gemvjit_options.compile_threads" in item for item in broken), broken)

    def test_a_field_at_the_end_is_only_new(self):
        broken, added = self.compared("  void* event_user;\n", "  void* event_user;\n  int64_t more;\n")
        self.assertEqual(broken, [])
        self.assertEqual([item.split()[0] for item in added], ["field", "size"])

    def test_a_field_in_the_padding_at_the_end(self):
        header = ("#include <stddef.h>\n#include <stdint.h>\n"
                  "typedef struct gemvjit_x { size_t struct_size; int32_t a; } gemvjit_x;\n")
        old = abi.items_of_header(COMPILER, header)
        new = abi.items_of_header(COMPILER, header.replace("a; }", "a; int32_t b; }"))
        self.assertEqual(len(abi.compare(dict.fromkeys(old), new)[0]), 1)

    def test_a_struct_without_a_size_may_not_grow(self):
        old = ["field gemvjit_x.a @0 +8 int64_t", "size gemvjit_x 8"]
        new = ["field gemvjit_x.a @0 +8 int64_t", "field gemvjit_x.b @8 +8 int64_t", "size gemvjit_x 16"]
        self.assertEqual(abi.compare(dict.fromkeys(old), new)[0], ["size gemvjit_x 8"])

    def test_a_reserved_field_may_get_a_meaning(self):
        old = dict.fromkeys(["field gemvjit_x.reserved @0 +4 int32_t", "field gemvjit_x.b @4 +4 int32_t"])
        compared = lambda first: abi.compare(old, [first, *list(old)[1:]])
        self.assertEqual(compared("field gemvjit_x.a @0 +4 int32_t"), ([], ["field gemvjit_x.a @0 +4 int32_t"]))
        self.assertEqual(len(compared("field gemvjit_x.a @0 +4 float")[0]), 1)
        self.assertEqual(len(abi.compare(old, [*list(old)[:1], "field gemvjit_x.c @4 +4 int32_t"])[0]), 1)

    def test_another_value_or_type(self):
        self.assertTrue(self.compared("GEMVJIT_UNTUNED = 6,", "GEMVJIT_UNTUNED = 60,")[0])
        self.assertTrue(self.compared("  int32_t on_miss; ", "  uint32_t on_miss; ")[0])

    def test_a_new_value_is_only_new(self):
        self.assertEqual(self.compared("GEMVJIT_FORKED = 20", "GEMVJIT_FORKED = 20, GEMVJIT_MORE = 21"),
                         ([], ["enum gemvjit_status.GEMVJIT_MORE = 21"]))

    def test_symbols(self):
        old = {"symbol gemvjit_a": "0", "symbol gemvjit_b": "0"}
        self.assertEqual(abi.compare(old, ["symbol gemvjit_a"]), (["symbol gemvjit_b"], []))
        self.assertEqual(abi.compare(old, [*old, "symbol gemvjit_c"]), ([], ["symbol gemvjit_c"]))

    def test_a_struct_that_is_gone(self):
        self.assertEqual(abi.compare({"size gemvjit_a 8": "0"}, []), (["size gemvjit_a 8"], []))
        self.assertEqual(abi.compare({"size gemvjit_a 8": "0"}, ["size gemvjit_a 4"])[0], ["size gemvjit_a 8"])


if __name__ == "__main__":
    if "--update" in sys.argv:
        update()
    else:
        unittest.main(argv=sys.argv[:1])
