"""Many processes at once: a server that is well serves them all, however short its queue of connections is; one that is dead
costs them little more than the first of them; and a set of which the server has let go of a part is used and mended.

    remote_load_test.py BIN_FOLDER Burst|Dead|Evicted
"""

import concurrent.futures
import hashlib
import json
import struct
import time

import action_result
from fault_server import FaultServer
from remote_case import SHAPES, RemoteCase, main

PROCESSES = 32


class Burst(RemoteCase):
    shapes = tuple(f"{64 * n}x64" for n in range(1, 9))

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        done = cls.published.warmup(shapes=cls.shapes)
        if done.code != 0:
            raise AssertionError(str(done))

    def test_a_short_queue_is_no_failure(self):
        """32 processes with an empty cache each, and a queue of 5: all is got, and no failure is told."""
        server = self.enter(FaultServer(queue=5))
        publisher = self.copy_of_published("publisher", {"GEMVJIT_REMOTE": server.url})
        done = publisher.warmup("--remote-write", "--remote-required", shapes=self.shapes)
        self.assertEqual(done.code, 0, done)
        nodes = [self.node(f"node{number}", {"GEMVJIT_REMOTE": server.url}) for number in range(PROCESSES)]
        begin = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(PROCESSES) as pool:
            ended = list(pool.map(lambda node: node.warmup("--remote-required", shapes=self.shapes), nodes))
        took = time.monotonic() - begin
        for done in ended:
            self.assertEqual((done.code, done.compiled), (0, 0), done)
        connections = {line["connection"] for line in server.requests()}
        self.assertLess(len(connections), len(server.requests()), "connections are used again")
        print(f"{PROCESSES} processes, {len(server.requests())} requests over {len(connections)} connections, {took:.1f} s")


class Dead(RemoteCase):
    def ranks(self, name, url, shapes=SHAPES[:2]):
        """32 processes with one cache: how long after the first the last one is ready, and when the first is."""
        node = self.node(name, {"GEMVJIT_REMOTE": url})
        with concurrent.futures.ThreadPoolExecutor(PROCESSES) as pool:
            begin = time.monotonic()
            def rank(_):
                done = node.warmup(shapes=shapes)
                return time.monotonic() - begin, done
            ended = list(pool.map(rank, range(PROCESSES)))
        for _, done in ended:
            self.assertEqual(done.code, 0, done)
        self.assertEqual(sum(done.compiled for _, done in ended), len(shapes), "each kernel is compiled once")
        times = [seconds for seconds, _ in ended]
        print(f"{name}: the first of {PROCESSES} is ready after {min(times):.1f} s, the last after {max(times):.1f} s")
        return min(times), max(times)

    def test_the_last_rank_is_ready_soon_after_the_first(self):
        hanging = self.enter(FaultServer())
        hanging.faults({"get-ac": "hang", "get-cas": "hang", "head": "hang"})
        for name, url, limit in (("no connection", self.deaf(), 15), ("no answer", hanging.url, 25)):
            with self.subTest(name):
                first, last = self.ranks(name.replace(" ", "-"), url)
                self.assertLess(first, limit)
                self.assertLess(last - first, 2)


def as_of_old(entry):
    """The entry as versions wrote it that said in it when it was compiled, and how long that took."""
    header, = struct.unpack_from("<I", entry, 12)
    size, = struct.unpack_from("<Q", entry, 16 + header)
    body = bytearray(entry[:24 + header + size])
    when = 16 + 8 + 8 + 4 + 8 + 4 + 1 + 32  # created_unix_seconds and compile_ms, docs/cache_format.md
    assert body[when:when + 12] == bytes(12), "what is compiled now says nothing of it"
    struct.pack_into("<qI", body, when, 1700000000, 251)
    return bytes(body) + hashlib.sha256(body).digest()


