"""Another user who may write in a cache, or in the folder of the output, puts links to files that are not his in the place of
all that the tools make, use and remove there: nothing outside the cache may change, nothing may crash or hang, and no wrong
kernel may come out.

    race_test.py BIN_FOLDER ATTACKER NAIVE CLASS

CLASS is Control, PlantedCache, PlantedOutput, Shared, Foreign or Output. Exits 77 (skipped, with the reason) where root, NVRTC
or inotify is missing: the users are made-up ids. Each race takes GEMVJIT_TEST_RACE_SECONDS, 5 unless set.

Shared: a cache of GEMVJIT_CACHE_TRUST=shared; the victim is a member of its group, as the attacker is. Foreign: the attacker's
own cache, which root imports to and cleans; and he may move the cache itself. Output: a folder of the group, to which the
victim writes bundles, layouts, plans, tables, cubins and dumps. PlantedCache, PlantedOutput: the links are there before the
victim comes.
Control: a victim without care, whom the same attacker must get the better of.
"""

import collections
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

import canaries

sys.path.append(str(Path(__file__).resolve().parents[1] / "remote"))

BIN, ATTACKER, NAIVE = (Path(argument).resolve() for argument in sys.argv[1:4])
SECONDS = float(os.environ.get("GEMVJIT_TEST_RACE_SECONDS", "5"))
SHAPES = ("64x64", "128x64", "64x128", "128x128")  # of the smallest kernels, which compile in 0.2 s
ARCH = "sm_90a"
HANGS_AFTER = 60  # seconds: far more than a run takes on a busy machine


def skip(reason):
    print(f"SKIPPED: {reason}")
    sys.exit(77)


def settings(**more):
    return {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "GEMVJIT_CONFIG": "none"} | more


def run(command, environment, user=None, group=None, timeout=HANGS_AFTER):
    who = {} if user is None else {"user": user, "group": group, "extra_groups": []}
    return subprocess.run([str(part) for part in command], env=environment, capture_output=True, check=False,
                          timeout=timeout, cwd="/", umask=0o022, stdin=subprocess.DEVNULL, **who)


