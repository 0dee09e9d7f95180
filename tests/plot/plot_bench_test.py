"""Tests of tools/plot_bench.py: the table's text exactly, what is refused, and that the pictures are made.

    plot_bench_test.py [Table | Pictures]

Run by ctest, a part at a time. Where matplotlib is missing (tools/setup.sh installs it) the pictures' part exits 77:
skipped, with the reason.
"""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOOL = Path(__file__).resolve().parents[2] / "tools" / "plot_bench.py"
HAS_MATPLOTLIB = importlib.util.find_spec("matplotlib") is not None
NAMES = [f"{plot}_{family}.{kind}" for plot in ("roofline", "ratio") for family in ("nvfp4", "bf16")
         for kind in ("svg", "png")]


def result(family, n, k, m, us, ceilings, **more):
    """As gemvjit-bench writes it; `ceilings`: plain, PDL, PDL with x and out."""
    size = n * k * 2 if family == "bf16" else n * k * 9 // 16
    plain, pdl, pdl_x_out = ceilings
    return {"family": family, "n": n, "k": k, "m": m, "silu_mul": False, "pdl": True, "warm": False, "chain": False,
            "bytes": size, "copies": 4, "us": us, "plain_us": plain, "pdl_us": pdl, "pdl_x_out_us": pdl_x_out,
            "error_over_bound": 0.1, "problem": "", **more}


RESULTS = [
    result("nvfp4", 4096, 4096, 1, 4.5, (4, 3, 3.5)),
    result("nvfp4", 4096, 4096, 8, 6, (4, 3, 3.5)),
    result("nvfp4", 8192, 4096, 1, 12, (9, 6, 6.25)),
    result("nvfp4", 28672, 4096, 1, 21, (0, 0, 0), silu_mul=True),  # its ceilings were not timed
    result("bf16", 4096, 4096, 1, 10, (9, 8, 8.5), cublaslt_us=12),
    result("bf16", 4096, 4096, 8, 11, (9, 8, 8.5), cublaslt_us=0),
    result("bf16", 8192, 4096, 1, 18, (17, 16, 16.5), cublaslt_us=20),
]
BASELINE = [
    {"family": "nvfp4", "n": 4096, "k": 4096, "m": 1, "us": 9, "name": "other"},
    {"family": "nvfp4", "n": 8192, "k": 4096, "m": 1, "us": 12, "name": "other"},
    {"family": "nvfp4", "n": 16, "k": 16, "m": 1, "us": 1, "name": "other"},  # meets no result
]

TABLE = """\
## NVFP4

| N x K | MB | ceilings at M = 1: plain / PDL / PDL with x and out, us | us an op, M = 1 / 8 | \
over the PDL ceiling, M = 1 / 8 | other over the PDL ceiling, M = 1 / 8 |
|---|---|---|---|---|---|
| 4096 x 4096 | 9.4 | 4.00 / 3.00 / 3.50 | 4.50 / 6.00 | 1.50 / 2.00 | 3.00 / - |
| 8192 x 4096 | 18.9 | 9.00 / 6.00 / 6.25 | 12.00 / - | 2.00 / - | 2.00 / - |
| 28672 x 4096 silu | 66.1 | - / - / - | 21.00 / - | - / - | - / - |
| geomean over the PDL ceiling | | | | 1.73 / 2.00 | 2.45 / - |

## BF16

| N x K | MB | ceilings at M = 1: plain / PDL / PDL with x and out, us | us an op, M = 1 / 8 | \
over the PDL ceiling, M = 1 / 8 | cuBLASLt over the PDL ceiling, M = 1 / 8 |
|---|---|---|---|---|---|
| 4096 x 4096 | 33.6 | 9.00 / 8.00 / 8.50 | 10.00 / 11.00 | 1.25 / 1.38 | 1.50 / - |
| 8192 x 4096 | 67.1 | 17.00 / 16.00 / 16.50 | 18.00 / - | 1.12 / - | 1.25 / - |
| geomean over the PDL ceiling | | | | 1.19 / 1.38 | 1.37 / - |
"""


class PlotBenchTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def write(self, name, value):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
        return path

    def document(self, results, name="bench.json"):
        return self.write(name, {"device": "Some GPU", "driver_cuda": 13000, "results": results})

    def run_tool(self, *arguments, python=(sys.executable, "-B"), tool=TOOL):
        environment = os.environ | {"MPLCONFIGDIR": str(self.folder / "matplotlib")}  # else a folder below the home
        return subprocess.run([*python, tool, *arguments], capture_output=True, text=True, check=False, env=environment)

    def expect_failure(self, code, message, *arguments):
        done = self.run_tool(*arguments)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertIn(message, done.stderr)
        self.assertNotIn("Traceback", done.stderr)
        self.assertEqual(done.stdout, "")


