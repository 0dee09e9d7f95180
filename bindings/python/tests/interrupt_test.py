"""Signals while gemvjit.warmup() compiles, and the end of the interpreter: what a handler raises reaches the caller, and
threads that still compile harm nobody. No GPU.

    interrupt_test.py LIBRARY
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
LIBRARY = sys.argv[1]
RUNS = 16

# Warms one layer after the other until something stops it; prints what did, and leaves without waiting for the compiler.
WARM = """
import os, signal, sys
import gemvjit
def warm():
    for n in range(64, 64000, 64):
        gemvjit.warmup(n, 64, bf16=True, arch="sm_90a", allow_untuned=True)
def alarm(*_):
    raise TimeoutError("of the handler")
signal.signal(signal.SIGALRM, alarm)
print("begins", flush=True)
"""
REPORT = WARM + """
try:
    warm()
except BaseException as error:
    print(type(error).__name__, flush=True)
    os._exit(0)
"""


class Child:
    def __init__(self, code):
        self.folder = tempfile.TemporaryDirectory()
        told = {**os.environ, "GEMVJIT_LIBRARY": LIBRARY, "GEMVJIT_CONFIG": "none", "GEMVJIT_COMPILE_THREADS": "2",
                "GEMVJIT_CACHE_DIR": self.folder.name, "PYTHONPATH": str(ROOT / "bindings" / "python")}
        self.process = subprocess.Popen([sys.executable, "-c", code], env=told, text=True, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE)
        self.process.stdout.readline()

    def end(self, kind=None, after=0.0):
        """Sends the signal after that time; (exit code, what it said, stderr)."""
        time.sleep(after)
        if kind is not None:
            self.process.send_signal(kind)
        out, err = self.process.communicate(timeout=120)
        self.folder.cleanup()
        return self.process.returncode, out.strip(), err


class Interrupts(unittest.TestCase):
    def outcomes(self, kind):
        with ThreadPoolExecutor(4) as pool:
            return list(pool.map(lambda i: Child(REPORT).end(kind, 0.02 + 0.06 * i), range(RUNS)))

    def test_ctrl_c_is_always_keyboard_interrupt(self):
        for code, said, err in self.outcomes(signal.SIGINT):
            self.assertEqual((code, said), (0, "KeyboardInterrupt"), err)
            self.assertNotIn("ignored", err, "nothing was dropped within a callback")

    def test_what_any_handler_raises_arrives(self):
        code, said, err = Child(REPORT).end(signal.SIGALRM, 0.3)
        self.assertEqual((code, said), (0, "TimeoutError"), err)

    def test_an_interrupted_program_ends_as_any_other(self):
        code, _, err = Child(WARM + "warm()\n").end(signal.SIGINT, 0.3)
        self.assertEqual(code, -signal.SIGINT, err)
        self.assertIn("KeyboardInterrupt", err)

    def test_the_process_can_go_on(self):
        code, said, err = Child(WARM + """
try:
    warm()
except KeyboardInterrupt:
    print(len(gemvjit.warmup(64, 64, bf16=True, arch="sm_90a", allow_untuned=True)))
""").end(signal.SIGINT, 0.3)
        self.assertEqual((code, said), (0, "3"), err)


class Endings(unittest.TestCase):
    def test_a_daemon_thread_that_compiles(self):
        code, _, err = Child(WARM + """
import threading, time
threading.Thread(target=warm, daemon=True).start()
time.sleep(0.4)
""").end()
        self.assertEqual(code, 0, err)

    def test_failures_keep_their_text(self):
        code, said, err = Child(WARM + """
try:
    gemvjit.warmup(64, 64, bf16=True, arch="sm_90a")
except gemvjit.Untuned as error:
    print(str(error) == gemvjit.last_error() != "")
""").end()
        self.assertEqual((code, said), (0, "True"), err)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]] + sys.argv[2:])