class World(unittest.TestCase):
    """A folder in which all happens, with a bundle and a cache of a few kernels, and two users in one group."""

    @classmethod
    def setUpClass(cls):
        cls.folder = Path(tempfile.mkdtemp(prefix="trust-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.folder.chmod(0o755)
        cls.victim, cls.attacker, cls.group = random.sample(range(100_000, 200_000), 3)  # no account has them
        cls.template = cls.folder / "template"
        made = run([BIN / "gemvjit-warmup", "--arch", ARCH, "-q", "-j", "1", "--cache-dir", cls.template,
                    *(part for shape in SHAPES for part in ("--shape", shape + ":bf16"))], settings(), timeout=240)
        if made.returncode == 5:
            skip(f"no kernels can be made here: {made.stderr.decode()}")
        assert made.returncode == 0, made.stderr.decode()
        cls.bundle = cls.folder / "kernels.gjb"
        run([BIN / "gemvjit-cache", "export", cls.bundle, "--cache-dir", cls.template], settings())
        cls.bundle.chmod(0o644)
        cls.kernels = {path.name: cls.cubin_of(path.name) for path in cls.template.rglob("*.entry")}
        assert cls.kernels
        if run([BIN / "gemvjit-cache", "--version"], settings(), cls.victim, cls.group).returncode != 0:
            skip(f"other users cannot run the programs in {BIN}")
        cls.key = cls.folder / "signing.pem"
        if shutil.which("openssl"):
            run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", cls.key], settings())
            os.chown(cls.key, cls.victim, cls.group)
            cls.key.chmod(0o600)
        cls.privates = cls.folder / "of_the_victim"
        cls.privates.mkdir(mode=0o700)
        os.chown(cls.privates, cls.victim, cls.group)

    @classmethod
    def cubin_of(cls, name):
        """The digest of the code of an entry of the template, by its file's name."""
        out = cls.folder / "cubin"
        digest = name.rpartition("-")[2].partition(".")[0]
        run([BIN / "gemvjit-cache", "disasm", digest, "--cubin", out, "--cache-dir", cls.template], settings())
        return digest, hashlib.sha256(out.read_bytes()).hexdigest()

    def setUp(self):
        self.runs = collections.Counter()  # by verb
        self.ends = collections.Counter()  # by verb and exit code
        self.faults = []
        self.canary = self.folder / "canary"

    def make_canaries(self, uid, gid):
        self.before = canaries.put_right(self.canary, uid, gid, self.template, self.group)

    def make_cache(self, folder, owner, group, trust):
        """A copy of the template, as that owner would have made it. The root of a shared one is root's."""
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.template, folder)
        shared = trust == "shared"
        for path in (folder, *folder.rglob("*")):
            canaries.own(path, owner, group, (0o2770 if shared else 0o700) if path.is_dir() else 0o660 if shared else 0o600)
        if shared:
            os.chown(folder, 0, group)

    def act(self, verb, command, environment, user, group):
        """One run of the victim."""
        self.runs[verb] += 1
        try:
            done = run(command, environment, user, group)
        except subprocess.TimeoutExpired:
            self.faults.append(f"{verb}: not done after {HANGS_AFTER} s")
            return
        self.ends[f"{verb}: {done.returncode}"] += 1
        if done.returncode < 0 or done.returncode > 10:
            self.faults.append(f"{verb}: ended with {done.returncode}: {done.stderr.decode(errors='replace')[-500:]}")

    def check_cubin(self, path, digest):
        """What a verb wrote as the code of that kernel, to a place that is the victim's alone, is that."""
        if path.exists() and hashlib.sha256(path.read_bytes()).hexdigest() != dict(self.kernels.values())[digest]:
            self.faults.append(f"another kernel than {digest} was served")
        path.unlink(missing_ok=True)

    def links(self, hard_links=True):
        """The attacker's arguments."""
        private, note = self.canary / "private", self.canary / "linkable" / "note.txt"
        return ["--twin", private / "twin", "--folder", private / "thesis", "--folder", private / "empty",
                "--folder", private, "--folder", private / "twin" / "v1" / "quarantine", "--folder", private / "twin",
                "--file", private / "large.bin", "--file", private / "program",
                "--file", private / "thesis" / "chapter007.txt", "--file", note, *(["--hard-link", note] if hard_links else [])]

    def start_attack(self, where, *more):
        started = []
        for seed, role in enumerate(("watch", "flip")):
            command = [ATTACKER, role, where, *self.links(), *more, "--seed", str(seed + 1)]
            started.append(subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, cwd="/", umask=0,
                                            user=self.attacker, group=self.group, extra_groups=[]))
        time.sleep(0.1)  # until it watches
        for one in started:
            if one.poll() == 3:
                skip("there is no inotify")
        return started

    def end_attack(self, started):
        """What was swapped, by technique."""
        swaps = collections.Counter()
        for one in started:
            one.terminate()
        for one in started:
            out, _ = one.communicate(timeout=HANGS_AFTER)
            self.assertEqual(one.returncode, 0, "the attacker's own failure")
            swaps.update(json.loads(out))
        return swaps

    def race(self, name, where, verbs, least_swaps, *attack):
        """The victim's verbs, one after another, each at least once, beside the attacker."""
        started = self.start_attack(where, *attack)
        end, hard_end = time.monotonic() + SECONDS, time.monotonic() + SECONDS + 60
        rounds = 0
        try:
            while time.monotonic() < end:
                for verb, act in verbs:
                    act(verb)
                    if time.monotonic() > (end if rounds > 0 else hard_end):
                        break
                rounds += 1
        finally:
            swaps = self.end_attack(started)
        print(f"{name}: {sum(self.runs.values())} runs of the victim: {dict(self.runs)}")
        print(f"{name}: exit codes: {dict(sorted(self.ends.items()))}")
        print(f"{name}: the attacker: {dict(swaps)}", flush=True)
        of_new_things = sum(swaps[kind] for kind in ("rename", "unlink", "hard_link", "fifo", "folder"))
        self.assertGreater(of_new_things, 3, "the attacker was too slow to show anything")
        self.assertGreater(of_new_things + swaps["exchange"], least_swaps, "the attacker did too little to show anything")
        self.assertGreaterEqual(min(self.runs[verb] for verb, _ in verbs), 1, "a verb was not tried")
        well = sum(count for end, count in self.ends.items() if end.endswith(": 0"))
        self.assertGreater(well, 0.2 * sum(self.runs.values()), "the victim hardly ever got anything done")
        self.judge(name)

    def judge(self, name):
        lines = canaries.differences(self.before, canaries.state(self.canary))
        self.assertFalse(lines or self.faults, f"{name}: {len(lines)} canaries changed, {len(self.faults)} faults\n"
                         + "\n".join(lines[:60] + self.faults[:20]))

    def verbs_of_a_cache(self, cache, environment, user, group, out):
        """(verb, function) for everything that gemvjit-cache and gemvjit-warmup do with a cache. `out` is a folder of the
        victim's own."""
        tool = [BIN / "gemvjit-cache", "--cache-dir", cache]
        digests = [digest for digest, _ in self.kernels.values()]
        plan = out / "plan.json"
        planned = run([BIN / "gemvjit-warmup", "--arch", ARCH, "--shape", SHAPES[0] + ":bf16", "--dry-run", "--plan-out",
                       plan], environment, user, group)
        self.assertEqual(planned.returncode, 0, planned.stderr)

        def plain(*arguments):
            return lambda verb: self.act(verb, [*tool, *arguments], environment, user, group)

        def warm(verb):
            self.act(verb, [BIN / "gemvjit-warmup", "--arch", ARCH, "-q", "-j", "2", "--cache-dir", cache, "--shape",
                            random.choice(SHAPES) + ":bf16"], environment, user, group)

        def disassemble(verb):
            digest, path = random.choice(digests), out / "served.cubin"
            self.act(verb, [*tool, "disasm", digest, "--cubin", path], environment, user, group)
            self.check_cubin(path, digest)

        stock = plain("import", self.bundle)
        rows = [("import", stock), ("ls", plain("ls", "--json")), ("show", plain("show", digests[0])),
                ("import", stock), ("verify", plain("verify")), ("stats", plain("stats")), ("disasm", disassemble),
                ("import", stock), ("verify --repair", plain("verify", "--deep", "--repair")),
                ("explain", plain("explain", "64", "64", "1", "--arch", ARCH, "--bf16")),
                ("import", stock), ("export", plain("export", out / "out.gjb")), ("rm", plain("rm", digests[1])),
                ("import", stock), ("rm --damaged", plain("rm", "--damaged")), ("warmup", warm), ("doctor", plain("doctor")),
                ("import", stock), ("gc --max-bytes", plain("gc", "--max-bytes", "20K")), ("path", plain("path")),
                ("import", stock), ("gc --max-age", plain("gc", "--max-age", "1s", "--other-versions")),
                ("config", plain("config", "--origin")), ("import", stock), ("disasm", disassemble),
                ("gc --keep-plan", plain("gc", "--keep-plan", plan)), ("import", stock), ("warmup", warm),
                ("rm --all", plain("rm", "--all"))]
        if self.key.exists():
            rows.insert(9, ("sign", plain("sign", "--sign-key", self.key)))
        return rows


