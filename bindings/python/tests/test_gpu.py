"""The package on a GPU: numbers against float64, operators, torch.compile, CUDA graphs, streams, Linear, host cost.

    test_gpu.py --library build/release/libgemvjit.so --json result.json

Needs torch with CUDA, a GPU that gemvjit serves, and NVRTC. Compiles into a cache folder of its own. Exit 0 if all
tests pass. --dry-run runs what can be run with the operators' CPU reference: a test of this program."""

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path
from unittest import mock

import torch
from torch.library import opcheck

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--library", required=True)
parser.add_argument("--json", type=Path)
parser.add_argument("--mlp-block", type=Path, help="examples/c/mlp_block.c, compiled: its test is skipped without")
parser.add_argument("--dry-run", action="store_true")
parser.add_argument("tests", nargs="*", help="names of tests, as unittest takes them")
options = parser.parse_args()
_folder = tempfile.TemporaryDirectory()
os.environ.update(GEMVJIT_LIBRARY=os.path.abspath(options.library), GEMVJIT_CONFIG="none",
                  GEMVJIT_CACHE_DIR=_folder.name)
sys.path[:0] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).resolve().parent)]
import gemvjit  # noqa: E402
import gemvjit.torch  # noqa: E402
import gpu_host_cost  # noqa: E402
from gpu_cases import Bf16Layer, Layer, bits, worst  # noqa: E402

DEVICE = "cpu" if options.dry_run else "cuda"
CALLS = torch.ops.gemvjit if options.dry_run else gemvjit
RESULT = {"host_cost_us": {}, "worst_error_of_bound": {}}
needs_gpu = unittest.skipIf(options.dry_run, "dry run")


def ready(layer, silu_mul=False, pdl=True):
    if not options.dry_run:
        gemvjit.warmup(layer.n, layer.k, silu_mul, pdl, isinstance(layer, Bf16Layer), allow_untuned=True)
        torch.cuda.synchronize()  # with pdl weights are read ahead: what writes them must have ended
    return layer


def call(layer, x, *arguments, **named):
    function = CALLS.bf16_gemv if isinstance(layer, Bf16Layer) else CALLS.nvfp4_gemv
    return function(x, *(arguments or layer.arguments()), **named)


