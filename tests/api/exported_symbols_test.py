"""libgemvjit.so shows gemvjit_* and nothing else, all that the header declares, and needs no CUDA library.

Usage: exported_symbols_test.py <libgemvjit.so> <gemvjit.h>
"""

import re
import subprocess
import sys
import unittest

LIBRARY, HEADER = sys.argv[1:3]


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


class ExportedSymbols(unittest.TestCase):
    def exported(self):
        lines = output_of("nm", "--dynamic", "--defined-only", "--format=posix", LIBRARY).splitlines()
        return {line.split()[0].split("@")[0] for line in lines if line}

    def test_only_functions_of_the_c_api(self):
        foreign = sorted(name for name in self.exported() if not name.startswith("gemvjit_"))
        self.assertEqual(foreign, [])

    def test_all_that_the_header_declares(self):
        with open(HEADER, encoding="utf-8") as file:
            text = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.S)
        declared = set(re.findall(r"GEMVJIT_API\s[^;(]*?\b(gemvjit_\w+)\(", text))
        self.assertGreater(len(declared), 20)
        self.assertEqual(declared, self.exported())

    def test_links_no_cuda_library(self):
        needed = re.findall(r"\(NEEDED\).*\[(.*)\]", output_of("readelf", "--dynamic", "--wide", LIBRARY))
        self.assertTrue(needed)
        for name in needed:
            self.assertNotRegex(name, "cuda|cudart|nvrtc|nvidia")

    def test_the_soname_has_the_major_version(self):
        soname = re.findall(r"\(SONAME\).*\[(.*)\]", output_of("readelf", "--dynamic", "--wide", LIBRARY))
        with open(HEADER, encoding="utf-8") as file:
            major = re.search(r"#define GEMVJIT_VERSION_MAJOR (\d+)", file.read()).group(1)
        self.assertEqual(soname, [f"libgemvjit.so.{major}"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
