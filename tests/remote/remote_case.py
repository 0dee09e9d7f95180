"""What the tests of the remote cache share: nodes with a cache folder each, the kernels that one of them published, and what
must be true however a server behaves. No GPU; the kernels are the smallest there are, compiled by NVRTC."""

import hashlib
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

BIN = Path(sys.argv[1]) if len(sys.argv) > 1 else Path()
SHAPES = ("64x64", "128x64", "64x128", "128x128")  # of dequantize_rows: one kernel each, 0.2 s to compile
EXIT_REMOTE = 8


class Done:
    """A finished run: exit code, output, seconds, and of a warmup with --json its summary and results."""

    def __init__(self, code, out, err, seconds):
        self.code, self.out, self.err, self.seconds = code, out, err, seconds
        try:
            document = json.loads(out)
        except ValueError:
            document = {}
        self.summary = document.get("summary", {})
        self.results = document.get("results", [])

    @property
    def compiled(self):
        return self.summary.get("compiled")

    def __str__(self):
        return f"exit code {self.code}, {self.seconds:.2f} s\n{self.out}\n{self.err}"


def payload(entry):
    """The cubin of an encoded entry, docs/cache_format.md."""
    header, = struct.unpack_from("<I", entry, 12)
    size, = struct.unpack_from("<Q", entry, 16 + header)
    return entry[24 + header:24 + header + size]


class Node:
    def __init__(self, folder, name, environment=None, prefix=()):
        self.cache = Path(folder) / "nodes" / name
        self.environment = environment or {}
        self.prefix = [*prefix]

    def start(self, program, *arguments, **environment):
        """The process; its environment holds nothing of the caller's."""
        told = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GEMVJIT_CONFIG": "none",
                "GEMVJIT_CACHE_DIR": str(self.cache), **self.environment, **environment}
        return subprocess.Popen([*self.prefix, str(BIN / program), *map(str, arguments)], env=told, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def run(self, program, *arguments, **environment):
        begin = time.monotonic()
        process = self.start(program, *arguments, **environment)
        try:
            out, err = process.communicate(timeout=120)
        finally:
            process.kill()
        return Done(process.returncode, out, err, time.monotonic() - begin)

    @staticmethod
    def kernels(shapes=SHAPES):
        told = ["--arch", "sm_90a"]
        for shape in shapes:
            told += ["--shape", f"{shape}:dequant"]
        return told

    def warmup(self, *arguments, shapes=SHAPES, **environment):
        return self.run("gemvjit-warmup", *self.kernels(shapes), "--json", "-j", "1", *arguments, **environment)

    def entries(self):
        """{file name: bytes} of what lies in the cache."""
        return {path.name: path.read_bytes() for path in self.cache.rglob("*.entry")}


class RemoteCase(unittest.TestCase):
    """`published`: a node with all kernels, which it compiled without any remote."""

    @classmethod
    def setUpClass(cls):
        cls.shared = Path(tempfile.mkdtemp(prefix="remote-"))
        cls.addClassCleanup(shutil.rmtree, cls.shared)
        cls.shared.chmod(0o755)  # nginx runs as nobody
        cls.published = Node(cls.shared, "published")
        done = cls.published.warmup()
        if done.code != 0 or done.compiled != len(SHAPES):
            raise AssertionError(str(done))

    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="case-", dir=self.shared))
        self.folder.chmod(0o755)

    def deaf(self):
        """The URL of an address where connecting takes for ever: a listener that never accepts, its queue full."""
        listener = socket.create_server(("127.0.0.1", 0), backlog=0)
        self.addCleanup(listener.close)
        for _ in range(4):
            knocking = socket.socket()
            knocking.setblocking(False)
            knocking.connect_ex(listener.getsockname())
            self.addCleanup(knocking.close)
        return f"http://127.0.0.1:{listener.getsockname()[1]}"

    def enter(self, server):
        """Starts it, and ends it after the test."""
        self.addCleanup(server.__exit__, None, None, None)
        return server.__enter__()

    @classmethod
    def enter_class(cls, server):
        cls.addClassCleanup(server.__exit__, None, None, None)
        return server.__enter__()

    def node(self, name="node", environment=None, prefix=()):
        return Node(self.folder, name, environment, prefix)

    def copy_of_published(self, name="publisher", environment=None):
        """A node that has all kernels, for free."""
        shutil.copytree(self.published.cache, self.folder / "nodes" / name)
        return self.node(name, environment)

    def publish(self, environment):
        """Has a node write all kernels to the remote of that environment."""
        done = self.copy_of_published("publisher-of-all", environment).warmup("--remote-write", "--remote-required")
        self.assertEqual(done.code, 0, done)

    def assert_all_downloaded(self, done, node, compiled=0):
        self.assertEqual(done.code, 0, done)
        self.assertEqual(done.compiled, compiled, done)
        self.assertEqual(done.summary["failed"], 0, done)
        if not compiled:
            self.assertEqual(node.entries(), self.published.entries(), "byte-identical entries")

    def assert_right_kernels(self, node, shapes=SHAPES):
        """All are there, whole, and hold the machine code that the publisher compiled, wherever they came from."""
        done = node.warmup("--check", shapes=shapes)
        self.assertEqual(done.code, 0, done)
        mine, theirs = node.entries(), self.published.entries()
        self.assertEqual(len(mine), len(shapes))
        for name, entry in mine.items():
            self.assertEqual(hashlib.sha256(payload(entry)).digest(), hashlib.sha256(payload(theirs[name])).digest(), name)


def skip(reason):
    print(f"SKIPPED: {reason}")
    sys.exit(77)


def main(classes):
    """Runs the class that the command line names; `classes` gives of each why it cannot be run here, or None."""
    if len(sys.argv) != 3 or sys.argv[2].split(".")[0] not in classes:
        sys.exit(f"usage: {Path(sys.argv[0]).name} BIN_FOLDER {'|'.join(classes)}")
    reason = classes[sys.argv[2].split(".")[0]]()
    if reason:
        skip(reason)
    unittest.main(argv=[sys.argv[0], sys.argv[2]], verbosity=1)