class Numbers(unittest.TestCase):
    def check(self, name, layer, m, silu_mul=False, row_stride=None):
        with self.subTest(case=name):
            ready(layer, silu_mul)
            ready(layer, silu_mul, pdl=False)  # a launch without PDL takes only what was warmed without it
            arguments, x = layer.arguments(), layer.x(m, row_stride)
            if not options.dry_run:
                torch.cuda.synchronize()
            out = call(layer, x, *arguments, silu_mul=silu_mul)
            error = worst(out, x, layer.dequantized(), silu_mul)
            RESULT["worst_error_of_bound"][name] = error
            self.assertLessEqual(error, 1.0)
            for pdl in (True, False):  # the same bits again, and without PDL
                self.assertTrue(torch.equal(bits(call(layer, x, *arguments, silu_mul=silu_mul, pdl=pdl)), bits(out)))

    def test_nvfp4(self):
        for name, m, n, k in (("m1", 1, 128, 256), ("m8", 8, 64, 512), ("m17", 17, 128, 256), ("m32", 32, 144, 256),
                              ("k_tail", 3, 48, 2880), ("n8", 2, 8, 256), ("n1960", 4, 1960, 128), ("k48", 5, 64, 48),
                              ("k464", 2, 72, 464), ("large", 4, 4096, 4096)):
            self.check(f"nvfp4_{name}", Layer(n, k, DEVICE), m)
        self.check("nvfp4_strided", Layer(128, 256, DEVICE), 5, row_stride=264)
        self.check("nvfp4_odd_stride", Layer(128, 256, DEVICE), 5, row_stride=259)
        self.check("nvfp4_silu", Layer(256, 256, DEVICE, largest_scale=0x40), 5, silu_mul=True)
        self.check("nvfp4_silu_n48", Layer(48, 256, DEVICE, largest_scale=0x40), 17, silu_mul=True)

    def test_bf16(self):
        for name, m, n, k in (("m1", 1, 128, 256), ("m12", 12, 64, 512), ("m32", 32, 128, 264), ("k24", 3, 64, 24),
                              ("large", 8, 4096, 4096)):
            self.check(f"bf16_{name}", Bf16Layer(n, k, DEVICE), m)
        self.check("bf16_odd_stride", Bf16Layer(128, 256, DEVICE), 5, row_stride=261)
        self.check("bf16_silu", Bf16Layer(256, 256, DEVICE), 5, silu_mul=True)
        self.check("bf16_silu_n16", Bf16Layer(16, 256, DEVICE), 2, silu_mul=True)

    def test_segments_are_the_parts_one_by_one(self):
        n, k = 384, 512
        layer = Layer(n, k, DEVICE)
        gemvjit.warmup(n, k, allow_untuned=True, segments=True)
        if options.dry_run:
            return
        self.assertTrue(gemvjit.ready(n, k, allow_untuned=True, segments=True))
        self.assertFalse(gemvjit.ready(n + 8, k, allow_untuned=True))
        weight, scales, _ = layer.arguments()
        x, ends = layer.x(5), (128, 256, 384)
        globals_ = [torch.tensor([value], device=DEVICE) for value in (0.003, 0.0014, 0.02)]
        torch.cuda.synchronize()
        out = gemvjit.nvfp4_gemv_segments(x, weight, scales, list(zip(ends, globals_)))
        for begin, end, scale in zip((0, *ends), ends, globals_):
            part = gemvjit.nvfp4_gemv(x, weight, scales, scale)[:, begin:end]
            self.assertTrue(torch.equal(bits(out[:, begin:end]), bits(part)))
        swapped = gemvjit.nvfp4_gemv_segments(x, weight, scales, list(zip(ends, reversed(globals_))))
        self.assertFalse(torch.equal(bits(out), bits(swapped)))  # a wrong scale is seen
        with self.assertRaises(gemvjit.InvalidArgument):
            gemvjit.nvfp4_gemv_segments(x, weight, scales, list(zip((128, 256, 376), globals_)))  # rows left over

    def test_a_nan_scale_stays_in_its_row(self):
        layer = Layer(136, 256, DEVICE)
        layer.scales[77, 3] = 0x7F
        self.check("nvfp4_nan_scale", layer, 4)
        self.assertEqual(int(torch.isnan(layer.dequantized()).any(dim=1).sum()), 1)

    def test_dequantize_rows_is_exact(self):
        for n, k in ((8, 16), (136, 464), (1024, 2048)):
            layer = ready(Layer(n, k, DEVICE))
            scales = layer.swizzled()
            rows = CALLS.dequantize_rows(layer.weight, scales)
            self.assertTrue(torch.equal(bits(rows), bits(layer.values().bfloat16())))

    def test_no_tokens(self):
        layer = ready(Layer(128, 256, DEVICE))
        self.assertEqual(tuple(call(layer, layer.x(1)[:0]).shape), (0, 128))

    def test_quantized_on_the_device_as_on_the_host(self):
        weight = torch.randn(192, 512, generator=torch.Generator().manual_seed(5)) * 0.02
        for here, there in zip(gemvjit.quantize_nvfp4(weight.to(DEVICE)), gemvjit.quantize_nvfp4(weight)):
            self.assertTrue(torch.equal(bits(here.cpu().reshape(-1)), bits(there.reshape(-1))))

    def test_wrong_formats_fail(self):
        """Negative controls: the comparison sees swapped nibbles, row-major scales, and scales of the next block."""
        layer = ready(Layer(256, 256, DEVICE))
        x, weight, scales = layer.x(4), layer.weight, layer.scales
        nibbles = weight << 4 | weight >> 4
        shifted = layer.swizzled(scales.roll(1, dims=1))
        right, row_major = layer.swizzled(), scales.view(torch.float8_e4m3fn)
        if not options.dry_run:
            torch.cuda.synchronize()
        dequantized = layer.dequantized()

        def error(weight, scales):
            return worst(call(layer, x, weight, scales, layer.global_scale), x, dequantized)

        self.assertLessEqual(error(weight, right), 1)
        self.assertGreater(error(nibbles, right), 10)
        self.assertGreater(error(weight, row_major), 10)
        self.assertGreater(error(weight, shifted), 10)