class Evicted(RemoteCase):
    """A server that, as bazel-remote, gives no manifest of which it lacks a payload."""

    def publish_set(self, publisher):
        done = publisher.warmup("--remote-write", "--remote-required")
        self.assertEqual(done.code, 0, done)
        self.push(publisher)

    def push(self, publisher):
        done = publisher.run("gemvjit-cache", "push", "--set", "decode", GEMVJIT_REMOTE_WRITE="1")
        self.assertEqual(done.code, 0, done)

    def pull(self, node):
        return node.run("gemvjit-cache", "pull", "--set", "decode", "--json")

    def started(self):
        """The server, a node that published a set to it, and the name of the payload that it lets go of next."""
        server = self.enter(FaultServer(validates=True))
        publisher = self.copy_of_published("publisher", {"GEMVJIT_REMOTE": server.url})
        return server, publisher

    def evict(self, server, entry):
        del server.store.files[f"/cas/{hashlib.sha256(entry).hexdigest()}"]

    def test_what_is_there_is_taken_and_a_writer_mends_the_set(self):
        server, publisher = self.started()
        self.publish_set(publisher)
        gone, entry = sorted(self.published.entries().items())[1]
        mends = (("push", lambda: self.push(publisher)),
                 ("a warmup that has all", lambda: publisher.warmup("--remote-write", "--remote-required")),
                 ("a warmup that has nothing", None))
        for number, (name, mend) in enumerate(mends):
            with self.subTest(name):
                self.evict(server, entry)
                node = self.node(f"puller{number}", {"GEMVJIT_REMOTE": server.url})
                done = self.pull(node)
                self.assertEqual(done.code, 9, done)
                self.assertEqual(set(node.entries()), set(self.published.entries()) - {gone})
                told = json.loads(done.out)
                self.assertEqual((told["fetched"], told["missing"], len(told["not_there"])), (3, 1, 1))
                self.assertEqual(told["not_there"][0].split("-sm_")[0], gone.rsplit("-", 1)[0])
                self.assertIn(told["not_there"][0], done.err)
                reader = self.node(f"reader{number}", {"GEMVJIT_REMOTE": server.url})
                done = reader.warmup("--remote-required", "-v")
                self.assertEqual((done.code, done.compiled), (0, 1), done)
                self.assertIn("3 of 4 kernels fetched, not " + told["not_there"][0].split("/")[0], done.err)
                if mend:
                    mend()
                else:
                    writer = self.node("writer", {"GEMVJIT_REMOTE": server.url})
                    done = writer.warmup("--remote-write", "--remote-required")
                    self.assertEqual((done.code, done.compiled), (0, 1), done)
                    self.assertEqual(writer.entries(), self.published.entries(), "compiled again, the same bytes")
                whole = self.node(f"whole{number}", {"GEMVJIT_REMOTE": server.url})
                done = self.pull(whole)
                self.assertEqual(done.code, 0, done)
                self.assertEqual(whole.entries(), self.published.entries())

    def test_a_set_of_older_entries_is_mended_too(self):
        server, publisher = self.started()
        for path in publisher.cache.rglob("*.entry"):
            path.write_bytes(as_of_old(path.read_bytes()))
        self.publish_set(publisher)
        olds = publisher.entries()
        self.evict(server, sorted(olds.items())[1][1])
        writer = self.node("writer", {"GEMVJIT_REMOTE": server.url})
        done = writer.warmup("--remote-write", "--remote-required")
        self.assertEqual((done.code, done.compiled), (0, 1), done)
        node = self.node("node", {"GEMVJIT_REMOTE": server.url})
        done = self.pull(node)
        self.assertEqual(done.code, 0, done)
        self.assert_right_kernels(node)
        self.assertEqual(sum(olds[name] == entry for name, entry in node.entries().items()), 3)

    def test_a_set_without_a_list_is_read(self):
        """Versions that wrote no list: whole sets are read, and mended by a push where they are not."""
        server, publisher = self.started()
        self.publish_set(publisher)
        lists = [name for name, body in server.store.files.items() if "/ac/" in name and not action_result.parse(body)]
        self.assertEqual(len(lists), 2, "of the plan and of the set")
        for name in lists:
            del server.store.files[name]
        node = self.node("node", {"GEMVJIT_REMOTE": server.url})
        self.assertEqual(self.pull(node).code, 0)
        self.assertEqual(node.entries(), self.published.entries())
        self.evict(server, sorted(self.published.entries().items())[1][1])
        self.assertEqual(self.pull(self.node("other", {"GEMVJIT_REMOTE": server.url})).code, 4)
        self.push(publisher)
        self.assertEqual(self.pull(self.node("third", {"GEMVJIT_REMOTE": server.url})).code, 0)


if __name__ == "__main__":
    main({name: lambda: None for name in ("Burst", "Dead", "Evicted")})
