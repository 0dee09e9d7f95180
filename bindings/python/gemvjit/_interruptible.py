"""Calls of the library that take long, and what a signal does meanwhile.

Python runs a signal's handler in the main thread, when that next runs Python code. Were the main thread within the
library, that would be in a callback of ctypes, which prints an exception and drops it: a Ctrl-C would be lost. So the
main thread waits in Python, where the exception goes to the caller at once, and another thread makes the call."""

import atexit
import ctypes
import os
import threading
import time

_MOST_SECONDS_AT_EXIT = 10.0  # as the library's own wait
_running = {}  # calls under way, in any thread: an event that their end sets -> their cancel flag
os.register_at_fork(after_in_child=_running.clear)


def call(function, cancel, uses_cuda):
    """function(), which ends early once `cancel` (a c_int32) is not 0. What a signal's handler raises is raised here at
    once, and cancels: the function then ends in a thread of its own, and what it returns is lost."""
    ended = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        return _run(function, cancel, ended)
    outcome = []
    take_context = _context_carrier() if uses_cuda else None

    def body():
        try:
            if take_context:
                take_context()
            outcome.append((_run(function, cancel, ended), None))
        except BaseException as error:
            outcome.append((None, error))
        finally:
            ended.set()

    try:
        try:
            threading.Thread(target=body, name="gemvjit").start()
        except RuntimeError:  # no thread to be had
            return _run(function, cancel, ended)
        ended.wait()
    except BaseException:
        cancel.value = 1
        raise
    value, error = outcome[0]
    if error is not None:
        raise error
    return value


def _run(function, cancel, ended):
    _running[ended] = cancel
    try:
        return function()
    finally:
        _running.pop(ended, None)


def _context_carrier():
    """A function that makes this thread's CUDA context current to the thread that calls it; None if there is none."""
    try:
        driver = ctypes.CDLL(os.environ.get("GEMVJIT_LIBCUDA") or "libcuda.so.1")
        current = ctypes.c_void_p()
        if driver.cuCtxGetCurrent(ctypes.byref(current)) != 0 or not current:
            return None
        return lambda: driver.cuCtxSetCurrent(current)
    except (OSError, AttributeError):
        return None


@atexit.register
def _end_all():
    """A daemon thread's call would run into a callback when the interpreter is gone, which ends the process badly."""
    latest = time.monotonic() + _MOST_SECONDS_AT_EXIT
    for cancel in list(_running.values()):
        cancel.value = 1
    while _running and time.monotonic() < latest:
        time.sleep(0.005)