class Operators(unittest.TestCase):
    def test_opcheck(self):
        layer, plain = ready(Layer(256, 256, DEVICE, largest_scale=0x40)), ready(Bf16Layer(256, 256, DEVICE))
        ready(layer, silu_mul=True), ready(plain, silu_mul=True)
        scales = layer.swizzled().view(torch.uint8)  # opcheck cannot compare float8
        for silu_mul in (False, True):
            named = {"silu_mul": silu_mul}
            opcheck(torch.ops.gemvjit.nvfp4_gemv, (layer.x(3), layer.weight, scales, layer.global_scale), named)
            opcheck(torch.ops.gemvjit.bf16_gemv, (plain.x(3), plain.weight), named)
        opcheck(torch.ops.gemvjit.dequantize_rows, (layer.weight, scales))

    def test_compiled_whole(self):
        layer, plain = ready(Layer(256, 256, DEVICE, largest_scale=0x40)), ready(Bf16Layer(256, 256, DEVICE))
        arguments = layer.arguments()

        def model(x):
            return gemvjit.bf16_gemv(torch.relu(gemvjit.nvfp4_gemv(x, *arguments)), plain.weight) * 2

        def eager(x):
            ops = torch.ops.gemvjit
            return ops.bf16_gemv(torch.relu(ops.nvfp4_gemv(x, *arguments)), plain.weight) * 2

        backends = ["aot_eager"] if options.dry_run else ["aot_eager", "inductor"]
        for backend in backends:
            torch._dynamo.reset()
            compiled = torch.compile(model, fullgraph=True, backend=backend)
            for m in (1, 5, 8):
                x = layer.x(m)
                self.assertTrue(torch.equal(compiled(x), eager(x)), (backend, m))

    @needs_gpu
    def test_compiled_into_cuda_graphs(self):
        layer = ready(Layer(256, 256, DEVICE, largest_scale=0x40))
        arguments = layer.arguments()
        torch.cuda.synchronize()
        compiled = torch.compile(lambda x: torch.relu(gemvjit.nvfp4_gemv(x, *arguments)), fullgraph=True,
                                 mode="reduce-overhead")
        for _ in range(4):
            x = layer.x(4)
            self.assertTrue(torch.equal(compiled(x), torch.relu(gemvjit.nvfp4_gemv(x, *arguments))))


@needs_gpu
class Graphs(unittest.TestCase):
    def test_capture_and_replay_with_another_x(self):
        layer, plain = ready(Layer(512, 256, DEVICE, largest_scale=0x40)), ready(Bf16Layer(128, 512, DEVICE))
        arguments, x = layer.arguments(), layer.x(4)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out = gemvjit.bf16_gemv(gemvjit.nvfp4_gemv(x, *arguments), plain.weight)
        seen = []
        for seed in range(3):
            x.copy_(torch.randn(x.shape, generator=torch.Generator().manual_seed(seed)))
            graph.replay()
            seen.append(out.clone())
            self.assertTrue(torch.equal(seen[-1], gemvjit.bf16_gemv(gemvjit.nvfp4_gemv(x, *arguments), plain.weight)))
        self.assertFalse(torch.equal(seen[0], seen[1]))

    def test_a_cold_kernel_leaves_the_capture_valid(self):
        layer, cold = ready(Layer(128, 256, DEVICE)), Layer(5048, 272, DEVICE)
        arguments, cold_arguments, x, cold_x = layer.arguments(), cold.arguments(), layer.x(2), cold.x(2)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            with self.assertRaises(gemvjit.NotReady):
                gemvjit.nvfp4_gemv(cold_x, *cold_arguments)
            out = gemvjit.nvfp4_gemv(x, *arguments)
        graph.replay()
        self.assertLessEqual(worst(out, x, layer.dequantized()), 1)


