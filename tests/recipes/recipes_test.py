"""The recipes of examples/ do what they say, as far as a machine without their hosts can show (docs/recipes.md).

    recipes_test.py BIN_FOLDER CLASS

CLASS is Image, Systemd or Kubernetes. Exits 77 (skipped, with the reason) where root or a tool is missing. The commands of
the unit and of the pod are taken from their files and run as their user, with their environment, in their folders' place.
"""

import os
import random
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.argv[1])
SHAPE = "256x512"
KERNELS = 4  # of that shape for one target: three token tiles and dequantize_rows


def skip(reason):
    print(f"SKIPPED: {reason}")
    sys.exit(77)


if os.geteuid() != 0:
    skip("the recipes are for root, which makes other users' folders and mounts")


def run(command, environment=None, **options):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False, timeout=240,
                          env=environment, **options)


def free_of(environment):
    """Those variables and nothing of the caller's."""
    return {"PATH": f"{BIN}:/usr/sbin:/usr/bin", "GEMVJIT_CONFIG": "none"} | environment


class Recipe(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="recipe-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.folder.chmod(0o755)

    def plan(self, shape=SHAPE):
        path = self.folder / f"plan-{shape}.json"
        done = run([BIN / "gemvjit-warmup", "--shape", shape, "--arch", "sm_90a", "--dry-run", "--plan-out", path],
                   free_of({"GEMVJIT_CACHE_DIR": str(self.folder / "none")}))
        self.assertEqual(done.returncode, 0, done.stderr)
        path.chmod(0o644)
        return path

    def as_user(self, uid, command, environment, where):
        """Runs it with no right but its user's, the root read-only but for `where`."""
        mounts = "mount --bind \"$0\" \"$0\" && mount -o remount,bind,ro / && exec \"$@\""
        return run(["unshare", "--mount", "--propagation", "private", "sh", "-c", mounts, where,
                    "setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "--bounding-set=-all",
                    "--no-new-privs", *command], free_of(environment))


def user():
    return random.randrange(100000, 200000)  # no account has it


class Image(Recipe):
    def bake(self, plan, root, *more):
        return run([ROOT / "examples/image/bake.sh", "--bin", BIN, "--plan", plan, "--root", root, *more])

    def test_a_baked_root_is_warm_for_a_random_user(self):
        root = self.folder / "root"
        baked = self.bake(self.plan(), root)
        self.assertEqual(baked.returncode, 0, baked.stderr)
        self.assertIn(f"{KERNELS} compiled", baked.stdout)
        self.assertIn(f"{KERNELS} cached, 0 missing", baked.stdout)
        left = {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}
        self.assertIn("opt/gemvjit/kernels.gjb", left)
        self.assertFalse([name for name in left if "nvrtc" in name], "the compiler does not stay")
        self.assertFalse([name for name in left if name.endswith(".entry")], "nor does the builder's own cache")

        # Control: what was not baked is missing, and is not made up for by compiling.
        other = shutil.copy(self.plan("512x512"), root / "opt/gemvjit/other.json")
        os.chmod(other, 0o644)
        uid = user()
        checked = run(["chroot", f"--userspec={uid}:{uid}", root, "gemvjit-warmup", "--plan", "/opt/gemvjit/other.json",
                       "--check"], free_of({"GEMVJIT_CACHE_RO": "/opt/gemvjit/kernels.gjb", "PATH": "/usr/sbin:/usr/bin"}))
        self.assertEqual(checked.returncode, 9, checked.stdout + checked.stderr)

    def test_a_plan_that_is_none_bakes_nothing(self):
        broken = self.folder / "broken.json"
        broken.write_text("{}")
        root = self.folder / "root"
        self.assertNotEqual(self.bake(broken, root).returncode, 0)
        self.assertFalse(root.exists(), "nothing is written for a plan that cannot be baked")
        self.assertNotEqual(self.bake(self.folder / "absent.json", root).returncode, 0)
        self.assertNotEqual(self.bake(self.plan(), root, "--nvrtc", "/none").returncode, 0)


    def test_a_private_umask_is_no_matter(self):
        baked = run(["sh", "-c", 'umask 077 && exec "$@"', "sh", ROOT / "examples/image/bake.sh", "--bin", BIN, "--plan",
                     self.plan(), "--root", self.folder / "root"])
        self.assertEqual(baked.returncode, 0, baked.stderr)
        closed = self.folder / "closed"
        closed.mkdir(mode=0o700)
        refused = self.bake(self.plan(), closed)
        self.assertEqual(refused.returncode, 1)
        self.assertIn("closed to other users", refused.stderr)
        self.assertEqual(list(closed.iterdir()), [])

    def test_wrong_use_is_told(self):
        script = ROOT / "examples/image/bake.sh"
        for arguments, message in ((["--bin"], "--bin needs a value"), (["--bin", ""], "--bin needs a value"),
                                   (["--bim", "x"], "unknown argument --bim"), ([], "--bin, --plan and --root are needed")):
            done = run([script, *arguments])
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(f"bake: error: {message}", done.stderr)
        helped = run([script, "--help"])
        self.assertEqual(helped.returncode, 0)
        self.assertIn("--nvrtc FILE", helped.stdout)
        self.assertNotIn("set -e", helped.stdout)


class Systemd(Recipe):
    UNIT = ROOT / "examples/systemd/gemvjit-warmup.service"

    def fields(self):
        lines = [line for line in self.UNIT.read_text().splitlines() if "=" in line and not line.startswith("#")]
        return dict(line.split("=", 1) for line in lines)

    def test_the_unit_is_sound(self):
        if shutil.which("systemd-analyze") is None:
            self.skipTest("no systemd-analyze")
        # Verified in a root of its own, where the programs and the page that it names are there.
        root = self.folder / "root"
        for name in ("usr/bin/gemvjit-warmup", "etc/systemd/system/gemvjit-warmup.service"):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(BIN / "gemvjit-warmup", root / "usr/bin/gemvjit-warmup")
        placed = root / "etc/systemd/system/gemvjit-warmup.service"
        for target in ("sysinit", "basic", "multi-user", "shutdown"):
            (placed.parent / f"{target}.target").write_text(f"[Unit]\nDescription={target}\n")
        for broken in (False, True):
            text = self.UNIT.read_text()
            placed.write_text(text.replace("Type=oneshot", "Type=onceshot") if broken else text)
            done = run(["systemd-analyze", "verify", "--man=no", f"--root={root}", "gemvjit-warmup.service"],
                       free_of({}))
            self.assertEqual("gemvjit-warmup.service" in done.stderr, broken, done.stderr)

    def test_its_command_warms_and_a_second_start_finds_all(self):
        fields = self.fields()
        self.assertEqual(fields["CacheDirectoryMode"], "0700")
        uid = user()
        cache = self.folder / "cache"
        cache.mkdir(mode=0o700)
        os.chown(cache, uid, uid)
        where = {"/etc/gemvjit/plan.json": str(self.plan()), f"/var/cache/{fields['CacheDirectory']}": str(cache)}

        def in_place(text):
            for path, here in where.items():
                text = text.replace(path, here)
            return text

        name, value = in_place(fields["Environment"]).split("=", 1)
        command = shlex.split(in_place(fields["ExecStart"]).replace("/usr/bin/", f"{BIN}/"))
        for expected in (f"{KERNELS} compiled", f"{KERNELS} cached"):
            done = self.as_user(uid, command, {name: value}, cache)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(expected, done.stdout)
        limit = int(command[command.index("--max-seconds") + 1])
        self.assertLess(limit, int(fields["TimeoutStartSec"]))


class Kubernetes(Recipe):
    POD = ROOT / "examples/kubernetes/warmup.yaml"

    def documents(self):
        try:
            import yaml
        except ImportError:
            skip("this Python has no yaml; tools/setup.sh adds it where it can")
        return {document["kind"]: document for document in yaml.safe_load_all(self.POD.read_text())}

    def test_the_objects_fit_the_schema(self):
        validate = Path(sys.executable).parent / "kubernetes-validate"
        if not validate.exists():
            self.skipTest("no kubernetes-validate; tools/setup.sh adds it where it can")
        broken = self.folder / "broken.yaml"
        broken.write_text(self.POD.read_text().replace("readOnlyRootFilesystem", "readOnlyRoot"))
        self.assertNotEqual(run([validate, "--strict", broken]).returncode, 0)
        done = run([validate, "--strict", self.POD])
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_its_commands_warm_a_volume_and_the_probe_sees_it(self):
        documents = self.documents()
        pod = documents["Deployment"]["spec"]["template"]["spec"]
        uid, group = pod["securityContext"]["runAsUser"], pod["securityContext"]["fsGroup"]
        # A volume as fsGroup leaves it, and a ConfigMap as the kubelet mounts it: a link to a link to the file.
        cache = self.folder / "cache"
        cache.mkdir()
        os.chown(cache, 0, group)
        cache.chmod(0o2775)
        plan = self.folder / "etc"
        (plan / "..2026").mkdir(parents=True)
        shutil.copy(self.plan(), plan / "..2026/plan.json")
        (plan / "..data").symlink_to("..2026")
        (plan / "plan.json").symlink_to("..data/plan.json")
        init, engine = pod["initContainers"][0], pod["containers"][0]
        mounted = {mount["mountPath"]: str(cache if mount["name"] == "cache" else plan) for mount in init["volumeMounts"]}
        self.assertEqual(init["volumeMounts"], engine["volumeMounts"])

        def in_place(text):
            for path, here in mounted.items():
                text = text.replace(path, here)
            return text

        environment = {variable["name"]: in_place(variable["value"]) for variable in init["env"]}

        def start(container_command, **changed):
            command = [in_place(part) for part in container_command]
            return self.as_user(uid, [BIN / command[0], *command[1:]], environment | changed, cache)

        probe = engine["startupProbe"]["exec"]["command"]
        cold = start(probe)
        self.assertEqual(cold.returncode, 9, cold.stderr)
        warmed = start(init["command"])
        self.assertEqual(warmed.returncode, 0, warmed.stderr)
        self.assertIn(f"{KERNELS} compiled", warmed.stdout)
        self.assertEqual(start(probe).returncode, 0)
        # Control: without the trust that the file sets, such a volume is refused.
        self.assertNotEqual(start(probe, GEMVJIT_CACHE_TRUST="owner").returncode, 0)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], sys.argv[2]], verbosity=1)