class Shared(World):
    def test_every_verb_beside_a_member_of_the_group(self):
        from fault_server import FaultServer
        cache = self.folder / "cache"
        self.make_cache(cache, self.victim, self.group, "shared")
        self.make_canaries(self.victim, self.victim)
        with FaultServer() as server:
            environment = settings(GEMVJIT_CACHE_TRUST="shared", GEMVJIT_CACHE_MAX_BYTES="1048576",
                                   GEMVJIT_CACHE_DIR=str(cache), GEMVJIT_REMOTE=server.url, GEMVJIT_REMOTE_WRITE="1")
            verbs = self.verbs_of_a_cache(cache, environment, self.victim, self.group, self.privates)
            tool = [BIN / "gemvjit-cache", "--cache-dir", cache]
            for verb in ("push", "pull"):
                verbs.append((verb, lambda name: self.act(name, [*tool, name, "--set", "tests"], environment, self.victim,
                                                          self.group)))
            self.race("Shared", cache, verbs, 40 * SECONDS, "--spoil")


class Foreign(World):
    def home_of_the_attacker(self, name):
        """His home, his cache in it, and a folder of root's."""
        home, out = self.folder / f"home_{name}", self.folder / f"of_root_{name}"
        home.mkdir()
        cache = home / "cache"
        self.make_cache(cache, self.attacker, self.group, "owner")
        os.chown(home, self.attacker, self.group)
        self.make_canaries(0, 0)
        out.mkdir(mode=0o700)
        return home, cache, out

    def test_root_in_the_cache_of_the_attacker(self):
        _, cache, out = self.home_of_the_attacker("still")
        verbs = self.verbs_of_a_cache(cache, settings(GEMVJIT_CACHE_MAX_BYTES="1048576"), None, None, out)
        self.race("Foreign", cache, verbs, 40 * SECONDS, "--spoil")

    def test_root_in_a_cache_that_is_moved(self):
        home, cache, out = self.home_of_the_attacker("moved")
        verbs = self.verbs_of_a_cache(cache, settings(), None, None, out)
        self.race("Foreign, moved", home, verbs, 40 * SECONDS)


