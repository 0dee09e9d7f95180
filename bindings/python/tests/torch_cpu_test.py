"""The torch side without a GPU: the quantizer's bytes, layouts, operators on the CPU's reference and under
torch.compile, Linear's two paths. Exits 77 (skipped, with the reason) where torch or numpy is missing.

    torch_cpu_test.py LIBRARY
"""

import copy
import importlib.util
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[3]
try:
    import numpy
    import torch
    from torch.library import opcheck
except ImportError as error:
    print(f"SKIPPED: {error}")
    sys.exit(77)
_folder = tempfile.TemporaryDirectory()
os.environ.update(GEMVJIT_LIBRARY=sys.argv[1], GEMVJIT_CONFIG="none", GEMVJIT_CACHE_DIR=_folder.name,
                  GEMVJIT_LIBCUDA=_folder.name + "/no_libcuda.so", GEMVJIT_LOG="off")
sys.path.insert(0, str(ROOT / "bindings" / "python"))
sys.dont_write_bytecode = True
import gemvjit  # noqa: E402
import gemvjit.torch  # noqa: E402
from gemvjit import _linear  # noqa: E402

spec = importlib.util.spec_from_file_location("quantize_nvfp4", ROOT / "tools" / "quantize_nvfp4.py")
tool = importlib.util.module_from_spec(spec)
spec.loader.exec_module(tool)


def weights():
    """Weights that reach every branch: ordinary ones, block sizes far apart, ties, zeros, one that is tiny."""
    random = numpy.random.default_rng(1)
    yield random.normal(0, 0.05, (24, 96))
    yield random.normal(0, 1, (16, 64)) * numpy.exp(random.uniform(-14, 3, (16, 4))).repeat(16, axis=1)
    grid = numpy.arange(-24, 24).reshape(3, 16) / 4.0
    grid[0, 0] = 6 * 448.0  # a global scale of 1, so that the grid's ties are ties
    yield grid
    yield numpy.zeros((8, 32))
    yield numpy.full((8, 32), -1e-30)


class Formats(unittest.TestCase):
    def test_quantizer_has_the_tools_bytes(self):
        for weight in weights():
            weight = weight.astype(numpy.float32)
            packed, scales, scale_2 = tool.quantize(weight)
            for given in (torch.from_numpy(weight), torch.from_numpy(weight).double()):
                codes, blocks, global_scale = gemvjit.quantize_nvfp4(given)
                numpy.testing.assert_array_equal(codes.numpy(), packed)
                numpy.testing.assert_array_equal(blocks.view(torch.uint8).numpy(), scales)
                self.assertEqual(numpy.float32(global_scale.item()), scale_2)
                numpy.testing.assert_array_equal(
                    gemvjit.dequantize_nvfp4(codes, blocks, global_scale).numpy(),
                    tool.dequantize(packed, scales, numpy.float64(scale_2)))

    def test_a_bfloat16_weight_and_chunks(self):
        weight = torch.randn(64, 48).bfloat16()
        whole = gemvjit.quantize_nvfp4(weight)
        with mock.patch.object(gemvjit.formats, "ELEMENTS_AT_ONCE", 100):
            pieces = gemvjit.quantize_nvfp4(weight)
        packed, scales, scale_2 = tool.quantize(weight.float().numpy())
        for codes, blocks, global_scale in (whole, pieces):
            numpy.testing.assert_array_equal(codes.numpy(), packed)
            numpy.testing.assert_array_equal(blocks.view(torch.uint8).numpy(), scales)

    def test_what_cannot_be_quantized(self):
        for wrong in (torch.zeros(8, 24), torch.zeros(16), torch.zeros(8, 16, dtype=torch.int32),
                      torch.full((8, 16), float("nan"))):
            with self.assertRaisesRegex(gemvjit.InvalidArgument, "quantize_nvfp4: weight: expected"):
                gemvjit.quantize_nvfp4(wrong)

    def test_swizzle_and_back(self):
        for n, groups in ((1, 1), (129, 5), (464, 29)):
            plain = torch.randint(0, 127, (n, groups), dtype=torch.uint8)
            swizzled = gemvjit.swizzle_blockscale(plain.view(torch.float8_e4m3fn))
            self.assertEqual(swizzled.dtype, torch.float8_e4m3fn)
            numpy.testing.assert_array_equal(swizzled.view(torch.uint8).numpy(),
                                             gemvjit.swizzle_blockscale(plain.numpy()))
            back = gemvjit.unswizzle_blockscale(swizzled, n, groups * 16)
            self.assertTrue(torch.equal(back.view(torch.uint8), plain))


