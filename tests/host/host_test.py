"""What the library does to its host: at its end, in its children, and with rights that its user has not. No GPU.

    host_test.py C_COMPILER CXX_COMPILER libgemvjit.so libgemvjit.a CLASS
"""

import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CC, CXX, SHARED, STATIC = sys.argv[1:5]
STATUS = 7  # that host.c ends with
NOBODY = 65534


class SlowServer:
    """Has nothing, and takes `seconds` for each PUT."""

    def __init__(self, seconds):
        server, self.stored, self.puts = self, 0, threading.Semaphore(0)

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def answer(self, code):
                self.send_response(code)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def do_GET(self):
                self.answer(404)

            do_HEAD = do_GET

            def do_PUT(self):
                self.rfile.read(int(self.headers["Content-Length"]))
                server.puts.release()
                time.sleep(seconds)
                server.stored += 1
                self.answer(200)

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def environment(self, host="127.0.0.1"):
        return {"GEMVJIT_REMOTE": f"http://{host}:{self.http.server_port}", "GEMVJIT_REMOTE_WRITE": "1"}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.http.shutdown()
        self.http.server_close()


class HostCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = Path(tempfile.mkdtemp(prefix="host-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.folder.chmod(0o755)
        cls.host = cls.folder / "host"
        subprocess.run([CC, "-std=gnu99", "-Wall", "-Wextra", f"-I{ROOT / 'include'}",
                        str(ROOT / "tests" / "host" / "host.c"), "-o", str(cls.host), "-ldl", "-pthread"], check=True)

    def start(self, *arguments, library=SHARED, prefix=(), **environment):
        told = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GEMVJIT_CONFIG": "none", "GEMVJIT_LOG": "off",
                "GEMVJIT_CACHE_DIR": tempfile.mkdtemp(prefix="cache-", dir=self.folder), **environment}
        return subprocess.Popen([*prefix, str(self.host), str(library), *map(str, arguments)], env=told, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def run_host(self, *arguments, **more):
        """(exit code, stdout, stderr, seconds)."""
        begin = time.monotonic()
        process = self.start(*arguments, **more)
        try:
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
        return process.returncode, out, err, time.monotonic() - begin


class Endings(HostCase):
    """exit() while other threads compile."""

    def ends_well(self, what, moments):
        with ThreadPoolExecutor(2) as pool:
            for moment, (code, out, err, _) in zip(moments, pool.map(lambda ms: self.run_host(what, ms), moments)):
                self.assertEqual(code, STATUS, f"{what} {moment} ms: {out}{err}")

    def test_exit_at_any_moment(self):
        self.ends_well("exit", [20 + 60 * i for i in range(20)])

    def test_return_from_main(self):
        self.ends_well("return", [300, 700])

    def test_quick_exit(self):
        self.ends_well("quick_exit", [300, 700])

    def test_exit_from_two_threads(self):
        self.ends_well("two", [300, 700])

    def test_exit_within_a_callback(self):
        self.ends_well("callback", [0])

    def test_a_child_without_the_threads(self):
        self.ends_well("fork", [300, 700])


class Unloading(HostCase):
    """dlclose() while uploads are under way: it returns at once, and what is left is sent."""

    def closes_well(self, library):
        with SlowServer(1) as server:
            begin = time.monotonic()
            process = self.start("dlclose", library=library, **server.environment())
            try:
                self.assertTrue(server.puts.acquire(timeout=30), "uploads begin")
                first_upload = time.monotonic()
                self.assertEqual(process.stdout.readline(), "closed\n", process)
                self.assertLess(time.monotonic() - max(begin, first_upload), 1, "dlclose does not wait for uploads")
                out, err = process.communicate(timeout=40)
            finally:
                process.kill()
            self.assertEqual(process.returncode, STATUS, out + err)
            self.assertGreaterEqual(server.stored, 4, "two kernels, each with a manifest")

    def test_the_shared_library(self):
        self.closes_well(SHARED)

    def test_a_plugin_with_the_static_library(self):
        plugin = self.folder / "plugin.so"
        subprocess.run([CXX, "-shared", "-o", str(plugin), "-Wl,--whole-archive", STATIC, "-Wl,--no-whole-archive",
                        "-ldl", "-pthread"], check=True)
        self.closes_well(plugin)


class Children(HostCase):
    """What a child of the host inherits while uploads are under way: nothing of the library's."""

    def test_it_inherits_no_descriptor(self):
        for host in ("127.0.0.1", "localhost"):
            with self.subTest(host), SlowServer(1) as server:
                code, out, err, _ = self.run_host("system", 300, **server.environment(host))
                self.assertEqual(code, 0, out + err)
                inherited = [line for line in out.splitlines() if int(line.split()[0]) > 2]
                self.assertEqual(inherited, [], out)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[5:]])