class Table(PlotBenchTest):
    def test_table_is_the_text_of_the_docs(self):
        baseline = self.write("others.json", BASELINE)
        done = self.run_tool(self.document(RESULTS), "--table", "--baseline", baseline)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout, TABLE)

    def test_several_files_are_one_run_and_the_last_counts(self):
        first = self.document([RESULTS[0] | {"us": 99}] + RESULTS[4:], "first.json")
        second = self.document(RESULTS[:4], "second.json")
        baseline = self.write("others.json", BASELINE)
        done = self.run_tool(first, second, "--table", "--baseline", baseline)
        self.assertEqual(done.stdout, TABLE)

    def test_a_wrong_result_is_left_out_aloud(self):
        done = self.run_tool(self.document([RESULTS[0], RESULTS[1] | {"problem": "column 3"}]), "--table")
        self.assertEqual(done.returncode, 0)
        self.assertIn("results[1] is left out: column 3", done.stderr)
        self.assertNotIn("6.00", done.stdout)

    def test_input_that_does_not_fit_is_refused_by_name(self):
        cases = [
            ("{", "bench.json"),
            ([], "is no document of gemvjit-bench"),
            ({"results": []}, "no results"),
            ({"results": [3]}, "results[0]: is no object"),
            ({"results": [RESULTS[0] | {"family": "fp8"}]}, "fp8"),
            ({"results": [RESULTS[0] | {"family": [1]}]}, '"family" is [1]'),
            ({"results": [RESULTS[0] | {"us": 0}]}, 'results[0]: "us" is 0'),
            ({"results": [RESULTS[0] | {"us": 10 ** 400}]}, 'results[0]: "us" is 1000'),
            ({"results": [RESULTS[0] | {"us": float("nan")}]}, 'results[0]: "us" is nan'),
            ({"results": [RESULTS[0] | {"us": 1e-320}]}, 'results[0]: "us" is'),
            ({"results": [RESULTS[4] | {"cublaslt_us": "x"}]}, 'results[0]: "cublaslt_us" is \'x\''),
            ({"results": [RESULTS[4] | {"cublaslt_us": float("inf")}]}, 'results[0]: "cublaslt_us" is inf'),
            ({"results": RESULTS, "device": [1]}, '"device" is [1]'),
            ("[" * 100000, "bench.json: is nested too deep"),
            ({"results": [RESULTS[0] | {"us": "fast"}]}, '"us"'),
            ({"results": [{k: v for k, v in RESULTS[0].items() if k != "pdl_us"}]}, '"pdl_us" is None'),
            ({"results": [RESULTS[0], RESULTS[1] | {"warm": True}]}, "do not compare"),
        ]
        for value, message in cases:
            with self.subTest(message):
                self.expect_failure(1, message, self.write("bench.json", value), "--table")
        good = self.document(RESULTS)
        for value, message in [({}, "is no list"), ([{**BASELINE[0], "name": ""}], '[0]: "name"'),
                               ([{**BASELINE[0], "us": -1}], '[0]: "us" is -1')]:
            with self.subTest(message):
                self.expect_failure(1, message, good, "--table", "--baseline", self.write("others.json", value))
        self.expect_failure(1, "missing.json", self.folder / "missing.json", "--table")

    def test_wrong_use(self):
        self.expect_failure(2, "nothing to do", self.document(RESULTS))
        self.expect_failure(2, "FILE")

    def test_missing_matplotlib_is_said_and_costs_the_table_nothing(self):
        # A folder in front of all others, with a matplotlib that cannot be imported.
        self.write("hiding/matplotlib.py", "raise ImportError('hidden by a test')")
        hide = f"import runpy, sys; sys.path.insert(0, {str(self.folder / 'hiding')!r}); sys.argv = sys.argv[1:]; " \
               "runpy.run_path(sys.argv[0], run_name='__main__')"
        document, python = self.document(RESULTS[:1]), (sys.executable, "-B", "-c", hide)
        tool = self.folder / "tools" / "plot_bench.py"  # of a repository where tools/setup.sh never ran
        tool.parent.mkdir()
        shutil.copy(TOOL, tool)
        done = self.run_tool(document, "--output", self.folder / "out", python=python, tool=tool)
        self.assertEqual(done.returncode, 2)
        self.assertIn("need matplotlib", done.stderr)
        self.assertFalse((self.folder / "out").exists())
        done = self.run_tool(document, "--table", python=python, tool=tool)
        self.assertEqual(done.returncode, 0, done.stderr)
        # Where it did, its Python gets the same arguments, and nothing was printed before.
        other = self.write("build/deps/venv/bin/python3", '#!/bin/sh\necho "$@"\nexit 7\n')
        other.chmod(0o755)
        arguments = [str(document), "--output", str(self.folder / "out"), "--table"]
        done = self.run_tool(*arguments, python=python, tool=tool)
        self.assertEqual((done.returncode, done.stdout), (7, " ".join([str(tool.resolve()), *arguments]) + "\n"))


@unittest.skipUnless(HAS_MATPLOTLIB, "this Python has no matplotlib; tools/setup.sh makes one that has")
class Pictures(PlotBenchTest):
    def test_pictures(self):
        document, baseline = self.document(RESULTS), self.write("others.json", BASELINE)
        for folder in ("one", "two"):
            done = self.run_tool(document, "--output", self.folder / folder / "deep", "--baseline", baseline)
            self.assertEqual(done.returncode, 0, done.stderr)
        out = self.folder / "one" / "deep"
        self.assertEqual(sorted(path.name for path in out.iterdir()), sorted(NAMES))
        for name in NAMES:
            content = (out / name).read_bytes()
            self.assertTrue(content.startswith(b"\x89PNG" if name.endswith("png") else b"<?xml"), name)
            self.assertGreater(len(content), 5000, name)
            if name.endswith("svg"):
                self.assertEqual(content, (self.folder / "two" / "deep" / name).read_bytes(), f"{name} differs by run")

    def test_a_link_is_not_written_through(self):
        out, private = self.folder / "out", self.write("private.json", [])
        before = private.read_bytes()
        out.mkdir()
        (out / NAMES[0]).symlink_to(private)
        done = self.run_tool(self.document(RESULTS), "--output", out)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(private.read_bytes(), before)

    def test_pictures_without_ceilings(self):
        done = self.run_tool(self.document(RESULTS[3:4]), "--output", self.folder / "out")
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    if sys.argv[1:] == ["Pictures"] and not HAS_MATPLOTLIB:
        print("SKIPPED: this Python has no matplotlib; tools/setup.sh makes one that has")
        sys.exit(77)
    unittest.main(verbosity=2)