def layer(n=256, k=192, m=3):
    torch.manual_seed(n + k + m)
    codes, scales, global_scale = gemvjit.quantize_nvfp4(torch.randn(n, k) * 0.05)
    return torch.randn(m, k).bfloat16(), codes, gemvjit.swizzle_blockscale(scales).view(torch.uint8), global_scale


class Operators(unittest.TestCase):
    def test_opcheck(self):
        x, codes, scales, global_scale = layer()
        ops = torch.ops.gemvjit
        for silu_mul in (False, True):
            opcheck(ops.nvfp4_gemv, (x, codes, scales, global_scale), {"silu_mul": silu_mul})
            opcheck(ops.bf16_gemv, (x, torch.randn(32, 192).bfloat16()), {"silu_mul": silu_mul, "pdl": False})
        opcheck(ops.dequantize_rows, (codes, scales))

    def test_fake_shapes(self):
        with torch._subclasses.fake_tensor.FakeTensorMode():
            x = torch.empty((5, 64), dtype=torch.bfloat16, device="cuda")
            weight = torch.empty((48, 32), dtype=torch.uint8, device="cuda")
            scales = torch.empty((128, 4), dtype=torch.uint8, device="cuda")
            one = torch.empty((), device="cuda")
            for silu_mul, columns in ((False, 48), (True, 24)):
                out = torch.ops.gemvjit.nvfp4_gemv(x, weight, scales, one, silu_mul)
                self.assertEqual((tuple(out.shape), out.dtype, out.device.type), ((5, columns), torch.bfloat16, "cuda"))
            rows = torch.ops.gemvjit.dequantize_rows(weight, scales)
            self.assertEqual((tuple(rows.shape), rows.dtype), ((48, 64), torch.bfloat16))
            with self.assertRaisesRegex(RuntimeError, "does not fit x"):
                torch.ops.gemvjit.nvfp4_gemv(x[:, :32], weight, scales, one)

    def test_package_functions_become_operators_in_a_compiled_graph(self):
        x, codes, scales, global_scale = layer()
        operators = []

        def backend(graph, inputs):
            operators.extend(str(node.target) for node in graph.graph.nodes if node.op == "call_function")
            return graph

        compiled = torch.compile(lambda x: gemvjit.nvfp4_gemv(x, codes, scales, global_scale, pdl=False).relu(),
                                 fullgraph=True, backend=backend)
        want = torch.ops.gemvjit.nvfp4_gemv(x, codes, scales, global_scale).relu()
        self.assertTrue(torch.equal(compiled(x), want))
        self.assertTrue(any("gemvjit.nvfp4_gemv" in name for name in operators), operators)
        with self.assertRaisesRegex(gemvjit.InvalidArgument, "expected a CUDA tensor"):  # outside of a graph
            gemvjit.nvfp4_gemv(x, codes, scales, global_scale)

    def test_the_reference_sees_wrong_formats(self):
        """Negative controls: swapped nibbles, scales that are not swizzled, scales of the next block."""
        x, codes, scales, global_scale = layer()
        plain = gemvjit.unswizzle_blockscale(scales, 256, 192)
        weight = gemvjit.dequantize_nvfp4(codes, plain, global_scale)
        want = x.double() @ weight.t()
        tolerance = 2 ** -8 * want.abs() + 2 ** -19 * (x.double().abs() @ weight.abs().t())

        def agrees(codes, scales):
            got = torch.ops.gemvjit.nvfp4_gemv(x, codes, scales, global_scale).double()
            return bool(((got - want).abs() <= tolerance).all())

        unswizzled = torch.zeros_like(scales).view(-1)
        unswizzled[:plain.numel()] = plain.view(-1)
        self.assertTrue(agrees(codes, scales))
        self.assertFalse(agrees(codes << 4 | codes >> 4, scales))
        self.assertFalse(agrees(codes, unswizzled.view_as(scales)))
        self.assertFalse(agrees(codes, gemvjit.swizzle_blockscale(plain.roll(1, dims=1))))