class Output(World):
    def test_every_writer_beside_a_member_of_the_folders_group(self):
        out = self.folder / "out"
        out.mkdir()
        canaries.own(out, 0, self.group, 0o2770)
        self.make_canaries(self.victim, self.victim)
        cache = self.privates / "cache"
        self.make_cache(cache, self.victim, self.victim, "owner")
        environment = settings(GEMVJIT_CACHE_DIR=str(cache), TMPDIR=str(out), GEMVJIT_NVDISASM="/bin/cat",
                               GEMVJIT_DUMP_DIR=str(out / "dump"))
        digest = next(iter(self.kernels.values()))[0]
        tool, warmup, tune = (BIN / f"gemvjit-{name}" for name in ("cache", "warmup", "tune"))
        whole = json.loads((Path(__file__).resolve().parents[2] / "tuning_tables" / "sm_90a.json").read_text())
        table = self.folder / "few.json"
        table.write_text(json.dumps(whole | {"entries": whole["entries"][:8]}))

        def plain(*command):
            return lambda verb: self.act(verb, command, environment, self.victim, self.group)

        def dump(verb):
            again = {**environment, "GEMVJIT_CACHE_DIR": str(self.privates / f"none-{self.runs[verb]}")}
            self.act(verb, [warmup, "--arch", ARCH, "-q", "-j", "1", "--shape", "64x64:bf16"], again, self.victim, self.group)

        verbs = [("export", plain(tool, "export", out / "kernels.gjb")),
                 ("export --oci", plain(tool, "export", "--oci", "--replace", out / "layout")),
                 ("disasm --cubin", plain(tool, "disasm", digest, "--cubin", out / "kernel.cubin")),
                 ("disasm", plain(tool, "disasm", digest)),
                 ("plan", plain(warmup, "--arch", ARCH, "--shape", "64x64", "--dry-run", "--plan-out", out / "plan.json")),
                 ("tune --predict", plain(tune, "--predict", "sm_100a", "--sm-count", "148", "--sample-compile", "0",
                                          "--from", table, "--output", out / "table.json")),
                 ("dump", dump)]
        self.race("Output", out, verbs, 40 * SECONDS)


class Plants(World):
    """Links of the attacker that are there before the victim comes. Root makes them, to know the rights of all."""

    def plant(self, path, target, hard=False):
        """hard: a hard link, also where this kernel would not let the attacker make it."""
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        if hard:
            os.link(target, path)
            return
        path.symlink_to(target)
        os.chown(path, self.attacker, self.group, follow_symlinks=False)
        os.utime(path, (canaries.LONG_AGO, canaries.LONG_AGO), follow_symlinks=False)