@needs_gpu
class StreamsAndThreads(unittest.TestCase):
    def test_two_streams(self):
        layers = [ready(Layer(2048, 1024, DEVICE, seed)) for seed in (1, 2)]
        arguments = [layer.arguments() for layer in layers]
        xs = [layer.x(4) for layer in layers]
        torch.cuda.synchronize()
        streams, outs = [torch.cuda.Stream(), torch.cuda.Stream()], [[], []]
        for _ in range(20):
            for stream, x, args, out in zip(streams, xs, arguments, outs):
                with torch.cuda.stream(stream):
                    out.append(gemvjit.nvfp4_gemv(x, *args))
        torch.cuda.synchronize()
        for layer, x, out in zip(layers, xs, outs):
            self.assertLessEqual(worst(out[0], x, layer.dequantized()), 1)
            self.assertTrue(all(torch.equal(bits(other), bits(out[0])) for other in out))

    def test_a_stream_is_waited_for(self):
        """The call is on the current stream: what an event of that stream says decides."""
        layer = ready(Layer(128, 256, DEVICE))
        arguments, x = layer.arguments(), layer.x(1)
        torch.cuda.synchronize()
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            torch.cuda._sleep(200_000_000)
            gemvjit.nvfp4_gemv(x, *arguments)
        torch.cuda.current_stream().synchronize()
        self.assertFalse(stream.query())
        stream.synchronize()

    def test_new_threads(self):
        layer = ready(Layer(128, 256, DEVICE))
        arguments, x = layer.arguments(), layer.x(2)
        want, outs, errors = gemvjit.nvfp4_gemv(x, *arguments), [], []
        torch.cuda.synchronize()

        def work():
            try:
                outs.append(gemvjit.nvfp4_gemv(x, *arguments))
            except Exception as error:
                errors.append(error)

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        torch.cuda.synchronize()
        self.assertEqual((errors, len(outs)), ([], 8))
        self.assertTrue(all(torch.equal(out, want) for out in outs))

    def test_another_device_than_the_current_one(self):
        if torch.cuda.device_count() < 2:
            self.skipTest("one GPU")
        layer = Layer(128, 256, "cuda:1")
        gemvjit.warmup(128, 256, allow_untuned=True, device=1)
        arguments, x = layer.arguments(), layer.x(2)
        torch.cuda.synchronize(1)
        self.assertEqual(torch.cuda.current_device(), 0)
        out = gemvjit.nvfp4_gemv(x, *arguments)
        self.assertEqual((out.device.index, torch.cuda.current_device()), (1, 0))
        self.assertLessEqual(worst(out, x, layer.dequantized()), 1)
        with self.assertRaisesRegex(gemvjit.InvalidArgument, "weight: expected a tensor on cuda:1"):
            gemvjit.nvfp4_gemv(x, layer.weight.to("cuda:0"), *arguments[1:])


@needs_gpu
class Errors(unittest.TestCase):
    def test_not_warmed(self):
        layer = Layer(6056, 288, DEVICE)
        arguments, x = layer.arguments(), layer.x(1)
        before = gemvjit.stats()["launch_misses"]
        with self.assertRaises(gemvjit.NotReady) as caught:
            gemvjit.nvfp4_gemv(x, *arguments)
        self.assertEqual(caught.exception.status, gemvjit.Status.NOT_READY)
        self.assertEqual(gemvjit.stats()["launch_misses"], before + 1)

    def test_too_many_tokens(self):
        layer = ready(Layer(128, 256, DEVICE))
        with self.assertRaises(gemvjit.MNotCovered):
            gemvjit.nvfp4_gemv(layer.x(33), *layer.arguments())

    def test_alignment_and_device(self):
        layer = ready(Layer(128, 256, DEVICE))
        weight, scales, one = layer.arguments()
        shifted = torch.empty(weight.numel() + 16, dtype=torch.uint8, device=DEVICE)[1:1 + weight.numel()]
        with self.assertRaises(gemvjit.InvalidAlignment):
            gemvjit.nvfp4_gemv(layer.x(1), shifted.view_as(weight), scales, one)
        with self.assertRaisesRegex(gemvjit.InvalidArgument, "weight: expected a tensor on cuda:0"):
            gemvjit.nvfp4_gemv(layer.x(1), weight.cpu(), scales, one)


