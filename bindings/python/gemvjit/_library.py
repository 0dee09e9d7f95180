"""Finds and opens libgemvjit.so, once, on first use: importing this package opens nothing."""

import ctypes
import os
import threading
from pathlib import Path

from . import _abi
from ._errors import LibraryNotFound, error_of

SONAME = "libgemvjit.so.0"
BUILD_FOLDERS = ("release", "dev", "ci", "quickstart")  # of cmake's presets

_lock = threading.Lock()
_loaded = None
_said = threading.local()


def forget_lock():
    """In a child of fork(): a thread that is not there may have held it."""
    global _lock
    _lock = threading.Lock()


def candidates(package=None, environment=os.environ):
    """The names to try, in order. GEMVJIT_LIBRARY stands alone: who names a library must not get another one."""
    package = Path(package or Path(__file__).resolve().parent)
    named = environment.get("GEMVJIT_LIBRARY")
    if named:
        return [named]
    found = [package / "lib" / SONAME]  # the wheel's
    root = package.parents[2] if len(package.parents) > 2 else package
    if package == root / "bindings" / "python" / "gemvjit" and (root / "include" / "gemvjit" / "gemvjit.h").is_file():
        found += [root / "build" / folder / "libgemvjit.so" for folder in BUILD_FOLDERS]
    return [str(path) for path in found] + [SONAME]


def open_library(names):
    """The first of `names` that can be opened and used, with its functions' types set."""
    tried = []
    for name in names:
        if os.sep in name and not os.path.exists(name):
            tried.append(f"{name}: no such file")
            continue
        try:
            library = ctypes.CDLL(name)
            for function, (result, arguments) in _abi.FUNCTIONS.items():
                entry = getattr(library, function)
                entry.restype, entry.argtypes = result, arguments
            version = library.gemvjit_version().decode()
        except (OSError, AttributeError) as error:
            tried.append(f"{name}: {error}")
            continue
        wanted = ".".join(map(str, _abi.VERSION[:2]))
        if version.split(".")[:2] != wanted.split("."):
            tried.append(f"{name}: is version {version}, this package needs {wanted}")
            continue
        library.gemvjit_python_path = name
        return library
    raise LibraryNotFound("libgemvjit.so was not found; set GEMVJIT_LIBRARY to its path. Tried:\n  "
                          + "\n  ".join(tried))


def load():
    global _loaded
    if _loaded is None:
        with _lock:
            if _loaded is None:
                _loaded = open_library(candidates())
    return _loaded


def check(status):
    """Raises the exception of a status that is not OK."""
    if status:
        message = thread_error()
        keep_error(message)
        raise error_of(status, message)


def thread_error():
    """gemvjit_last_error() of the calling thread, which is not always the one that a call was made for."""
    return load().gemvjit_last_error().decode(errors="replace")


def keep_error(message):
    _said.text = message


def last_error():
    """What the calling thread's last failed call of this package said; "" before any failure."""
    return getattr(_said, "text", "")


def version():
    return load().gemvjit_version().decode()
