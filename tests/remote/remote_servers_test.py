"""Nodes share kernels through servers as clusters run them: nginx with WebDAV, S3, and across two hosts' networks.

    remote_servers_test.py BIN_FOLDER Nginx|S3|Hosts

Exits 77 (skipped, with the reason) where a server or a right is missing.
"""

import hashlib
import json
import threading
import time

import action_result
import certificates
import namespaces
import nginx_dav
import s3_moto
from fault_server import FaultServer
from remote_case import EXIT_REMOTE, SHAPES, RemoteCase, main


class Nginx(RemoteCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.certificates = certificates.make(cls.shared / "certificates")

    def serving(self):
        return self.enter(nginx_dav.Nginx(self.folder / "nginx", certificates=self.certificates))

    def test_what_one_node_compiled_all_others_download(self):
        server = self.serving()
        remote = {"GEMVJIT_REMOTE": server.url()}
        first = self.node("first", remote)
        done = first.warmup("--remote-write")
        self.assertEqual((done.code, done.compiled), (0, len(SHAPES)), done)

        # What lies there is what the layout says: entries by the digest of their bytes, a manifest for each kernel.
        files = server.files()
        for name, body in files.items():
            kind, digest = name.split("/")
            if kind == "cas":
                self.assertEqual(digest, hashlib.sha256(body).hexdigest())
        manifests = [action_result.parse(body) for name, body in files.items() if name.startswith("ac/")]
        named = {}
        for manifest in manifests:
            for path, digest, size in manifest:
                self.assertEqual(len(files[f"cas/{digest}"]), size)
                named[path] = files[f"cas/{digest}"]
        wanted = {f"{kernel['key']}/{kernel['digest']}" for kernel in done.results}
        self.assertEqual(set(named), wanted)
        self.assertEqual(sorted(named.values()), sorted(first.entries().values()))

        second = self.node("second", remote)
        done = second.warmup()
        self.assertEqual((done.code, done.compiled), (0, 0), done)
        self.assertEqual(second.entries(), first.entries(), "byte-identical")

        isolated = self.node("isolated", remote)
        done = isolated.warmup("--isolate", "--remote-required")
        self.assertEqual((done.code, done.compiled), (0, 0), done)
        self.assertEqual(isolated.entries(), first.entries())
        done = self.node("told otherwise", remote).warmup("--remote", "none", shapes=SHAPES[:1])
        self.assertEqual((done.code, done.compiled), (0, 1), done)

        # Who has all asks for nothing.
        before = len(server.requests())
        self.assertEqual(second.warmup().code, 0)
        self.assertEqual(len(server.requests()), before)

    def test_isolated_a_node_publishes_too(self):
        """Its workers know of no remote cache; it does."""
        server = self.serving()
        remote = {"GEMVJIT_REMOTE": server.url()}
        first, second = self.node("first", remote), self.node("second", remote)
        done = first.warmup("--isolate", "--remote-write", "--remote-required")
        self.assertEqual((done.code, done.compiled), (0, len(SHAPES)), done)
        done = second.warmup()
        self.assertEqual((done.code, done.compiled), (0, 0), done)
        self.assertEqual(second.entries(), first.entries(), "byte-identical")

    def test_connections_are_kept(self):
        server = self.serving()
        self.publish({"GEMVJIT_REMOTE": server.url()})
        before = {line["connection"] for line in server.requests()}
        node = self.node("node", {"GEMVJIT_REMOTE": server.url()})
        self.assert_all_downloaded(node.warmup(), node)
        mine = [line["connection"] for line in server.requests() if line["connection"] not in before]
        self.assertGreater(len(mine), len(set(mine)), "a connection for each request")

    def test_nodes_only_read_unless_told(self):
        server = self.serving()
        done = self.node("node", {"GEMVJIT_REMOTE": server.url()}).warmup(shapes=SHAPES[:1])
        self.assertEqual((done.code, done.compiled), (0, 1), done)
        self.assertEqual(server.requests("PUT"), [])
        self.assertNotEqual(server.requests("GET"), [])
        self.assertEqual(server.files(), {})

    def test_a_server_that_takes_nothing_still_gives(self):
        server = self.serving()
        self.publish({"GEMVJIT_REMOTE": server.url()})
        reader = self.node("reader", {"GEMVJIT_REMOTE": server.url("ro")})
        self.assert_all_downloaded(reader.warmup("--remote-write"), reader)
        for more, code in (([], 0), (["--remote-required"], EXIT_REMOTE)):
            writer = self.node(f"writer{code}", {"GEMVJIT_REMOTE": server.url("ro")})
            done = writer.warmup("--remote-write", *more, shapes=["192x64"])
            self.assertEqual((done.code, done.compiled), (code, 1), done)
            self.assertEqual(len(writer.entries()), 1)

    def test_push_and_pull(self):
        server = self.serving()
        remote = {"GEMVJIT_REMOTE": server.url()}
        plan = self.folder / "plan.json"
        self.assertEqual(self.published.warmup("--dry-run", "--plan-out", plan).code, 0)
        publisher = self.copy_of_published("publisher", remote)
        done = publisher.run("gemvjit-cache", "push", "--plan", plan, "--set", "decode", GEMVJIT_REMOTE_WRITE="1")
        self.assertEqual(done.code, 0, done)
        for name, told in (("by-set", ["--set", "decode"]), ("by-plan", ["--plan", plan])):
            node = self.node(name, remote)
            done = node.run("gemvjit-cache", "pull", *told)
            self.assertEqual(done.code, 0, done)
            self.assertEqual(node.entries(), self.published.entries(), name)
        # A node's start is one request for the plan's manifest and one for each of its entries.
        before = len(server.requests())
        node = self.node("warmed", remote)
        done = node.run("gemvjit-warmup", "--plan", plan, "--json")
        self.assert_all_downloaded(done, node)
        self.assertEqual(len(server.requests()) - before, 1 + len(SHAPES))
        done = self.node("none", remote).run("gemvjit-cache", "pull", "--set", "no-such-set")
        self.assertNotEqual(done.code, 0, done)

    def test_doctor(self):
        server = self.serving()
        write = {"GEMVJIT_REMOTE_WRITE": "1"}
        for name, url, environment, answers, writes in (
                ("reads", server.url(), {}, True, None), ("writes", server.url(), write, True, True),
                ("may not", server.url("ro"), write, True, False), ("unknown", server.url("bearer"), {}, False, None),
                ("known", server.url("bearer"), write | {"GEMVJIT_REMOTE_TOKEN": server.token}, True, True)):
            with self.subTest(name):
                done = self.node(name, {"GEMVJIT_REMOTE": url} | environment).run("gemvjit-cache", "doctor", "--json")
                told = json.loads(done.out)["remote"]
                self.assertEqual((told["url"], told["answers"], told["writes"]), (url, answers, writes), told)
                self.assertEqual(bool(told["problem"]), not answers or writes is False, told)
                if answers:
                    self.assertGreater(told["latency_ms"], 0)
                    self.assertLess(told["latency_ms"], 1000)

    def test_signatures_travel_and_are_asked_for(self):
        server = self.serving()
        trusted = self.folder / "trusted"
        trusted.mkdir()
        key = self.folder / "release.key"
        certificates.openssl("genpkey", "-algorithm", "ED25519", "-out", key)
        certificates.openssl("pkey", "-in", key, "-pubout", "-out", trusted / "release.pub")
        key.chmod(0o600)
        remote = {"GEMVJIT_REMOTE": server.url(), "GEMVJIT_CACHE_SIGNATURES": "all",
                  "GEMVJIT_CACHE_TRUST_DIR": str(trusted)}
        self.publish({"GEMVJIT_REMOTE": server.url()})
        # Unsigned ones are no use to this node; it makes its own, signed.
        strict = self.node("strict", remote | {"GEMVJIT_CACHE_SIGNING_KEY": str(key)})
        done = strict.warmup("--remote-write", shapes=SHAPES[:1])
        self.assertEqual((done.code, done.compiled), (0, 1), done)
        # Signed ones are, to a node that can only check them.
        node = self.node("node", remote)
        done = node.warmup(shapes=SHAPES[:1])
        self.assertEqual((done.code, done.compiled), (0, 0), done)
        self.assertEqual(node.entries(), strict.entries())

    def test_credentials(self):
        server = self.serving()
        self.publish({"GEMVJIT_REMOTE": server.url()})
        self.folder.joinpath("token").write_text(server.token + "\n")
        self.folder.joinpath("netrc").write_text(
            f"machine 127.0.0.1 login {server.user} password {server.password}\n")
        self.folder.joinpath("wrong").write_text("machine 127.0.0.1 login node password another\n")
        for secret in "token", "netrc", "wrong":
            self.folder.joinpath(secret).chmod(0o600)
        keys = {f"GEMVJIT_REMOTE_{name}": str(self.certificates / file) for name, file in
                (("CA", "ca.pem"), ("CERT", "client.pem"), ("KEY", "client.key"))}
        bearer, basic, mtls = server.url("bearer"), server.url("basic"), server.tls_url("mtls")
        good = {"token-file": (bearer, {"GEMVJIT_REMOTE_TOKEN_FILE": str(self.folder / "token")}),
                "token": (bearer, {"GEMVJIT_REMOTE_TOKEN": server.token}),
                "netrc": (basic, {"GEMVJIT_REMOTE_NETRC": str(self.folder / "netrc")}), "mtls": (mtls, keys)}
        bad = {"no-token": (bearer, {}), "wrong-token": (bearer, {"GEMVJIT_REMOTE_TOKEN": "another"}),
               "no-netrc": (basic, {}), "wrong-netrc": (basic, {"GEMVJIT_REMOTE_NETRC": str(self.folder / "wrong")}),
               "no-certificate": (mtls, {"GEMVJIT_REMOTE_CA": keys["GEMVJIT_REMOTE_CA"]}),
               "wrong-ca": (mtls, keys | {"GEMVJIT_REMOTE_CA": str(self.certificates / "other_ca.pem")})}
        for name, (url, environment) in good.items():
            with self.subTest(name):
                node = self.node(name, {"GEMVJIT_REMOTE": url} | environment)
                self.assert_all_downloaded(node.warmup("--remote-required"), node)
        for name, (url, environment) in bad.items():
            with self.subTest(name):
                node = self.node(name, {"GEMVJIT_REMOTE": url} | environment)
                done = node.warmup("--remote-required", shapes=SHAPES[:1])
                self.assertEqual((done.code, done.compiled), (EXIT_REMOTE, 1), done)
                self.assert_right_kernels(node, SHAPES[:1])


class S3(RemoteCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server = cls.enter_class(s3_moto.Moto(cls.shared / "moto"))

    def test_what_one_node_compiled_all_others_download(self):
        remote = self.server.environment()
        remote["GEMVJIT_REMOTE"] += "/test1"
        first = self.node("first", remote)
        done = first.warmup("--remote-write", "--remote-required")
        self.assertEqual((done.code, done.compiled), (0, len(SHAPES)), done)
        for name, environment in (("user", {}), ("session", self.server.environment(session=True))):
            with self.subTest(name):
                second = self.node(name, environment | {"GEMVJIT_REMOTE": remote["GEMVJIT_REMOTE"]} if environment else remote)
                done = second.warmup("--remote-required")
                self.assertEqual((done.code, done.compiled), (0, 0), done)
                self.assertEqual(second.entries(), first.entries(), "byte-identical")
        for line in self.server.requests():
            self.assertIn("x-amz-content-sha256", line["signed"], line)
            self.assertEqual("x-amz-security-token" in line["headers"], "x-amz-security-token" in line["signed"], line)

    def test_a_wrong_key_opens_nothing(self):
        """Control: the server computes the signature."""
        remote = self.server.environment()
        remote["GEMVJIT_REMOTE"] += "/test2"
        self.publish(remote)
        node = self.node("right", remote)
        self.assert_all_downloaded(node.warmup("--remote-required"), node)
        session = self.server.environment(session=True) | {"GEMVJIT_REMOTE": remote["GEMVJIT_REMOTE"]}
        for name, wrong in (("secret", remote | {"AWS_SECRET_ACCESS_KEY": "another"}),
                            ("key", remote | {"AWS_ACCESS_KEY_ID": "AKIAANOTHER"}),
                            ("session", session | {"AWS_SESSION_TOKEN": "another"})):
            for more, code in (([], 0), (["--remote-required"], EXIT_REMOTE)):
                with self.subTest(name, code=code):
                    node = self.node(f"wrong-{name}-{code}", wrong)
                    done = node.warmup(*more, shapes=SHAPES[:1])
                    self.assertEqual((done.code, done.compiled), (code, 1), done)
        self.assertIn(403, {line["status"] for line in self.server.requests()})

    def test_push_and_pull(self):
        remote = self.server.environment()
        remote["GEMVJIT_REMOTE"] += "/test3"
        done = self.copy_of_published("pusher", remote).run("gemvjit-cache", "push", "--set", "decode",
                                                            GEMVJIT_REMOTE_WRITE="1")
        self.assertEqual(done.code, 0, done)
        node = self.node("puller", remote)
        done = node.run("gemvjit-cache", "pull", "--set", "decode")
        self.assertEqual(done.code, 0, done)
        self.assertEqual(node.entries(), self.published.entries())


class Hosts(RemoteCase):
    """Two hosts: the server and the publishing node on one, the reading node on the other."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.pair = cls.enter_class(namespaces.Pair())
        cls.here, cls.there = (cls.pair.command(name) for name in (cls.pair.first, cls.pair.second))

    def test_a_node_gets_all_from_another_host(self):
        if nginx_dav.missing():
            self.skipTest(nginx_dav.missing())
        server = self.enter(nginx_dav.Nginx(self.folder / "nginx", address="10.99.0.1", namespace=self.pair.first))
        remote = {"GEMVJIT_REMOTE": server.url()}
        first = self.node("first", remote, self.here)
        done = first.warmup("--remote-write", "--remote-required")
        self.assertEqual((done.code, done.compiled), (0, len(SHAPES)), done)
        second = self.node("second", remote, self.there)
        done = second.warmup("--remote-required")
        self.assertEqual((done.code, done.compiled), (0, 0), done)
        self.assertEqual(second.entries(), first.entries())

    def test_a_link_that_is_cut_under_way(self):
        server = namespaces.call_in(self.pair.first, FaultServer("10.99.0.1").__enter__)
        self.addCleanup(server.__exit__)
        self.publish_from_here(server)
        server.faults({"get-cas": "late:1"})
        node = self.node("node", {"GEMVJIT_REMOTE": server.url}, self.there)

        def cut():
            while not server.requests("get-cas"):
                time.sleep(0.01)
            self.pair.cut()

        server.clear()
        self.addCleanup(self.pair.mend)
        threading.Thread(target=cut, daemon=True).start()
        done = node.warmup()
        self.assertEqual((done.code, done.compiled), (0, len(SHAPES)), done)
        self.assertLess(done.seconds, 25)
        self.assert_right_kernels(node)
        # Where the link is cut already, no kernel waits longer.
        done = self.node("later", {"GEMVJIT_REMOTE": server.url}, self.there).warmup("--remote-required")
        self.assertEqual((done.code, done.compiled), (EXIT_REMOTE, len(SHAPES)), done)
        self.assertLess(done.seconds, 15)

    def publish_from_here(self, server):
        publisher = self.copy_of_published("publisher", {"GEMVJIT_REMOTE": server.url})
        publisher.prefix = self.here
        done = publisher.warmup("--remote-write", "--remote-required")
        self.assertEqual(done.code, 0, done)


if __name__ == "__main__":
    main({"Nginx": nginx_dav.missing, "S3": s3_moto.missing, "Hosts": namespaces.missing})
