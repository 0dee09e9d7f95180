"""A decode step of a Llama-shaped model (8B dimensions, random weights) with its linear layers on gemvjit, beside the same
model on torch (cuBLAS), both as CUDA graphs.

    GEMVJIT_LIBRARY=build/release/libgemvjit.so PYTHONPATH=bindings/python python3 examples/decode/decode.py --json out.json

Three ways for the linear layers of one model, so that logits can be compared:

    torch   F.linear in BF16
    bf16    gemvjit.bf16_gemv on the same weights, F.linear where gemvjit.pick_nt gives none
    nvfp4   gemvjit.nvfp4_gemv; the BF16 weights are these dequantized, exactly (the global scale is a power of two)

Everything else (embedding, RMSNorm, rotary positions, attention over a filled KV cache) is torch in all three. Logits are
compared with the same model in float32; as a control one layer's codes are swapped, which the comparison has to see.
Needs torch with CUDA and about 45 GB of device memory; --layers makes it smaller."""

import argparse
import json
import statistics

import torch
import torch.nn.functional as F

import gemvjit

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--layers", type=int, default=32)
parser.add_argument("--batches", default="1,4,8,16,32")
parser.add_argument("--context", type=int, default=512, help="tokens in the KV cache of each sequence")
parser.add_argument("--replays", type=int, default=30)
parser.add_argument("--json")
options = parser.parse_args()

HIDDEN, HEADS, KV_HEADS, HEAD, INTER, VOCAB = 4096, 32, 8, 128, 14336, 128256
QKV = (HEADS + 2 * KV_HEADS) * HEAD
GLOBAL_SCALE = 2.0**-8
WAYS = ("torch", "bf16", "nvfp4")
DEVICE = torch.device("cuda")


