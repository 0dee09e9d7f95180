"""Tests of tools/quantize_nvfp4.py: every rounding decision against exact rational arithmetic, the layout, bad input.

Run by ctest. Exits 77 (skipped, with the reason) where numpy is missing: tools/setup.sh installs it.
"""

import contextlib
import importlib.util
import io
import json
import os
import struct
import subprocess
import sys
import tempfile
import unittest
from unittest import mock
from fractions import Fraction
from pathlib import Path

try:
    import numpy as np
except ImportError:
    print("SKIPPED: this Python has no numpy; tools/setup.sh makes one that has")
    sys.exit(77)

TOOL = Path(__file__).resolve().parents[2] / "tools" / "quantize_nvfp4.py"
spec = importlib.util.spec_from_file_location("quantize_nvfp4", TOOL)
tool = importlib.util.module_from_spec(spec)
sys.dont_write_bytecode = True
spec.loader.exec_module(tool)

E2M1 = [Fraction(v) for v in ("0", "1/2", "1", "3/2", "2", "3", "4", "6")]
E4M3 = [Fraction(c & 7, 512) if c < 8 else Fraction(8 + (c & 7), 8) * Fraction(2) ** ((c >> 3) - 7) for c in range(127)]


def nearest_even(grid, value):
    """Index of the grid value nearest to `value`, of two equally near the even index."""
    best = min(abs(g - value) for g in grid)
    near = [i for i, g in enumerate(grid) if abs(g - value) == best]
    return near[0] if len(near) == 1 else next(i for i in near if i % 2 == 0)


def exact_quantize(weight):
    """The definition, in rational arithmetic: codes [N][K], scale codes [N][K/16]."""
    amax = max(abs(Fraction(float(v))) for v in weight.flat)
    scale_2 = Fraction(float(np.float32(float(amax) / 2688)))
    all_codes, all_scales = [], []
    for row in weight:
        codes, scales = [], []
        for start in range(0, len(row), 16):
            block = [Fraction(float(v)) for v in row[start:start + 16]]
            scale = nearest_even(E4M3, max(abs(v) for v in block) / 6 / scale_2)
            unit = E4M3[scale] * scale_2
            for value, original in zip(block, row[start:start + 16]):
                code = nearest_even(E2M1, abs(value) / unit) if unit else 0
                codes.append(code | (8 if np.signbit(original) else 0))
            scales.append(scale)
        all_codes.append(codes)
        all_scales.append(scales)
    return np.array(all_codes, np.uint8), np.array(all_scales, np.uint8), float(scale_2)


def unpack(packed):
    codes = np.empty((packed.shape[0], packed.shape[1] * 2), np.uint8)
    codes[:, 0::2], codes[:, 1::2] = packed & 15, packed >> 4
    return codes


def file_bytes(tensors):
    """A safetensors file from name -> (dtype, shape, bytes)."""
    header, data = {}, b""
    for name, (dtype, shape, content) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def f32(array):
    array = np.asarray(array, np.float32)
    return "F32", list(array.shape), array.tobytes()


