"""The package without a GPU and without torch: finding the library, errors, questions, a warmup for a target, and what
the launches refuse.

    functions_test.py LIBRARY
"""

import os
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[3]
LIBRARY = sys.argv[1]
_folder = tempfile.TemporaryDirectory()
os.environ.update(GEMVJIT_LIBRARY=LIBRARY, GEMVJIT_CONFIG="none", GEMVJIT_CACHE_DIR=_folder.name + "/cache",
                  GEMVJIT_LIBCUDA=_folder.name + "/no_libcuda.so", GEMVJIT_LOG="off")
sys.path.insert(0, str(ROOT / "bindings" / "python"))
import gemvjit  # noqa: E402
from gemvjit import _abi, _devices, _errors, _library  # noqa: E402

try:
    import numpy
except ImportError:
    numpy = None


class FakeDevice:
    def __init__(self, kind="cuda", index=0):
        self.type, self.index = kind, index

    def __eq__(self, other):
        return (self.type, self.index) == (other.type, other.index)

    def __hash__(self):
        return hash((self.type, self.index))

    def __str__(self):
        return f"{self.type}:{self.index}"


class FakeTensor:
    """What the functions ask of a tensor, without memory."""

    def __init__(self, dtype, shape, strides=None, device=None, pointer=1 << 20):
        self.dtype, self.shape, self.pointer, self.device = dtype, shape, pointer, device or FakeDevice()
        packed = [1]
        for size in reversed(shape[1:]):
            packed.insert(0, packed[0] * size)
        self.packed = tuple(packed)[-len(shape):] if shape else ()
        self.strides = strides or self.packed

    def stride(self):
        return self.strides

    def is_contiguous(self):
        return self.strides == self.packed

    def numel(self):
        count = 1
        for size in self.shape:
            count *= size
        return count

    def data_ptr(self):
        return self.pointer

    def new_empty(self, shape):
        return FakeTensor(self.dtype, shape, device=self.device)


class FakeTorch:
    """In place of torch's current device and stream."""

    def __init__(self):
        self.streams = []

    def current_device(self):
        return 0

    def current_stream(self, index):
        self.streams.append(index)
        return 0

    def bind_thread(self, index):
        return False

    def empty_bf16(self, shape, device):
        return FakeTensor("torch.bfloat16", shape, device=device)