class Weight:
    """One [n, k] weight in both formats."""

    def __init__(self, n, k, silu_mul=False):
        self.n, self.k, self.silu_mul = n, k, silu_mul
        self.codes = torch.randint(0, 256, (n, k // 2), dtype=torch.uint8, device=DEVICE)
        # E4M3 of 0.5 to 1.875: with these codes and the global scale a row's values have a deviation of about 0.012.
        rows = torch.randint(0x30, 0x40, (n, k // 16), dtype=torch.uint8, device=DEVICE)
        self.scales = gemvjit.swizzle_blockscale(rows)
        self.global_scale = torch.full((1,), GLOBAL_SCALE, dtype=torch.float32, device=DEVICE)
        gemvjit.warmup(n, k, silu_mul, allow_untuned=True)
        gemvjit.warmup(n, k, silu_mul, bf16=True, allow_untuned=True)
        torch.cuda.synchronize()
        self.bf16 = gemvjit.dequantize_rows(self.codes, self.scales) * GLOBAL_SCALE

    def bytes_of(self, way):
        return self.codes.numel() + self.scales.numel() + 4 if way == "nvfp4" else 2 * self.n * self.k

    def __call__(self, x, way):
        if way == "nvfp4":
            return gemvjit.nvfp4_gemv(x, self.codes, self.scales, self.global_scale, silu_mul=self.silu_mul)
        if way == "bf16" and gemvjit.pick_nt(self.n, self.k, x.shape[0], self.silu_mul, bf16=True):
            return gemvjit.bf16_gemv(x, self.bf16, silu_mul=self.silu_mul)
        y = F.linear(x, self.bf16.to(x.dtype))
        if not self.silu_mul:
            return y
        gate, up = y.chunk(2, dim=-1)
        return F.silu(gate) * up


class Model:
    def __init__(self, layers):
        self.embedding = torch.randn(VOCAB, HIDDEN, device=DEVICE).bfloat16()
        self.layers = [{"qkv": Weight(QKV, HIDDEN), "o": Weight(HIDDEN, HEADS * HEAD),
                        "gate_up": Weight(2 * INTER, HIDDEN, silu_mul=True), "down": Weight(HIDDEN, INTER)}
                       for _ in range(layers)]
        self.head = Weight(VOCAB, HIDDEN)

    def weights(self):
        return [weight for layer in self.layers for weight in layer.values()] + [self.head]

    def fill_cache(self, batch, context):
        shape = (batch, KV_HEADS, context, HEAD)
        self.keys = [torch.randn(shape, device=DEVICE).bfloat16() for _ in self.layers]
        self.values = [torch.randn(shape, device=DEVICE).bfloat16() for _ in self.layers]
        angle = (context - 1) / 500000.0 ** (torch.arange(0, HEAD, 2, device=DEVICE) / HEAD)
        self.turn = (angle.cos(), angle.sin())

    def rotate(self, x):
        cos, sin = (part.to(x.dtype) for part in self.turn)
        first, second = x.chunk(2, dim=-1)
        return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)

    def step(self, tokens, way, dtype=torch.bfloat16):
        """Logits [batch, vocabulary] of the token at the last place of the cache."""
        batch = tokens.shape[0]
        norm = torch.ones(HIDDEN, dtype=dtype, device=DEVICE)
        x = self.embedding[tokens].to(dtype)
        for layer, keys, values in zip(self.layers, self.keys, self.values, strict=True):
            q, k, v = layer["qkv"](F.rms_norm(x, (HIDDEN,), norm, 1e-5), way).split(
                (HEADS * HEAD, KV_HEADS * HEAD, KV_HEADS * HEAD), dim=-1)
            keys[:, :, -1] = self.rotate(k.view(batch, KV_HEADS, HEAD))
            values[:, :, -1] = v.view(batch, KV_HEADS, HEAD)
            q = self.rotate(q.view(batch, HEADS, HEAD)).unsqueeze(2)
            attended = F.scaled_dot_product_attention(q, keys.to(dtype), values.to(dtype), enable_gqa=True)
            x = x + layer["o"](attended.reshape(batch, HEADS * HEAD), way)
            x = x + layer["down"](layer["gate_up"](F.rms_norm(x, (HIDDEN,), norm, 1e-5), way), way)
        return self.head(F.rms_norm(x, (HIDDEN,), norm, 1e-5), way)


def captured(model, tokens, way):
    """The step as a graph, and its logits."""
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            model.step(tokens, way)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        logits = model.step(tokens, way)
    return graph, logits


def milliseconds(graph):
    times = []
    for _ in range(options.replays):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    return statistics.median(times)


def error(logits, reference):
    """Root mean square of the difference, as a part of that of the reference."""
    return ((logits.float() - reference).square().mean() / reference.square().mean()).sqrt().item()


def compare(model, batch, row):
    tokens = torch.randint(0, VOCAB, (batch,), device=DEVICE)
    model.fill_cache(batch, options.context)
    reference = model.step(tokens, "torch", torch.float32)
    for way in WAYS:
        graph, logits = captured(model, tokens, way)
        graph.replay()
        torch.cuda.synchronize()
        row[way] = {"error": error(logits, reference),
                    "same_token": (logits.argmax(-1) == reference.argmax(-1)).float().mean().item(),
                    "ms": milliseconds(graph)}
        row[way]["tokens_per_s"] = 1000 * batch / row[way]["ms"]
        del graph
    codes = model.layers[0]["down"].codes
    swapped = codes << 4 | codes >> 4
    model.layers[0]["down"].codes = swapped
    torch.cuda.synchronize()
    row["control_error"] = error(model.step(tokens, "nvfp4"), reference)
    model.layers[0]["down"].codes = codes
    return row


@torch.inference_mode()
def main():
    torch.manual_seed(1)
    model = Model(options.layers)
    gemvjit.seal()
    result = {"device": torch.cuda.get_device_name(), "torch": torch.__version__, "layers": options.layers,
              "context": options.context,
              "weight_gb": {way: sum(weight.bytes_of(way) for weight in model.weights()) / 1e9 for way in WAYS},
              "rows": []}
    print("linear layers: " + ", ".join(f"{way} {size:.2f} GB" for way, size in result["weight_gb"].items()))
    print("batch | " + " | ".join(f"{way}: ms, tokens/s, error, same token" for way in WAYS) + " | control")
    sound = True
    for batch in map(int, options.batches.split(",")):
        row = compare(model, batch, {"batch": batch})
        result["rows"].append(row)
        cells = [f"{row[way]['ms']:.3f}, {row[way]['tokens_per_s']:.0f}, {row[way]['error']:.4f}, "
                 f"{row[way]['same_token']:.2f}" for way in WAYS]
        print(f"{batch} | " + " | ".join(cells) + f" | {row['control_error']:.3f}", flush=True)
        # One rounding a layer less or more is no difference; a wrong weight is one.
        limit = 1.5 * row["torch"]["error"]
        sound = sound and max(row["bf16"]["error"], row["nvfp4"]["error"]) <= limit < row["control_error"]
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=1)
    if not sound:
        raise SystemExit("decode: logits are further from float32 than torch's own BF16 explains")


if __name__ == "__main__":
    main()