class Rounding(unittest.TestCase):
    def test_e4m3_table_matches_its_definition(self):
        codes = np.arange(127, dtype=np.uint8)
        self.assertEqual([Fraction(float(v)) for v in tool.e4m3_to_float(codes)], E4M3)

    def test_e4m3_every_code_midpoint_and_neighbour(self):
        values = []
        for low, high in zip(E4M3, E4M3[1:]):
            middle = float((low + high) / 2)
            values += [float(low), np.nextafter(middle, 0), middle, np.nextafter(middle, 1e9)]
        values += [448.0, 460.0, 464.0, 1e6]
        got = tool.e4m3_from_positive(np.array(values))
        self.assertEqual(list(got), [nearest_even(E4M3, Fraction(float(v))) for v in values])

    def test_e2m1_every_code_midpoint_and_neighbour(self):
        values = []
        for low, high in zip(E2M1, E2M1[1:]):
            middle = float((low + high) / 2)
            values += [float(low), np.nextafter(middle, 0), middle, np.nextafter(middle, 9)]
        values += [6.0, 7.0, 1e30]
        want = [nearest_even(E2M1, Fraction(float(v))) for v in values]
        self.assertEqual(list(tool.e2m1_from(np.array(values))), want)
        self.assertEqual(list(tool.e2m1_from(-np.array(values))), [code | 8 for code in want])

    def test_bf16_ties_go_to_even(self):
        patterns = [0x3F808000, 0x3F818000, 0x3F808001, 0x3F807FFF, 0xBF808000, 0x00000001, 0x80000000]
        got = tool.bf16_from_float32(np.array(patterns, np.uint32).view(np.float32))
        self.assertEqual(list(got), [0x3F80, 0x3F82, 0x3F81, 0x3F80, 0xBF80, 0x0000, 0x8000])


class Quantize(unittest.TestCase):
    def check_exact(self, weight):
        weight = np.asarray(weight, np.float32)
        packed, scales, scale_2 = tool.quantize(weight)
        codes, want_scales, want_scale_2 = exact_quantize(weight)
        self.assertEqual(float(scale_2), want_scale_2)
        np.testing.assert_array_equal(scales, want_scales)
        np.testing.assert_array_equal(unpack(packed), codes)
        return packed, scales, scale_2

    def test_random_weights_agree_with_the_definition(self):
        rng = np.random.default_rng(1)
        self.check_exact(rng.normal(0, 0.05, (8, 64)))
        # Blocks of very different size: subnormal scales and scales that round to zero.
        self.check_exact(rng.normal(0, 1, (8, 64)) * np.exp(rng.uniform(-14, 3, (8, 4))).repeat(16, axis=1))

    def test_wrong_quantizers_are_seen(self):
        """Negative control: the comparison with the definition fails for each classic mistake."""
        weight = np.random.default_rng(1).normal(0, 0.05, (8, 64)).astype(np.float32)
        e2m1_from, quantize = tool.e2m1_from, tool.quantize

        def swapped(w):
            packed, scales, scale_2 = quantize(w)
            return packed << 4 | packed >> 4, scales, scale_2

        def reciprocal(w):
            packed, scales, scale_2 = quantize(w)
            return packed, scales, np.float32(1 / scale_2)

        def shifted(w):
            packed, scales, scale_2 = quantize(w)
            return packed, np.roll(scales, 1, axis=1), scale_2

        for name, value in (("quantize", swapped), ("quantize", reciprocal), ("quantize", shifted),
                            ("e2m1_from", lambda v: e2m1_from(np.asarray(v) * 1.2))):
            with self.subTest(name=name), mock.patch.object(tool, name, value), self.assertRaises(AssertionError):
                self.check_exact(weight)

    def test_values_on_the_grid_come_back_unchanged(self):
        rng = np.random.default_rng(2)
        scales = tool.e4m3_to_float(rng.integers(0x20, 0x70, (8, 4)).astype(np.uint8))
        scales[0, 0] = 448
        values = tool.e2m1_to_float(rng.integers(0, 16, (8, 4, 16)))
        values[:, :, 3] = 6  # a block's scale follows from its largest magnitude
        weight = (values * scales[:, :, None] / 1024).reshape(8, 64).astype(np.float32)
        packed, got_scales, scale_2 = self.check_exact(weight)
        np.testing.assert_array_equal(tool.dequantize(packed, got_scales, scale_2), weight)

    def test_ties_go_to_the_even_code(self):
        block = np.zeros((8, 16), np.float32)
        block[:, :9] = [6, 0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5, -2.5]
        block[0, 15] = 6
        # amax 6 / 2688 and a block scale of 448 make a unit of 1, but for the rounding of 6/2688.
        packed, scales, scale_2 = self.check_exact(block * 448)
        self.assertEqual(float(scale_2) * 448, 448.0)
        self.assertEqual(list(unpack(packed)[1, :9]), [7, 0, 2, 2, 4, 4, 6, 6, 12])

    def test_error_stays_within_half_a_step(self):
        weight = np.random.default_rng(3).normal(0, 0.02, (64, 256)).astype(np.float32)
        packed, scales, scale_2 = tool.quantize(weight)
        unit = (tool.e4m3_to_float(scales) * float(scale_2)).repeat(16, axis=1)
        error = np.abs(tool.dequantize(packed, scales, scale_2) - weight)
        # The widest step, 4 to 6, is 2 units; the rounded scale (1/16 at most) may cut 6 * 17/16 to 6.
        self.assertTrue((error <= unit * (1 + 1e-12)).all())
        self.assertGreater(error.max(), 0)
        relative = np.linalg.norm(error) / np.linalg.norm(weight)
        self.assertLess(relative, 0.12)
        self.assertGreater(relative, 0.05)

    def test_even_k_is_in_the_low_nibble(self):
        weight = np.zeros((8, 16), np.float32)
        weight[0, 0], weight[0, 1], weight[0, 5] = 6, -3, 6
        packed, _, _ = tool.quantize(weight)
        self.assertEqual(list(packed[0]), [0xD7, 0, 0x70, 0, 0, 0, 0, 0])

    def test_zero_block_and_zero_weight(self):
        weight = np.ones((8, 32), np.float32)
        weight[2, 16:] = 0
        packed, scales, scale_2 = self.check_exact(weight)
        self.assertEqual(scales[2, 1], 0)
        self.assertFalse(packed[2, 8:].any())
        packed, scales, scale_2 = tool.quantize(np.zeros((8, 32), np.float32))
        self.assertFalse(packed.any() or scales.any())
        self.assertGreater(scale_2, 0)

    def test_rows_done_in_pieces_agree_with_all_at_once(self):
        weight = np.random.default_rng(4).normal(0, 1, (24, 48)).astype(np.float32)
        whole = tool.quantize(weight)
        before, tool.ROWS_AT_ONCE = tool.ROWS_AT_ONCE, 5 * 48
        try:
            pieces = tool.quantize(weight)
        finally:
            tool.ROWS_AT_ONCE = before
        for a, b in zip(whole, pieces):
            np.testing.assert_array_equal(a, b)