def nvfp4(m=2, n=128, k=256, **replaced):
    tensors = {"x": FakeTensor("torch.bfloat16", (m, k)), "weight": FakeTensor("torch.uint8", (n, k // 2)),
               "weight_scale": FakeTensor("torch.float8_e4m3fn", (128, 16)),
               "global_scale": FakeTensor("torch.float32", ())}
    return {**tensors, **replaced}


class Import(unittest.TestCase):
    def test_importing_opens_nothing(self):
        code = ("import sys, gemvjit\n"
                "maps = open('/proc/self/maps').read()\n"
                "assert 'torch' not in sys.modules and 'numpy' not in sys.modules, 'imports too much'\n"
                "assert not any(name in maps for name in ('libgemvjit', 'libcuda', 'libnvrtc')), 'opens a library'\n"
                "gemvjit.version()\n"
                "assert 'libgemvjit' in open('/proc/self/maps').read(), 'this check sees nothing'\n")
        environment = dict(os.environ, PYTHONPATH=str(ROOT / "bindings" / "python"))
        subprocess.run([sys.executable, "-B", "-c", code], check=True, env=environment)

    def test_candidates_in_their_order(self):
        self.assertEqual(_library.candidates(environment={"GEMVJIT_LIBRARY": "/x/lib.so"}), ["/x/lib.so"])
        names = _library.candidates(environment={})
        self.assertTrue(names[0].endswith("gemvjit/lib/libgemvjit.so.0"))
        self.assertIn(str(ROOT / "build" / "release" / "libgemvjit.so"), names)
        self.assertEqual(names[-1], "libgemvjit.so.0")
        installed = _library.candidates("/usr/lib/python3/site-packages/gemvjit", {})
        self.assertEqual(installed, ["/usr/lib/python3/site-packages/gemvjit/lib/libgemvjit.so.0", "libgemvjit.so.0"])

    def test_what_was_tried_is_named(self):
        other = Path(_folder.name) / "libother.so"
        other.write_bytes(b"no library")
        with self.assertRaises(gemvjit.LibraryNotFound) as caught:
            _library.open_library(["/no/such/libgemvjit.so", str(other), "libm.so.6"])
        message = str(caught.exception)
        for part in ("GEMVJIT_LIBRARY", "/no/such/libgemvjit.so: no such file", f"{other}:", "libm.so.6:",
                     "gemvjit_version"):
            self.assertIn(part, message)
        self.assertIsInstance(caught.exception, ImportError)

    def test_another_version_is_refused(self):
        with mock.patch.object(_abi, "VERSION", (7, 3, 0)), self.assertRaisesRegex(ImportError, "needs 7.3"):
            _library.open_library([LIBRARY])


class Errors(unittest.TestCase):
    def test_every_status_has_a_class_of_its_own(self):
        statuses = [status for status in gemvjit.Status if status != gemvjit.Status.OK]
        self.assertEqual(set(_errors.CLASSES), set(statuses))
        self.assertEqual(len(set(_errors.CLASSES.values())), len(statuses))
        for status in statuses:
            error = _errors.error_of(int(status), "why")
            self.assertIsInstance(error, gemvjit.GemvjitError)
            self.assertEqual((error.status, str(error)), (status, "why"))
        self.assertEqual(_errors.error_of(99, "").status, 99)

    def test_the_librarys_message_arrives(self):
        with self.assertRaisesRegex(gemvjit.InvalidShape, "multiple of 8") as caught:
            gemvjit.pick_nt(4100, 4096, 1, arch="sm_90a")
        self.assertEqual(caught.exception.status, gemvjit.Status.INVALID_SHAPE)
        self.assertIsInstance(caught.exception, ValueError)
        self.assertIn("multiple of 8", gemvjit.last_error())

    def test_without_a_driver(self):
        for ask in (lambda: gemvjit.pick_nt(4096, 4096, 1), lambda: gemvjit.warmup(4096, 4096), gemvjit.stats):
            with self.assertRaisesRegex(gemvjit.NoDriver, "no_libcuda.so"):
                ask()


class Questions(unittest.TestCase):
    def test_pick_nt_and_tuned(self):
        self.assertEqual(gemvjit.pick_nt(4096, 4096, 1, arch="sm_90a"), 1)
        self.assertIsNone(gemvjit.pick_nt(4096, 4096, 33, arch="sm_90a"))
        self.assertIsNone(gemvjit.pick_nt(4104, 4096, 9, arch="sm_90a"))
        self.assertEqual(gemvjit.pick_nt(4104, 4096, 9, arch="sm_90a", allow_untuned=True), 2)
        self.assertIs(gemvjit.tuned(4096, 4096, arch="sm_90a"), True)
        self.assertIs(gemvjit.tuned(4104, 4096, False, True, arch="sm_90a"), False)

    def test_explain_is_whole(self):
        text = gemvjit.explain(4096, 4096, m=9, arch="sm_90a")
        self.assertTrue(text.startswith("nvfp4_gemv N=4096 K=4096 M=9 on sm_90a"))
        self.assertEqual(text.count("n4096-k4096-nt"), 3)

    def test_signatures_by_position(self):
        """The documented order of arguments: (n, k, m, silu_mul, bf16) and so on."""
        self.assertIn("bf16_gemv", gemvjit.explain(4096, 4096, 1, False, True, arch="sm_90a"))
        self.assertIn("silu_mul", gemvjit.explain(4096, 4096, 1, True, arch="sm_90a"))

    def test_device_argument(self):
        self.assertEqual(_devices.ordinal(FakeDevice(index=3)), 3)
        self.assertEqual(_devices.ordinal(2), 2)
        with self.assertRaisesRegex(TypeError, "CUDA device"):
            _devices.ordinal(FakeDevice("cpu", None))


class Contexts(unittest.TestCase):
    def test_threads_share_one(self):
        seen, start = [], threading.Barrier(8)

        def ask():
            start.wait()
            seen.append(_devices.context(_abi.DEVICE_NONE))

        with mock.patch.object(_devices, "_contexts", {}):
            threads = [threading.Thread(target=ask) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.assertEqual((len(seen), len(set(seen))), (8, 1))

    def test_a_child_makes_its_own(self):
        parent = _devices.context(_abi.DEVICE_NONE)
        child = os.fork()
        if child == 0:
            works = not _devices._contexts and gemvjit.pick_nt(4096, 4096, 1, arch="sm_90a") == 1
            os._exit(0 if works else 1)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        self.assertEqual(_devices.context(_abi.DEVICE_NONE), parent)

    def test_stats_of_a_context(self):
        handle = _devices.context(_abi.DEVICE_NONE)
        with mock.patch.object(_devices, "context_of", return_value=handle):
            self.assertEqual(gemvjit.stats()["launches"], 0)

    def test_flush_has_nothing_to_wait_for_without_a_remote_cache(self):
        self.assertIsNotNone(_devices.context(_abi.DEVICE_NONE))
        self.assertIsNone(gemvjit.flush(0))

    def test_sealed_also_what_is_made_later(self):
        code = ("import gemvjit\n"
                "gemvjit.seal()\n"
                "try:\n    gemvjit.warmup(8, 16, arch='sm_90a', allow_untuned=True)\n"
                "except gemvjit.Sealed:\n    print('sealed')\n")
        environment = dict(os.environ, PYTHONPATH=str(ROOT / "bindings" / "python"), GEMVJIT_CACHE_DIR="/dev/null/x")
        done = subprocess.run([sys.executable, "-B", "-c", code], env=environment, capture_output=True, text=True)
        self.assertEqual((done.stdout, done.returncode), ("sealed\n", 0), done.stderr)


class Warmup(unittest.TestCase):
    def test_fills_the_cache_for_a_target(self):
        try:
            first = gemvjit.warmup(8, 64, arch="sm_90a", allow_untuned=True)
        except gemvjit.NoCompiler as error:
            self.skipTest(f"no NVRTC: {error}")
        self.assertEqual([kernel.outcome for kernel in first], ["compiled"] * 4)  # nt 1, 2, 4 and dequantize_rows
        self.assertTrue(all(os.path.isfile(kernel.path) for kernel in first))
        again = gemvjit.warmup(8, 64, arch="sm_90a", allow_untuned=True)
        self.assertEqual({kernel.outcome for kernel in again}, {"cached"})
        self.assertEqual({kernel.key for kernel in again}, {kernel.key for kernel in first})

    def test_untuned_is_said(self):
        with self.assertRaises(gemvjit.Untuned):
            gemvjit.warmup(4104, 4096, bf16=True, arch="sm_90a")


class Launches(unittest.TestCase):
    """Nothing that is refused here reaches the library: the fake torch would have been asked for a stream."""

    def setUp(self):
        self.torch = FakeTorch()
        patch = mock.patch.object(_devices, "_torch", self.torch)
        patch.start()
        self.addCleanup(patch.stop)

    def refused(self, function, tensors, *words):
        with self.assertRaises(gemvjit.InvalidArgument) as caught:
            function(**tensors)
        for word in (function.__name__, "expected", "found", *words):
            self.assertIn(word, str(caught.exception))
        self.assertEqual(self.torch.streams, [])

    def test_right_tensors_reach_the_library(self):
        """And fail there, as there is no driver: so what is refused below is refused by the checks."""
        weight = FakeTensor("torch.bfloat16", (128, 256))
        for call in (lambda: gemvjit.nvfp4_gemv(**nvfp4()), lambda: gemvjit.bf16_gemv(nvfp4()["x"], weight),
                     lambda: gemvjit.dequantize_rows(nvfp4()["weight"], nvfp4()["weight_scale"]),
                     lambda: gemvjit.nvfp4_gemv(**nvfp4(x=FakeTensor("torch.bfloat16", (2, 256), (300, 1)))),
                     lambda: gemvjit.nvfp4_gemv(**nvfp4(x=FakeTensor("torch.bfloat16", (1, 256), (0, 1))))):
            with self.assertRaises(gemvjit.NoDriver):
                call()

    def test_wrong_tensors_of_nvfp4(self):
        for pass_, learn in (("first", False), ("after right ones", True)):
            if learn:  # their dtypes and device are known from now on
                self.test_right_tensors_reach_the_library()
                self.torch.streams.clear()
            with self.subTest(pass_):
                self.check_wrong_tensors_of_nvfp4()

    def check_wrong_tensors_of_nvfp4(self):
        bf16, cpu = "torch.bfloat16", FakeDevice("cpu", None)
        for name, tensor, words in (
                ("x", FakeTensor("torch.float16", (2, 256)), ["x:", "bfloat16", "float16 [2, 256] on cuda:0"]),
                ("x", FakeTensor(bf16, (256,)), ["x:", "2 dimensions"]),
                ("x", FakeTensor(bf16, (2, 256), (1, 2)), ["x:", "inner stride of 1", "(1, 2)"]),
                ("x", FakeTensor(bf16, (2, 256), (128, 1)), ["x:", "at least 256", "(128, 1)"]),
                ("x", FakeTensor(bf16, (2, 512)), ["weight:", "[N, 256]", "[128, 128]"]),
                ("x", FakeTensor(bf16, (2, 256), device=cpu), ["x:", "CUDA", "cpu"]),
                ("x", [1.0], ["x:", "a tensor", "list"]),
                ("weight", FakeTensor("torch.int8", (128, 128)), ["weight:", "uint8", "int8"]),
                ("weight", FakeTensor("torch.uint8", (128, 128), (1, 128)), ["weight:", "contiguous"]),
                ("weight", FakeTensor("torch.uint8", (128, 128), device=FakeDevice(index=1)), ["weight:", "cuda:0"]),
                ("weight_scale", FakeTensor("torch.uint8", (128, 15)), ["weight_scale:", "2048", "[128, 16]"]),
                ("weight_scale", FakeTensor("torch.float32", (128, 16)), ["weight_scale:", "float8_e4m3fn"]),
                ("global_scale", 0.5, ["global_scale:", "one float32", "0.5"]),
                ("global_scale", FakeTensor("torch.float32", (2,)), ["global_scale:"]),
                ("global_scale", FakeTensor("torch.float64", ()), ["global_scale:", "float64"]),
                ("global_scale", FakeTensor("torch.float32", (), device=cpu), ["global_scale:", "cpu"])):
            with self.subTest(argument=name, words=words):
                self.refused(gemvjit.nvfp4_gemv, nvfp4(**{name: tensor}), *words)

    def test_wrong_tensors_of_the_others(self):
        x = nvfp4()["x"]
        self.refused(gemvjit.bf16_gemv, {"x": x, "weight": FakeTensor("torch.uint8", (128, 256))}, "weight:", "uint8")
        for weight in (FakeTensor("torch.bfloat16", (128, 256), (1, 128)), None, 7,
                       FakeTensor("torch.bfloat16", (128, 256), device=FakeDevice(index=1))):
            self.refused(gemvjit.bf16_gemv, {"x": x, "weight": weight}, "weight:")
        self.refused(gemvjit.bf16_gemv, {"x": x, "weight": FakeTensor("torch.bfloat16", (128, 128))}, "[N, 256]")
        wrong = {"weight": nvfp4()["weight"], "weight_scale": FakeTensor("torch.uint8", (128, 12))}
        self.refused(gemvjit.dequantize_rows, wrong, "weight_scale:", "2048")


@unittest.skipIf(numpy is None, "this Python has no numpy")
class Swizzle(unittest.TestCase):
    def test_the_same_bytes_as_the_librarys(self):
        library = _library.load()
        for n, groups in ((1, 1), (128, 4), (129, 5), (464, 29), (2112, 448)):
            scales = numpy.random.default_rng(n).integers(0, 127, (n, groups), numpy.uint8)
            size = library.gemvjit_swizzled_scale_bytes(n, groups * 16)
            want = numpy.empty(size, numpy.uint8)
            _library.check(library.gemvjit_swizzle_blockscale(scales.tobytes(), n, groups * 16, want.ctypes.data, size))
            got = gemvjit.swizzle_blockscale(scales)
            self.assertEqual(got.shape, (-(-n // 128) * 128, -(-groups // 4) * 4))
            numpy.testing.assert_array_equal(got.ravel(), want)

    def test_wrong_input(self):
        for wrong in (numpy.zeros(16, numpy.uint8), numpy.zeros((2, 2), numpy.float32), [[1]]):
            with self.assertRaisesRegex(gemvjit.InvalidArgument, "swizzle_blockscale: scale: expected"):
                gemvjit.swizzle_blockscale(wrong)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