class LinearModule(unittest.TestCase):
    def serve(self, linear, *tokens):
        linear._gemv_serves = tuple(m in tokens for m in range(_linear.MAX_TOKENS + 1))
        return linear

    def paths(self, linear, *tokens):
        taken = []
        with mock.patch.object(linear, "_gemv", side_effect=lambda x: (taken.append(True), linear._product(x))[1]):
            for m in tokens:
                taken.append(False)
                linear(torch.randn(m, linear.in_features).bfloat16())
                if taken[-1] is True:
                    taken.pop(-2)
        return taken

    def test_the_gemv_only_where_it_was_chosen(self):
        linear = gemvjit.torch.Linear.from_bf16(torch.randn(16, 64).bfloat16())
        self.assertEqual(self.paths(linear, 1, 8, 33), [False, False, False])
        self.serve(linear, 1, 2, 32)
        self.assertEqual(self.paths(linear, 1, 2, 3, 32, 33, 0), [True, True, False, True, False, False])

    def test_both_paths_agree(self):
        bias = torch.randn(32).bfloat16()
        weight = torch.randn(32, 64) * 0.1
        x = torch.randn(2, 3, 64).bfloat16()
        for linear in (gemvjit.torch.Linear.quantized(weight, bias),
                       gemvjit.torch.Linear.quantized(weight, silu_mul=True),
                       gemvjit.torch.Linear.from_bf16(weight.bfloat16(), silu_mul=True),
                       gemvjit.torch.Linear.from_linear(torch.nn.Linear(64, 32))):
            other = linear(x)
            direct = self.serve(copy.deepcopy(linear), 6)(x)
            self.assertEqual(other.shape, (2, 3, 16 if linear.silu_mul else 32))
            torch.testing.assert_close(direct, other, rtol=2 ** -6, atol=2 ** -6)
            self.assertFalse(torch.equal(other, torch.zeros_like(other)))

    def test_compiled_whole_for_both_paths(self):
        linear = self.serve(gemvjit.torch.Linear.quantized(torch.randn(32, 64)), 1, 2)
        compiled = torch.compile(linear, fullgraph=True, backend="aot_eager")
        for m in (1, 2, 3, 40, 50):
            x = torch.randn(m, 64).bfloat16()
            self.assertTrue(torch.equal(compiled(x), linear(x)), m)

    def test_scale_layout_is_asked_for(self):
        codes, scales, global_scale = gemvjit.quantize_nvfp4(torch.randn(256, 128))
        make = gemvjit.torch.Linear.from_nvfp4
        x = torch.randn(2, 128).bfloat16()
        plain = make(codes, scales, global_scale, "row_major")
        swizzled = make(codes, gemvjit.swizzle_blockscale(scales), global_scale.item(), "128x4")
        self.assertTrue(torch.equal(plain(x), swizzled(x)))
        self.assertFalse(torch.equal(plain(x), make(codes, scales, global_scale, "128x4")(x)))  # a lie is not seen
        with self.assertRaisesRegex(gemvjit.InvalidArgument, "scale_layout"):
            make(codes, scales, global_scale, None)
        with self.assertRaisesRegex(gemvjit.InvalidArgument, r"weight_scale.*\[256, 8\]"):
            make(codes, scales[:100], global_scale, "row_major")

    def test_conversions_of_the_model_leave_the_scales(self):
        linear = gemvjit.torch.Linear.quantized(torch.randn(32, 64))
        before = linear.weight_scale.clone(), linear.global_scale.clone()
        model = torch.nn.Sequential(linear).to(torch.bfloat16)
        self.assertEqual(model[0].global_scale.dtype, torch.float32)
        self.assertTrue(torch.equal(model[0].global_scale, before[1]))
        self.assertTrue(torch.equal(model[0].weight_scale, before[0]))

    def test_choices_are_those_of_pick_nt(self):
        linear = gemvjit.torch.Linear(torch.empty(4096, 2048, dtype=torch.uint8),
                                      torch.empty(4096, 256, dtype=torch.uint8), torch.ones(1))
        chosen = linear.choices(arch="sm_90a")
        self.assertEqual(chosen, (None, *(gemvjit.pick_nt(4096, 4096, m, arch="sm_90a") for m in range(1, 33))))
        self.assertIn(1, chosen)

    def test_warmup_needs_the_device(self):
        with self.assertRaisesRegex(gemvjit.InvalidArgument, "CUDA device, found cpu"):
            gemvjit.torch.Linear.quantized(torch.randn(32, 64)).warmup()


class GpuProgram(unittest.TestCase):
    def test_dry_run(self):
        """test_gpu.py with the CPU's reference in place of the kernels: its cases, references and controls hold."""
        program = Path(__file__).resolve().parent / "test_gpu.py"
        done = subprocess.run([sys.executable, "-B", program, "--library", sys.argv[1], "--dry-run", "Numbers"],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("7 passed, 0 failed, 0 skipped", done.stdout)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
