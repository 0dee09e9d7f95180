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


class Secure(HostCase):
    """A program with rights that its user has not (AT_SECURE): its environment chooses nothing."""

    OWNER = 54321

    def setUp(self):
        if os.geteuid() != 0:
            self.skipTest("only root can make a program of another user")
        self.chosen = Path(tempfile.mkdtemp(prefix="chosen-", dir=self.folder))
        source = self.chosen / "chosen.c"
        source.write_text('#include <unistd.h>\n__attribute__((constructor)) static void run(void) '
                          '{ if (write(1, "CHOSEN\\n", 7) < 0) _exit(1); }\n')
        python = self.chosen / "env" / "lib" / "python3.11" / "site-packages" / "nvidia" / "cu13" / "lib"
        for folder in (self.chosen / "nvrtc", self.chosen / "lib64", python):
            folder.mkdir(parents=True)
            subprocess.run([CC, "-shared", "-fPIC", str(source), "-o", str(folder / "libnvrtc.so.13")], check=True)
        (self.chosen / "gemvjit").mkdir()
        (self.chosen / "gemvjit" / "config.json").write_text('{"no_such_option": 1}')
        for path in (self.chosen, *self.chosen.rglob("*")):
            path.chmod(0o777 if path.is_dir() else 0o755)
        self.program = self.folder / "secure"
        shutil.copy(self.host, self.program)
        os.chown(self.program, self.OWNER, self.OWNER)
        self.library = self.folder / "libgemvjit.so"  # where its user can read it
        shutil.copy(SHARED, self.library)

    def run_as_nobody(self, mode, **environment):
        self.program.chmod(mode)
        return subprocess.run([str(self.program), str(self.library), "warm"], env=environment, text=True, timeout=60,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, user=NOBODY, group=NOBODY,
                              extra_groups=[])

    def folders(self, server):
        """What names a file, a folder, a library or an address, but for what decides how NVRTC is found."""
        here = str(self.chosen)
        return {"HOME": here, "XDG_CONFIG_HOME": here, "XDG_CACHE_HOME": here, "XDG_RUNTIME_DIR": here,
                "GEMVJIT_CACHE_DIR": here + "/cache", "GEMVJIT_CACHE_RO": here + "/layer", "GEMVJIT_DUMP_DIR": here,
                "GEMVJIT_LIBCUDA": here + "/nvrtc/libnvrtc.so.13", "GEMVJIT_LOG": "debug",
                "GEMVJIT_CACHE_SIGNATURES": "require", "GEMVJIT_CACHE_TRUST_DIR": here, **server.environment()}

    def files(self):
        return sorted(str(path) for path in self.chosen.rglob("*"))

    def test_its_environment_chooses_nothing(self):
        before = self.files()
        ways = {"GEMVJIT_NVRTC": "/nvrtc", "VIRTUAL_ENV": "/env", "CONDA_PREFIX": "/env", "CUDA_HOME": ""}
        with SlowServer(0) as server:
            for variable, folder in ways.items():
                told = {variable: str(self.chosen) + folder, **self.folders(server)}
                done = self.run_as_nobody(0o4755, **told)
                if "secure=0" in done.stdout:
                    self.skipTest("programs get no rights of another user here (nosuid)")
                self.assertIn("secure=1 cache= ", done.stdout, done.stderr)
                self.assertNotIn("CHOSEN", done.stdout, variable)
                self.assertEqual(done.stderr, "", "not even a log")
            self.assertFalse(server.puts.acquire(blocking=False))
        self.assertEqual(self.files(), before)

    def test_without_such_rights_it_does(self):
        told = {"GEMVJIT_CONFIG": "none", "GEMVJIT_NVRTC": str(self.chosen / "nvrtc"), "HOME": str(self.chosen)}
        done = self.run_as_nobody(0o755, **told)
        self.assertIn("CHOSEN", done.stdout, done.stderr)

    def test_what_nvrtc_itself_would_read_is_refused(self):
        named = self.chosen / "log"
        done = self.run_as_nobody(0o4755, AS_SECURE_LOG_FILE=str(named))
        if "secure=0" in done.stdout:
            self.skipTest("programs get no rights of another user here (nosuid)")
        self.assertIn("GEMVJIT_NO_COMPILER", done.stdout)
        self.assertIn("AS_SECURE_LOG_FILE is set", done.stdout)
        self.assertFalse(named.exists())


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
