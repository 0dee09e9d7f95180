"""The console scripts of the wheel: they become the programs that lie in it."""

import os
import sys
from pathlib import Path


def _run(name):
    program = Path(__file__).resolve().parent / "bin" / name
    if not program.is_file():
        sys.exit(f"{name}: {program} is missing: this gemvjit was not installed from a wheel that has the tools")
    os.execv(program, [name, *sys.argv[1:]])


def warmup():
    _run("gemvjit-warmup")


def cache():
    _run("gemvjit-cache")