@needs_gpu
class LinearModule(unittest.TestCase):
    def launches(self, linear, m):
        """(launches of the library, whether the GEMV was one of them, x, y)"""
        x = torch.randn(m, linear.in_features, device=DEVICE).bfloat16()
        before = gemvjit.stats()["launches"]
        with mock.patch.object(linear, "_gemv", wraps=linear._gemv) as gemv:
            y = linear(x)
        return gemvjit.stats()["launches"] - before, gemv.called, x, y

    def test_the_gemv_where_pick_nt_says_so(self):
        # Else cuBLAS may add up partial sums that are rounded to BF16.
        torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
        for linear in (gemvjit.torch.Linear.quantized(torch.randn(4096, 4096, device=DEVICE) * 0.02),
                       gemvjit.torch.Linear.from_bf16((torch.randn(4096, 4096, device=DEVICE) * 0.02).bfloat16()),
                       gemvjit.torch.Linear.from_bf16((torch.randn(4104, 1000, device=DEVICE) * 0.02).bfloat16())):
            linear.warmup()
            torch.cuda.synchronize()
            chosen = linear.choices()
            if linear.is_nvfp4:
                scales = gemvjit.unswizzle_blockscale(linear.weight_scale, 4096, 4096)
                weight = gemvjit.dequantize_nvfp4(linear.weight, scales, linear.global_scale)
            else:
                weight = linear.weight.double()
            for m in (1, 2, 8, 9, 16, 17, 32, 33, 64):
                count, taken, x, y = self.launches(linear, m)
                gemv = m <= 32 and chosen[m] is not None
                self.assertEqual(taken, gemv, (linear, m))
                self.assertEqual(count, 1 if gemv or linear.is_nvfp4 else 0, (linear, m))
                # The other path rounds twice for NVFP4.
                self.assertLessEqual(worst(y, x, weight), 1 if gemv else 3, (linear, m))
            RESULT.setdefault("linear_gemv_tokens", {})[f"{linear.out_features}x{linear.in_features}:"
                                                        f"{'nvfp4' if linear.is_nvfp4 else 'bf16'}"] = [
                m for m, nt in enumerate(chosen) if nt]

    def test_model_in_a_graph_and_compiled(self):
        model = torch.nn.Sequential(gemvjit.torch.Linear.quantized(torch.randn(4096, 4096) * 0.02),
                                    gemvjit.torch.Linear.from_bf16((torch.randn(4096, 4096) * 0.02).bfloat16()))
        model = model.to(DEVICE)
        kernels = gemvjit.torch.warmup(model)
        self.assertTrue(kernels)
        x = torch.randn(4, 4096, device=DEVICE).bfloat16()
        torch.cuda.synchronize()
        want = model(x)
        self.assertTrue(torch.equal(torch.compile(model, fullgraph=True)(x), want))
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out = model(x)
        graph.replay()
        self.assertTrue(torch.equal(out, want))


@needs_gpu
class Documentation(unittest.TestCase):
    def test_examples_run(self):
        """In processes of their own: one of them seals."""
        page = Path(__file__).resolve().parents[3] / "docs" / "python.md"
        codes = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
        self.assertEqual(len(codes), 3)
        environment = dict(os.environ, PYTHONPATH=str(Path(__file__).resolve().parents[1]))
        for code in codes:
            done = subprocess.run([sys.executable, "-B", "-c", code], env=environment, capture_output=True, text=True,
                                  check=False)
            self.assertEqual(done.returncode, 0, code + done.stderr)