class Checkpoint(unittest.TestCase):
    def setUp(self):
        self.temp = tempfile.TemporaryDirectory()
        self.addCleanup(self.temp.cleanup)
        self.source, self.destination = Path(self.temp.name) / "source", Path(self.temp.name) / "destination"
        self.source.mkdir()
        rng = np.random.default_rng(5)
        self.linear = rng.normal(0, 0.1, (16, 32)).astype(np.float32)
        self.tensors = {
            "embeddings.word_embeddings.weight": f32(rng.normal(0, 1, (40, 32))),
            "layer.dense.weight": f32(self.linear),
            "layer.dense.bias": f32(rng.normal(0, 1, 16)),
            "layer.norm.weight": f32(np.ones(32)),
            "lm_head.weight": f32(rng.normal(0, 1, (40, 32))),
            "position_ids": ("I64", [1, 3], np.arange(3, dtype=np.int64).tobytes()),
        }

    def convert(self, *arguments):
        (self.source / "model.safetensors").write_bytes(file_bytes(self.tensors))
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = tool.main([str(self.source), str(self.destination), *arguments])
        return code, out.getvalue(), err.getvalue()

    def result(self):
        path = self.destination / "model.safetensors"
        data = path.read_bytes()
        length = struct.unpack("<Q", data[:8])[0]
        header = json.loads(data[8:8 + length])
        header.pop("__metadata__")
        ends, got = [0], {}
        for name, entry in header.items():
            begin, end = entry["data_offsets"]
            self.assertEqual(begin, ends[-1], "no holes")
            ends.append(end)
            got[name] = (entry["dtype"], entry["shape"], data[8 + length + begin:8 + length + end])
            self.assertEqual((8 + length + begin) % tool.ITEM_BYTES[entry["dtype"]], 0, f"{name} is not aligned")
        self.assertEqual(8 + length + ends[-1], len(data))
        return got

    def test_layout_is_modelopts(self):
        (self.source / "config.json").write_text('{"model_type": "bert"}')
        code, out, err = self.convert()
        self.assertEqual((code, err), (0, ""))
        self.assertIn("1 layers NVFP4", out)
        got = self.result()
        packed, scales, scale_2 = tool.quantize(self.linear)
        self.assertEqual(got["layer.dense.weight"], ("U8", [16, 16], packed.tobytes()))
        self.assertEqual(got["layer.dense.weight_scale"], ("F8_E4M3", [16, 2], scales.tobytes()))
        self.assertEqual(got["layer.dense.weight_scale_2"], ("F32", [], np.float32(scale_2).tobytes()))
        for name in set(self.tensors) - {"layer.dense.weight"}:
            self.assertEqual(got[name], tuple(self.tensors[name]), name)
        config = json.loads((self.destination / "hf_quant_config.json").read_text())["quantization"]
        self.assertEqual((config["quant_algo"], config["group_size"]), ("NVFP4", 16))
        self.assertEqual(config["exclude_modules"], ["lm_head"])
        self.assertEqual((self.destination / "config.json").read_text(), '{"model_type": "bert"}')

    def test_links_that_another_user_put_there_are_replaced(self):
        (self.source / "config.json").write_text("{}")
        self.destination.mkdir()
        private = Path(self.temp.name) / "private"
        private.write_text("mine")
        names = ("model.safetensors", "model.safetensors.partial", "config.json", "hf_quant_config.json")
        for name in names:
            (self.destination / name).symlink_to(private)
        code, out, err = self.convert()
        self.assertEqual((code, err), (0, ""), out)
        self.assertEqual(private.read_text(), "mine")
        self.assertTrue(self.result())
        self.assertEqual(sorted(path.name for path in self.destination.iterdir()), sorted(names))

    def test_bf16_twin(self):
        code, out, _ = self.convert("--format", "bf16")
        self.assertEqual(code, 0, out)
        got = self.result()
        self.assertEqual(set(got), set(self.tensors))
        self.assertEqual(got["layer.dense.weight"],
                         ("BF16", [16, 32], tool.bf16_from_float32(self.linear).tobytes()))
        self.assertFalse((self.destination / "hf_quant_config.json").exists())

    def test_bf16_and_f16_sources_mean_the_same_values(self):
        values = np.round(self.linear * 64) / 64  # exact in both
        results = []
        for dtype, data in (("F32", values.astype(np.float32)), ("F16", values.astype(np.float16)),
                            ("BF16", tool.bf16_from_float32(values))):
            self.tensors["layer.dense.weight"] = (dtype, [16, 32], data.tobytes())
            self.assertEqual(self.convert()[0], 0)
            results.append([self.result()["layer.dense.weight" + end] for end in ("", "_scale", "_scale_2")])
        self.assertEqual(results[0], results[1])
        self.assertEqual(results[0], results[2])

    def test_shapes_that_nvfp4_cannot_have_stay_bf16_with_a_note(self):
        self.tensors["odd_k.weight"] = f32(np.ones((8, 24)))
        self.tensors["odd_n.weight"] = f32(np.ones((12, 32)))
        code, _, err = self.convert()
        self.assertEqual(code, 0)
        got = self.result()
        for name in ("odd_k", "odd_n"):
            self.assertEqual(got[f"{name}.weight"][0], "BF16")
            self.assertIn(f"{name}.weight", err)
        config = json.loads((self.destination / "hf_quant_config.json").read_text())["quantization"]
        self.assertEqual(config["exclude_modules"], ["lm_head", "odd_k", "odd_n"])

    def test_exclude_keeps_a_layer(self):
        self.tensors["other.weight"] = f32(np.ones((8, 32)))
        self.assertEqual(self.convert("--exclude", "layer.*")[0], 0)
        self.assertEqual(self.result()["layer.dense.weight"][0], "F32")
        self.assertEqual(self.result()["other.weight"][0], "U8")

    def test_nan_and_infinity_are_refused_by_name(self):
        for bad in (np.nan, np.inf, -np.inf):
            for output_format in ("nvfp4", "bf16"):
                values = self.linear.copy()
                values[3, 7] = bad
                self.tensors["layer.dense.weight"] = f32(values)
                code, _, err = self.convert("--format", output_format)
                self.assertEqual(code, 1)
                self.assertIn("layer.dense.weight", err)
                self.assertIn("[3, 7]", err)
                self.assertEqual(list(self.destination.iterdir()), [], "nothing half-written stays")

    def test_damaged_files_are_refused(self):
        good = file_bytes(self.tensors)
        liar = good.replace(b'"shape": [16, 32]', b'"shape": [16, 64]')
        self.assertNotEqual(good, liar)
        for name, data in {"empty": b"", "short": good[:5], "cut header": good[:40], "cut data": good[:-1],
                           "text": b"this is no tensor file at all", "lying shape": liar,
                           "huge header": struct.pack("<Q", 1 << 60) + good[8:],
                           "list header": struct.pack("<Q", 8) + b'{"a":[]}'}.items():
            (self.source / "model.safetensors").write_bytes(data)
            err = io.StringIO()
            with contextlib.redirect_stderr(err), contextlib.redirect_stdout(io.StringIO()):
                self.assertEqual(tool.main([str(self.source), str(self.destination)]), 1, name)
            self.assertIn("model.safetensors", err.getvalue(), name)

    def refusal(self):
        """What is said of the source as it lies there; exactly one line."""
        err = io.StringIO()
        with contextlib.redirect_stderr(err), contextlib.redirect_stdout(io.StringIO()):
            self.assertEqual(tool.main([str(self.source), str(self.destination)]), 1)
        self.assertEqual(err.getvalue().count("\n"), 1, err.getvalue())
        return err.getvalue()

    def test_headers_that_are_no_tensors_are_refused_in_one_line(self):
        entry = '{"dtype": "U8", "shape": [2], "data_offsets": [%d, %d]}'
        cases = {
            "[]": "not a JSON object", "null": "not a JSON object", "3 ": "not a JSON object", "{x": "no JSON",
            "[" * 100_000: "no JSON", '{"a":' * 50_000: "no JSON",
            '{"a": %s, "a": %s}' % (entry % (0, 2), entry % (0, 2)): "'a' twice",
            '{"a": %s, "b": %s}' % (entry % (0, 2), entry % (1, 3)): "'b' overlaps",
            '{"a": %s, "b": %s}' % (entry % (0, 2), entry % (3, 5)): "1 bytes before tensor 'b'",
            '{"a": %s}' % (entry % (0, 2)): "last 4 bytes",
            '{"a": %s}' % (entry % (2, 4)): "2 bytes before tensor 'a'",
            '{"a": 3}': "'a': its header entry", '{"a": {"dtype": []}}': "type",
            '{"a": {"dtype": "U8", "shape": [true], "data_offsets": [0, 1]}}': "no list of sizes",
            '{"a": {"dtype": "U8", "shape": [2.0], "data_offsets": [0, 2]}}': "no list of sizes",
            '{"\\u001b[2J\\u0000": 3}': "'\\x1b[2J\\x00'", '{"%s": 3}' % ("x" * 9999): "xxx...",
        }
        for header, said in cases.items():
            with self.subTest(header[:60]):
                data = struct.pack("<Q", len(header)) + header.encode() + b"\0" * 6
                (self.source / "model.safetensors").write_bytes(data)
                text = self.refusal()
                self.assertIn(said, text)
                self.assertLess(len(text), 600)

    def test_what_is_no_regular_file_is_refused_and_does_not_hang(self):
        os.mkfifo(self.source / "model.safetensors")
        self.assertIn("not a regular file", self.refusal())
        (self.source / "model.safetensors").unlink()
        (self.source / "model.safetensors").mkdir()
        self.assertIn("model.safetensors", self.refusal())
        os.mkfifo(self.source / "model.safetensors.index.json")
        self.assertIn("not a regular file", self.refusal())

    def test_an_index_stays_in_its_folder_and_tells_the_truth(self):
        outside = Path(self.temp.name) / "outside.safetensors"
        outside.write_bytes(file_bytes(self.tensors))
        (self.source / "model.safetensors").write_bytes(file_bytes(self.tensors))
        index = self.source / "model.safetensors.index.json"
        for name in ("../outside.safetensors", str(outside), "", ".", "..", 3, ["model.safetensors"]):
            index.write_text(json.dumps({"weight_map": {"layer.dense.weight": name}}))
            self.assertIn("no name of a file", self.refusal(), name)
        index.write_text('{"weight_map": {"gone.weight": "model.safetensors"}}')
        self.assertIn("gone.weight", self.refusal())
        for text in ('{"weight_map": {}}', "null", "[" * 100_000):
            index.write_text(text)
            self.assertIn("index", self.refusal())

    def test_a_result_that_cannot_be_written_is_an_error(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("there is no /dev/full here")
        (self.source / "model.safetensors").write_bytes(file_bytes(self.tensors))
        with open("/dev/full", "w") as full:
            done = subprocess.run([sys.executable, "-B", tool.__file__, str(self.source), str(self.destination)],
                                  stdout=full, stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def test_an_index_says_which_files_count(self):
        (self.source / "shard.safetensors").write_bytes(file_bytes({"extra.weight": f32(np.ones((8, 16)))}))
        (self.source / "consolidated.safetensors").write_bytes(file_bytes(self.tensors))
        files = {"extra.weight": "shard.safetensors", **{name: "model.safetensors" for name in self.tensors}}
        index = self.source / "model.safetensors.index.json"
        index.write_text(json.dumps({"weight_map": files}))
        self.assertEqual(self.convert()[0], 0)
        self.assertEqual(self.result()["extra.weight"][0], "U8")
        index.write_text("[]")
        self.assertIn("index.json", self.convert()[2])
        index.write_text('{"weight_map": {"a": "absent.safetensors"}}')
        self.assertIn("absent.safetensors", self.convert()[2])

    def test_other_misuse_is_refused(self):
        def refused(*folders):
            err = io.StringIO()
            with contextlib.redirect_stderr(err), contextlib.redirect_stdout(io.StringIO()):
                self.assertEqual(tool.main([str(folder) for folder in folders]), 1)
            return err.getvalue()

        self.assertIn("no .safetensors", refused(self.source, self.destination))
        self.convert()
        self.assertIn("same folder", refused(self.source, self.source))
        self.assertIn("no linear layer", refused(self.destination, Path(self.temp.name) / "again"))
        self.tensors["layer.dense.weight_scale"] = f32(np.ones(3))
        self.assertIn("already", self.convert()[2])
        del self.tensors["layer.dense.weight_scale"]
        (self.source / "second.safetensors").write_bytes(file_bytes({"layer.norm.weight": f32(np.ones(32))}))
        self.assertIn("layer.norm.weight is in", self.convert()[2])
        (self.source / "second.safetensors").rename(self.destination / "second.safetensors")
        self.assertIn("name an empty folder", self.convert()[2])


if __name__ == "__main__":
    unittest.main(verbosity=1)