class PlantedCache(Plants):
    def places(self, cache):
        """(name, path, target, hard)"""
        private = self.canary / "private"
        twin = private / "twin"
        entry = next(path.relative_to(self.template) for path in sorted(self.template.rglob("*.entry")))
        for target in (twin / "v1", private / "thesis"):
            yield "v1", cache / "v1", target, False
        for target in (twin / "v1" / ARCH, private / "thesis"):
            yield "the target's folder", cache / "v1" / ARCH, target, False
        for target in (twin / entry.parent, private / "thesis"):
            yield "a fan-out folder", cache / entry.parent, target, False
        for target in (twin / "v1" / "quarantine", private / "thesis", private):
            yield "quarantine", cache / "v1" / "quarantine", target, False
        for target in (twin / "v1" / "usage", private / "thesis" / "chapter001.txt", private / "nothing"):
            yield "the ledger", cache / "v1" / "usage", target, False
        yield "the ledger, hard", cache / "v1" / "usage", private / "thesis" / "chapter001.txt", True
        for target in (twin / entry, private / "thesis" / "chapter001.txt", private / "thesis"):
            yield "an entry", cache / entry, target, False
        yield "an entry, hard", cache / entry, private / "thesis" / "chapter001.txt", True
        yield "a whole entry, hard", cache / entry, twin / entry, True
        for target in (private / "thesis", private / "thesis" / "chapter001.txt"):
            yield "a temporary", cache / entry.parent / ".tmp-1-0123456789abcdef", target, False
        yield "a temporary, hard", cache / entry.parent / ".tmp-1-0123456789abcdef", private / "program", True
        yield "the folder of locks", cache / f"locks-{self.victim}", private / "thesis", False
        yield "the folder of locks", cache / "locks", private / "thesis", False
        yield "another version", cache / "v0", twin / "v0", False
        yield "a version of the future", cache / "v9999", twin / "v9999", False

    def test_links_in_every_place_of_a_cache(self):
        cache, tool = self.folder / "cache", BIN / "gemvjit-cache"
        planted = 0
        self.make_canaries(self.victim, self.victim)
        failures = []
        for trust, user in (("shared", self.victim), ("owner", None)):
            self.make_canaries(self.victim if user else 0, self.victim if user else 0)
            environment = settings(GEMVJIT_CACHE_TRUST=trust, GEMVJIT_CACHE_MAX_BYTES="1048576", GEMVJIT_CACHE_DIR=str(cache))
            for name, path, target, hard in self.places(cache):
                self.make_cache(cache, user or self.attacker, self.group, trust)
                some = sorted((cache / "v1" / ARCH).rglob("*.entry"))
                some[-1].write_bytes(b"garbage")  # in another folder than the first, which has the links
                self.plant(path, target, hard)
                planted += 1
                warmup = [BIN / "gemvjit-warmup", "--arch", ARCH, "-q", "--cache-dir", cache, "--shape", "64x64:bf16"]
                for command in ((tool, "import", self.bundle), warmup, (tool, "verify", "--deep", "--repair"),
                                (tool, "gc", "--max-bytes", "1"), (tool, "import", self.bundle), (tool, "rm", "--damaged"),
                                (tool, "gc", "--max-age", "0s", "--other-versions")):
                    self.act(f"{trust}, {name}: {command[1]}", command, environment, user, self.group)
                after = canaries.state(self.canary)
                lines = canaries.differences(self.before, after)
                if lines:
                    failures.append(f"{trust}, {name} -> {target.relative_to(self.canary)}: {len(lines)} canaries changed: "
                                    + "; ".join(lines[:3]))
                    self.make_canaries(self.victim if user else 0, self.victim if user else 0)
        print(f"PlantedCache: {planted} links, {sum(self.runs.values())} runs of the victim")
        self.assertGreater(planted, 40)
        self.assertFalse(failures or self.faults, "\n" + "\n".join(failures + self.faults))


