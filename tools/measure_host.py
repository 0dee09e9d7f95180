#!/usr/bin/env python3
"""Host figures of a build: compile time a variant, peak memory of a compile job, time of a fully warm run.

    tools/measure_host.py BUILD [--arch sm_90a] [--json]

BUILD is a build folder with bin/gemvjit-warmup. Needs NVRTC, no GPU. Pins the tool to one core. Prints a table; with
--json one document. Run it on an otherwise idle machine; it asserts nothing.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile

# Weight shapes of decode steps of common models (N x K).
SHAPES = [
    (1024, 8192), (8192, 1024), (1536, 7168), (2048, 7168), (7168, 2048), (7168, 2304), (4096, 4096), (6144, 4096),
    (5120, 5120), (4096, 14336), (10240, 8192), (28672, 4096), (8192, 28672), (57344, 8192), (2880, 2880),
]


def run_warmup(build, arch, cache, pin=True):
    command = [os.path.join(build, "bin", "gemvjit-warmup"), "--arch", arch, "--cache-dir", cache, "--json", "-q", "-j", "1"]
    for n, k in SHAPES:
        command += ["--shape", f"{n}x{k}:nvfp4", "--shape", f"{n}x{k}:bf16"]
    if pin:
        command = ["taskset", "-c", "0"] + command
    result = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    if result.returncode != 0:
        sys.exit(f"{command[0]} failed with exit code {result.returncode}")
    return json.loads(result.stdout)


def percentile(values, fraction):
    values = sorted(values)
    return values[min(len(values) - 1, int(fraction * len(values)))]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--arch", default="sm_90a")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as cache:
        cold = run_warmup(args.build, args.arch, cache)
        peak_mib = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        warm = [run_warmup(args.build, args.arch, cache)["summary"] for _ in range(5)]
    compile_ms = [r["ms"] for r in cold["results"] if r["status"] == "compiled"]
    if not compile_ms or any(w["cached"] != w["total"] for w in warm):
        sys.exit("the first run did not compile, or a later one did not find every entry")
    figures = {
        "arch": args.arch,
        "variants": len(compile_ms),
        "compile_ms_median": round(statistics.median(compile_ms), 1),
        "compile_ms_p95": round(percentile(compile_ms, 0.95), 1),
        "compile_ms_max": round(max(compile_ms), 1),
        "peak_mib_one_job": round(peak_mib, 1),
        "warm_entries": warm[0]["total"],
        "warm_ms": round(1000 * statistics.median(w["seconds"] for w in warm), 1),
    }
    if args.json:
        print(json.dumps(figures))
        return
    for name, value in figures.items():
        print(f"{name:20} {value}")


if __name__ == "__main__":
    main()