@needs_gpu
class CProgram(unittest.TestCase):
    """examples/c/mlp_block.c on a checkpoint of one gated MLP whose gate and up have different global scales."""

    PARTS = {"gate_proj": (352, 256, 0.02), "up_proj": (352, 256, 0.011), "down_proj": (264, 352, 0.05)}  # n, k, scale

    def write_checkpoint(self, path):
        header, data, weights = {}, b"", {}
        for name, (n, k, scale) in self.PARTS.items():
            codes, rows, _ = gemvjit.quantize_nvfp4(torch.randn(n, k))
            weights[name] = gemvjit.dequantize_nvfp4(codes, rows, torch.tensor([1.0])).double() * scale
            for suffix, dtype, tensor in (("weight", "U8", codes), ("weight_scale", "F8_E4M3", rows.view(torch.uint8)),
                                          ("weight_scale_2", "F32", torch.tensor(scale))):
                content = tensor.numpy().tobytes()
                header[f"mlp.{name}.{suffix}"] = {"dtype": dtype, "shape": list(tensor.shape),
                                                  "data_offsets": [len(data), len(data) + len(content)]}
                data += content
        text = json.dumps(header).encode()
        path.write_bytes(len(text).to_bytes(8, "little") + text + data)
        return weights

    def test_mlp_block(self):
        if not options.mlp_block:
            self.skipTest("no --mlp-block")
        with tempfile.TemporaryDirectory() as folder:
            model, x_file, out_file = (Path(folder) / name for name in ("model.safetensors", "x", "out"))
            weights = self.write_checkpoint(model)
            for m in (1, 5, 32):
                x = torch.randn(m, 256).bfloat16()
                x_file.write_bytes(x.view(torch.uint8).numpy().tobytes())
                done = subprocess.run([options.mlp_block, model, "mlp", str(m), x_file, out_file], capture_output=True,
                                      text=True, check=False)
                self.assertEqual(done.returncode, 0, done.stderr)
                out = torch.frombuffer(bytearray(out_file.read_bytes()), dtype=torch.bfloat16).view(m, 264).double()

                def block(gate, up, x=x):
                    gate, up = ((x.double() @ part.T).bfloat16().double() for part in (gate, up))
                    return (torch.nn.functional.silu(gate) * up).bfloat16().double() @ weights["down_proj"].T

                def error(wanted, out=out):
                    return ((out - wanted).square().mean() / wanted.square().mean()).sqrt().item()

                self.assertLess(error(block(weights["gate_proj"], weights["up_proj"])), 2.0**-8)
                # Control: the largest global scale for both.
                ratio = self.PARTS["gate_proj"][2] / self.PARTS["up_proj"][2]
                self.assertGreater(error(block(weights["gate_proj"], weights["up_proj"] * ratio)), 0.1)


@needs_gpu
class HostCost(unittest.TestCase):
    def test_beside_torch(self):
        RESULT["host_cost_us"] = gpu_host_cost.measure(ready(Layer(1024, 1024, DEVICE)),
                                                       ready(Bf16Layer(1024, 1024, DEVICE)))
        self.assertIn("gemvjit.nvfp4_gemv", RESULT["host_cost_us"])


def describe_machine():
    RESULT.update(python=platform.python_version(), torch=torch.__version__, dry_run=options.dry_run,
                  gemvjit=gemvjit.version(), date=time.strftime("%Y-%m-%d", time.gmtime()))
    if not options.dry_run:
        RESULT.update(gpu=torch.cuda.get_device_name(0), gpus=torch.cuda.device_count(), cuda=torch.version.cuda)
        driver = Path("/proc/driver/nvidia/version")
        RESULT["driver"] = driver.read_text().splitlines()[0] if driver.is_file() else "unknown"


def main():
    if not options.dry_run and not torch.cuda.is_available():
        print("SKIPPED: torch finds no GPU")
        return 77
    describe_machine()
    program = unittest.main(argv=[sys.argv[0], *options.tests], verbosity=2, exit=False)
    done = program.result
    RESULT["tests"] = {"run": done.testsRun, "failures": len(done.failures), "errors": len(done.errors),
                       "skipped": [f"{test.id()}: {why}" for test, why in done.skipped],
                       "failed": [test.id() for test, _ in done.failures + done.errors]}
    if options.json:
        options.json.write_text(json.dumps(RESULT, indent=2, sort_keys=True) + "\n")
    failed = len({test.id().partition(" ")[0] for test, _ in done.failures + done.errors})  # one for all its subtests
    print(f"{done.testsRun - failed - len(done.skipped)} passed, {failed} failed, {len(done.skipped)} skipped")
    return 0 if done.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