class PlantedOutput(Plants):
    def test_links_in_every_place_of_an_output(self):
        out, private = self.folder / "out", self.canary / "private"
        self.make_canaries(self.victim, self.victim)
        cache = self.privates / "cache"
        self.make_cache(cache, self.victim, self.victim, "owner")
        tool, failures = BIN / "gemvjit-cache", []
        digest = next(iter(self.kernels.values()))[0]
        chapter, thesis = private / "thesis" / "chapter001.txt", private / "thesis"
        export, oci = (tool, "export", out / "o"), (tool, "export", "--oci", "--replace", out / "o")
        warm = (BIN / "gemvjit-warmup", "--arch", ARCH, "-q", "-j", "1", "--shape", "64x64:bf16")
        key = next(path.name for path in self.template.rglob("*-k64-*.entry")).rpartition("-")[0] + "-" + ARCH
        names = ("kernel.cu", "kernel.ptx", "kernel.cubin", "recipe.txt")
        rows = [("o", chapter, export), ("o", thesis, export), ("o", private / "nothing", export),
                (".tmp-1-0123456789abcdef.gjb", chapter, export), ("o", thesis, oci), ("o", private / "twin", oci),
                (".tmp-1-0123456789abcdef.oci", private / "twin", oci), (".tmp-1-0123456789abcdef.oci", thesis, oci),
                ("o", chapter, (tool, "disasm", digest, "--cubin", out / "o")),
                ("o", chapter, (*warm, "--dry-run", "--plan-out", out / "o")),
                ("o", private / "nothing", (*warm, "--dry-run", "--plan-out", out / "o")),
                ("dump", thesis, warm), (f"dump/{key}", thesis, warm),
                *((f"dump/{key}/{name}", chapter, warm) for name in names)]
        for number, (name, target, command) in enumerate(rows):
            shutil.rmtree(out, ignore_errors=True)
            out.mkdir()
            canaries.own(out, 0, self.group, 0o2770)
            self.plant(out / name, target)
            for path in (out / name).parents:
                if path != out and path.is_relative_to(out):
                    canaries.own(path, self.attacker, self.group, 0o2770)
            environment = settings(GEMVJIT_CACHE_DIR=str(cache))
            if command is warm:
                environment |= {"GEMVJIT_DUMP_DIR": str(out / "dump"), "GEMVJIT_CACHE_DIR": str(self.privates / f"new{number}")}
            self.act(f"output {name}", command, environment, self.victim, self.group)
            lines = canaries.differences(self.before, canaries.state(self.canary))
            if lines:
                failures.append(f"{command[0].name} {command[1]}, {name} -> {target.relative_to(self.canary)}: {len(lines)} "
                                "canaries changed: " + "; ".join(lines[:3]))
                self.make_canaries(self.victim, self.victim)
        self.assertFalse(failures or self.faults, "\n" + "\n".join(failures + self.faults))


class Control(World):
    def test_the_attacker_gets_the_better_of_a_victim_without_care(self):
        expected = {"modes": "mode was", "prune": "is gone", "move": "written was", "write": "content was",
                    "stamp": "used was"}
        for name, difference in expected.items():
            with self.subTest(name):
                cache = self.folder / "cache"
                self.make_cache(cache, self.victim, self.group, "shared")
                self.make_canaries(self.victim, self.victim)
                started = self.start_attack(cache, "--spoil")
                victim = subprocess.Popen([NAIVE, name, cache], user=self.victim, group=self.group, extra_groups=[], cwd="/")
                end, lines = time.monotonic() + 20, []
                try:
                    while not any(difference in line for line in lines) and time.monotonic() < end:
                        time.sleep(0.2)
                        lines = canaries.differences(self.before, canaries.state(self.canary))
                finally:
                    victim.terminate()
                    victim.wait()
                    swaps = self.end_attack(started)
                print(f"Control, {name}: {sum(difference in line for line in lines)} canaries changed, {dict(swaps)}")
                self.assertTrue(any(difference in line for line in lines), f"{name}: nothing was seen to change")


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    if os.geteuid() != 0:
        skip("the test is for root, which acts as two other users")
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]], verbosity=1)
