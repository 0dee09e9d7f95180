"""Whatever a remote cache's server does, a warmup ends well: exit code 0, the right kernels, in time; with --remote-required
exit code 8; and nothing secret leaves the process but to the server that it is meant for.

    remote_faults_test.py BIN_FOLDER Faults|Uploads|Slow|Secrets
"""

import concurrent.futures
import re
import shutil
import socket
import time

import action_result
import certificates
from fault_server import FaultServer
from remote_case import EXIT_REMOTE, SHAPES, Node, RemoteCase, main

TOKEN = "token-that-nobody-may-see-4711"


class FaultCase(RemoteCase):
    """`store`: what a whole publication puts on a server, for servers of single tests to start with."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        with FaultServer() as server:
            shutil.copytree(cls.published.cache, cls.shared / "nodes" / "publisher")
            publisher = Node(cls.shared, "publisher", {"GEMVJIT_REMOTE": server.url})
            done = publisher.warmup("--remote-write", "--remote-required")
            if done.code != 0:
                raise AssertionError(str(done))
            cls.store = dict(server.store.files)

    def serving(self, filled=True, **options):
        server = self.enter(FaultServer(**options))
        if filled:
            server.store.files.update(self.store)
        return server


class Faults(FaultCase):
    def test_the_server_that_these_tests_are_made_with_serves(self):
        """Control: with no fault all is downloaded, over kept connections, and nothing is uploaded."""
        server = self.serving()
        node = self.node("node", {"GEMVJIT_REMOTE": server.url})
        self.assert_all_downloaded(node.warmup("--remote-required"), node)
        requests = server.requests()
        self.assertGreater(len(requests), len({line["connection"] for line in requests}))
        self.assertEqual({line["method"] for line in requests} - {"GET", "HEAD"}, set())

    def test_odd_but_right(self):
        for kind in ("get-ac", "get-cas"):
            for fault in ("chunked", "unlengthed", "redirect", "redirect:port", "redirect:host", "late:0.1"):
                with self.subTest(kind, fault=fault):
                    server = self.serving()
                    server.faults({kind: fault})
                    node = self.node(f"{kind}-{fault}", {"GEMVJIT_REMOTE": server.url})
                    self.assert_all_downloaded(node.warmup("--remote-required"), node)

    def test_downloads_run_side_by_side(self):
        server = self.serving()
        server.faults({"get-cas": "late:0.2"})
        node = self.node("node", {"GEMVJIT_REMOTE": server.url})
        self.assert_all_downloaded(node.warmup(), node)
        self.assertGreater(server.most_at_once, 1)

    def broken(self, kind, fault, code):
        """A warmup with and one without --remote-required, with one kernel, which is compiled."""
        server = self.serving()
        for more, wanted in (([], 0), (["--remote-required"], code)):
            server.faults({kind: fault})
            node = self.node(f"{kind}-{fault}-{len(more)}".replace("/", "_"), {"GEMVJIT_REMOTE": server.url})
            done = node.warmup(*more, shapes=SHAPES[:1])
            with self.subTest(kind, fault=fault, required=bool(more)):
                self.assertEqual((done.code, done.compiled), (wanted, 1), done)
                self.assertLess(done.seconds, 15, done)
                self.assert_right_kernels(node, SHAPES[:1])
                if code:
                    self.assertRegex(done.err, "(?i)remote", "a word about it")
        self.assertEqual(server.broken, [])
        return server

    def test_broken_answers(self):
        for kind in ("get-ac", "get-cas"):
            for fault in ("500", "503", "401", "403", "truncated", "flipped", "other", "reset", "garbage",
                          "redirect:loop", "redirect:gone", "redirect:file:///etc", "204", "304"):
                self.broken(kind, fault, EXIT_REMOTE)
        self.broken("get-ac", "swapped", EXIT_REMOTE)

    def test_a_plan_whose_names_and_digests_do_not_belong_together(self):
        server = self.serving()
        server.faults({"get-ac": ["swapped", "ok"]})
        node = self.node("node", {"GEMVJIT_REMOTE": server.url})
        self.assertEqual(node.warmup().code, 0)
        self.assert_right_kernels(node)

    def test_not_there_is_no_failure(self):
        for kind in ("get-ac", "get-cas"):
            self.broken(kind, "404", 0)
            self.broken(kind, "404:200000", 0)  # however long the page is that says so

    def test_an_endless_answer_is_not_kept(self):
        for kind in ("get-ac", "get-cas"):
            for fault in ("huge", "huge:length"):
                server = self.broken(kind, fault, EXIT_REMOTE)
                self.assertLess(server.endless_bytes, 2 * 200 << 20, "an entry has at most 64 MiB")

    def test_a_failure_that_passes(self):
        for kind in ("get-ac", "get-cas"):
            server = self.serving()
            server.faults({kind: ["503", "ok"]})
            node = self.node(kind, {"GEMVJIT_REMOTE": server.url})
            done = node.warmup()
            self.assertEqual(done.code, 0, done)
            self.assertLess(done.compiled, len(SHAPES), "one failure is no reason to give up")
            self.assert_right_kernels(node)

    def test_a_server_that_is_down_is_left_alone(self):
        """After three failures in a row none of the others is asked for."""
        server = self.serving()
        server.faults({kind: "500" for kind in ("get-ac", "get-cas", "head")})
        shapes = [f"{64 * n}x64" for n in range(1, 24)]
        done = self.node("node", {"GEMVJIT_REMOTE": server.url}).warmup(shapes=shapes)
        self.assertEqual((done.code, done.compiled), (0, len(shapes)), done)
        self.assertLess(len(server.requests()), len(shapes), "what was under way when the third failed, and no more")
        warnings = [line for line in done.err.splitlines() if re.search("(?i)remote", line) and "warn" in line]
        self.assertEqual(len(warnings), 1, done.err)

    def test_nobody_listens(self):
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{unused.getsockname()[1]}"
            for more, code in (([], 0), (["--remote-required"], EXIT_REMOTE)):
                done = self.node(f"node{code}", {"GEMVJIT_REMOTE": url}).warmup(*more, shapes=SHAPES[:1])
                self.assertEqual((done.code, done.compiled), (code, 1), done)


class Uploads(FaultCase):
    def test_entries_come_before_what_names_them(self):
        server = self.serving(filled=False)
        node = self.node("node", {"GEMVJIT_REMOTE": server.url})
        self.assertEqual(node.warmup("--remote-write", "--remote-required", shapes=SHAPES[:2]).code, 0)
        there = set()
        manifests = 0
        for line in server.requests("put-cas", "put-ac"):
            self.assertTrue(line["stored"], line)
            if line["class"] == "put-cas":
                there.add(line["path"][-64:])
                continue
            manifests += 1
            for _, digest, _ in action_result.parse(server.store.get(line["path"])):
                self.assertIn(digest, there, "a reader would find a manifest of nothing")
        self.assertGreaterEqual(manifests, 2)

    def test_broken_uploads(self):
        for kind in ("put-cas", "put-ac"):
            for fault in ("500", "401", "403", "404", "413", "reset", "half-upload", "garbage", "redirect:host"):
                server = self.serving(filled=False)
                for more, code in (([], 0), (["--remote-required"], EXIT_REMOTE)):
                    server.faults({kind: fault})
                    node = self.node(f"{kind}-{fault}-{code}", {"GEMVJIT_REMOTE": server.url})
                    done = node.warmup("--remote-write", *more, shapes=SHAPES[:1])
                    with self.subTest(kind, fault=fault, required=bool(more)):
                        self.assertEqual((done.code, done.compiled), (code, 1), done)
                        self.assertLess(done.seconds, 15, done)
                        self.assert_right_kernels(node, SHAPES[:1])
                        if kind == "put-cas":
                            self.assertEqual(server.requests("put-ac"), [], "no manifest of an entry that is not there")
                self.assertEqual(server.broken, [])

    def test_push_says_what_failed(self):
        server = self.serving(filled=False)
        server.faults({"put-cas": "500"})
        node = self.copy_of_published("node", {"GEMVJIT_REMOTE": server.url, "GEMVJIT_REMOTE_WRITE": "1"})
        done = node.run("gemvjit-cache", "push", "--set", "decode")
        self.assertNotEqual(done.code, 0, done)
        self.assertIn("500", done.err)


    def test_pull_says_what_failed(self):
        server = self.serving()
        server.faults({"get-cas": "500"})
        plan = self.folder / "plan.json"
        self.assertEqual(self.published.warmup("--dry-run", "--plan-out", plan).code, 0)
        for name, environment in (("server", {}), ("token", {"GEMVJIT_REMOTE_TOKEN_FILE": "/none"})):
            node = self.node(name, {"GEMVJIT_REMOTE": server.url} | environment)
            done = node.run("gemvjit-cache", "pull", "--plan", plan)
            self.assertEqual(done.code, EXIT_REMOTE, done)
            self.assertEqual(node.entries(), {})
        server.faults({})
        server.store.files = {name: body for name, body in self.store.items() if "/cas/" not in name}
        done = self.node("missing", {"GEMVJIT_REMOTE": server.url}).run("gemvjit-cache", "pull", "--plan", plan)
        self.assertEqual(done.code, 9, done)


class Slow(FaultCase):
    """All of one test at the same time: waiting costs nothing."""

    def test_no_wait_is_longer_than_its_limit(self):
        started = []
        for kind in ("get-ac", "get-cas"):
            for fault in ("hang", "slow"):
                server = self.serving()
                server.faults({kind: fault})
                started.append((f"{kind} {fault}", server.url, [], 0, 17))
        server = self.serving()
        server.faults({"get-ac": "hang", "get-cas": "hang"})
        started.append(("required", server.url, ["--remote-required"], EXIT_REMOTE, 17))
        server = self.serving(filled=False)
        server.faults({"put-cas": "hang"})
        started.append(("put-cas hang", server.url, ["--remote-write"], 0, 17))
        started.append(("connecting", self.deaf(), [], 0, 9))
        def run(name, url, more, *_):
            node = self.node(name, {"GEMVJIT_REMOTE": url})
            return node, node.warmup(*more, shapes=SHAPES[:2])

        with concurrent.futures.ThreadPoolExecutor(len(started)) as pool:
            ended = list(pool.map(lambda told: run(*told), started))
        for (name, _, _, code, limit), (node, done) in zip(started, ended):
            with self.subTest(name):
                self.assertEqual((done.code, done.compiled), (code, 2), done)
                self.assertLess(done.seconds, limit, done)
                self.assert_right_kernels(node, SHAPES[:2])


class Secrets(FaultCase):
    def token_file(self, token=TOKEN):
        path = self.folder / "token"
        path.write_text(token + "\n")
        path.chmod(0o600)
        return str(path)

    def assert_silent(self, *texts):
        for text in texts:
            for secret in (TOKEN, "a-secret-of-s3", "a-session-of-s3", "a-password"):
                self.assertNotIn(secret, text)

    def test_a_token_is_in_no_command_line_and_no_output(self):
        server = self.serving(auth=f"bearer:{TOKEN}")
        told = {"GEMVJIT_REMOTE_TOKEN_FILE": self.token_file()}, {"GEMVJIT_REMOTE_TOKEN": TOKEN}
        for at, environment in enumerate(told):
            for wrong in (False, True):
                if wrong:
                    server.auth = "bearer:another"
                server.faults({} if wrong else {"get-ac": "late:0.3"})
                server.clear()
                node = self.node(f"node{at}{wrong}", {"GEMVJIT_REMOTE": server.url} | environment)
                process = node.start("gemvjit-warmup", *node.kernels(SHAPES[:1]), "--json", "-vv")
                while process.poll() is None and not server.requests():
                    time.sleep(0.005)
                line = open(f"/proc/{process.pid}/cmdline", "rb").read().decode()
                out, err = process.communicate(timeout=60)
                self.assertTrue(wrong or "gemvjit-warmup" in line, "looked while it ran")
                self.assertEqual(process.returncode, 0, err)
                self.assertEqual({line["authorization"] for line in server.requests()}, {True})
                self.assert_silent(line, out, err)
                server.auth = f"bearer:{TOKEN}"

    def test_what_doctor_says_holds_no_secret(self):
        server = self.serving(auth=f"bearer:{TOKEN}")
        for name, environment in (
                ("bearer", {"GEMVJIT_REMOTE": server.url, "GEMVJIT_REMOTE_TOKEN": TOKEN}),
                ("file", {"GEMVJIT_REMOTE": server.url, "GEMVJIT_REMOTE_TOKEN_FILE": self.token_file()}),
                ("s3", {"GEMVJIT_REMOTE": "s3://bucket/x", "AWS_ENDPOINT_URL_S3": server.url, "AWS_REGION": "r",
                        "AWS_ACCESS_KEY_ID": "AKIAX", "AWS_SECRET_ACCESS_KEY": "a-secret-of-s3",
                        "AWS_SESSION_TOKEN": "a-session-of-s3"}),
                ("url", {"GEMVJIT_REMOTE": server.url.replace("//", "//user:a-password@")})):
            node = self.node(name, environment)
            for more in ([], ["--json"]):
                done = node.run("gemvjit-cache", "doctor", *more)
                self.assert_silent(done.out, done.err)
            done = node.warmup("-vv", shapes=SHAPES[:1])
            self.assert_silent(done.out, done.err)
            done = node.warmup("--remote", environment["GEMVJIT_REMOTE"].replace("http:", "nonsense:"), shapes=SHAPES[:1])
            self.assert_silent(done.out, done.err)

    def test_no_credentials_go_where_a_redirect_leads(self):
        """They go to the scheme, host and port that were configured, also where a redirect leads back there."""
        netrcs = {}
        for name, who in (("named", "machine 127.0.0.1"), ("default", "default"),
                          ("both", "machine 127.0.0.2 login a password b machine 127.0.0.1")):
            path = self.folder / f"netrc-{name}"
            path.write_text(f"{who} login node password a-password\n")
            path.chmod(0o600)
            netrcs[f"netrc {name}"] = {"GEMVJIT_REMOTE_NETRC": str(path)}
        s3 = {"AWS_REGION": "r", "AWS_ACCESS_KEY_ID": "AKIAX", "AWS_SECRET_ACCESS_KEY": "a-secret-of-s3",
              "AWS_SESSION_TOKEN": "a-session-of-s3"}
        for name, environment in (("token", {"GEMVJIT_REMOTE_TOKEN_FILE": self.token_file()}), ("s3", s3),
                                  *netrcs.items()):
            for fault in ("redirect:host", "redirect:port", "redirect:same"):
                server = self.serving()
                url = {"GEMVJIT_REMOTE": server.url}
                if name == "s3":
                    url = {"GEMVJIT_REMOTE": "s3://bucket", "AWS_ENDPOINT_URL_S3": server.url}
                    server.store.files = {"/bucket" + path: body for path, body in self.store.items()}
                server.faults({"get-ac": fault, "get-cas": fault})
                node = self.node(f"{name}-{fault}".replace(" ", "-"), url | environment)
                with self.subTest(name, fault=fault):
                    self.assertEqual(node.warmup(shapes=SHAPES[:1]).code, 0)
                    first = [line for line in server.requests() if line["port"] == server.ports[0]]
                    led = [line for line in server.requests() if line["port"] != server.ports[0]]
                    self.assertTrue(first and all(line["authorization"] for line in first), "the server itself gets them")
                    if fault == "redirect:same":
                        led, first = [], [line for line in first if "/_redirected" in line["path"]]
                        self.assertTrue(name == "s3" or first and all(line["authorization"] for line in first))
                    elif name != "s3":
                        self.assertTrue(led, "the redirect was followed")
                    for line in led:
                        self.assertFalse(line["authorization"], line)
                        self.assertNotIn("x-amz-security-token", [header.lower() for header in line["headers"]])

    def test_tls(self):
        made = certificates.make(self.folder / "certificates")
        if made is None:
            self.skipTest("no openssl program")
        names = {"CA": "ca.pem", "CERT": "client.pem", "KEY": "client.key"}
        keys = {f"GEMVJIT_REMOTE_{name}": str(made / file) for name, file in names.items()}
        authority = {"GEMVJIT_REMOTE_CA": keys["GEMVJIT_REMOTE_CA"]}
        for name, client, environment, opens in (
                ("right", False, authority, True), ("unknown authority", False, {}, False),
                ("another authority", False, {"GEMVJIT_REMOTE_CA": str(made / "other_ca.pem")}, False),
                ("absent authority", False, {"GEMVJIT_REMOTE_CA": "/none.pem"}, False),
                ("client", True, keys, True), ("no client certificate", True, authority, False)):
            server = self.serving(certificates=made, client_certificate=client)
            node = self.node(name, {"GEMVJIT_REMOTE": server.url} | environment)
            with self.subTest(name):
                done = node.warmup("--remote-required", shapes=SHAPES[:1])
                self.assertEqual((done.code, done.compiled), (0, 0) if opens else (EXIT_REMOTE, 1), done)

    def test_a_clients_key(self):
        """Its certificate is shown to no other server, and nobody is asked for a key's password."""
        made = certificates.make(self.folder / "certificates")
        if made is None:
            self.skipTest("no openssl program")
        keys = {f"GEMVJIT_REMOTE_{name}": str(made / file)
                for name, file in (("CA", "ca.pem"), ("CERT", "client.pem"), ("KEY", "client.key"))}
        server = self.serving(certificates=made, client_certificate=True)
        server.faults({"get-ac": "redirect:port", "get-cas": "redirect:port"})
        done = self.node("led away", {"GEMVJIT_REMOTE": server.url} | keys).warmup(shapes=SHAPES[:1])
        self.assertEqual((done.code, done.compiled), (0, 1), done)
        self.assertEqual({line["port"] for line in server.requests()}, {server.ports[0]})
        certificates.openssl("pkey", "-aes256", "-passout", "pass:secret", "-in", made / "client.key", "-out",
                             made / "locked.key")
        locked = keys | {"GEMVJIT_REMOTE_KEY": str(made / "locked.key")}
        done = self.node("locked", {"GEMVJIT_REMOTE": server.url} | locked).warmup(shapes=SHAPES[:1])
        self.assertEqual((done.code, done.compiled), (0, 1), done)
        self.assertIn("a key with a password", done.err)

    def test_no_redirect_leads_out_of_tls_with_a_token(self):
        made = certificates.make(self.folder / "certificates")
        if made is None:
            self.skipTest("no openssl program")
        plain = self.serving()
        server = self.serving(certificates=made)
        server.faults({"get-ac": f"redirect:{plain.url}", "get-cas": f"redirect:{plain.url}"})
        node = self.node("node", {"GEMVJIT_REMOTE": server.url, "GEMVJIT_REMOTE_TOKEN_FILE": self.token_file(),
                                  "GEMVJIT_REMOTE_CA": str(made / "ca.pem")})
        self.assertEqual(node.warmup(shapes=SHAPES[:1]).code, 0)
        self.assertNotEqual(server.requests(), [])
        self.assertEqual([line for line in plain.requests() if line["authorization"]], [])


if __name__ == "__main__":
    main({name: lambda: None for name in ("Faults", "Uploads", "Slow", "Secrets")})
