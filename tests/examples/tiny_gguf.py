"""Writes GGUF files byte by byte, without the library that reads them: a Llama of two layers with random weights in Q4_1,
Q8_0 and F32, and a vocabulary of all bytes, a few merges and three control tokens."""

import struct

import numpy as np

LAYERS, HIDDEN, INTER, HEADS, KV_HEADS = 2, 64, 128, 2, 1
F32, F16, Q4_1, Q8_0 = 0, 1, 3, 8
ALIGNMENT = 32
UINT32, FLOAT32, STRING, ARRAY = 4, 6, 8, 9
CONTROLS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
MERGES = ["Ġ t", "h e", "Ġt he", "Ġ Ġ", "l l", "Ċ Ċ"]


def byte_sign(byte):
    """As the GPT-2 vocabulary has it, counted anew: what cannot be seen stands at U+0100 and after, in the bytes' order."""
    def is_seen(value):
        return 0x21 <= value <= 0x7E or 0xA1 <= value <= 0xAC or value >= 0xAE
    return chr(byte) if is_seen(byte) else chr(256 + sum(not is_seen(value) for value in range(byte)))


TOKENS = CONTROLS + [byte_sign(byte) for byte in range(256)] + [merge.replace(" ", "") for merge in MERGES]
TOKENS += [f"spare{i}" for i in range(-len(TOKENS) % 8)]  # rows of a head are a multiple of 8


def string(text):
    raw = text.encode()
    return struct.pack("<Q", len(raw)) + raw


def value(given):
    """Type and bytes of a metadata value."""
    if isinstance(given, list):
        kind = STRING if isinstance(given[0], str) else UINT32
        body = b"".join(string(one) if kind == STRING else struct.pack("<I", one) for one in given)
        return struct.pack("<IIQ", ARRAY, kind, len(given)) + body
    if isinstance(given, str):
        return struct.pack("<I", STRING) + string(given)
    if isinstance(given, float):
        return struct.pack("<If", FLOAT32, given)
    return struct.pack("<II", UINT32, given)


def gguf_bytes(metadata, tensors):
    """tensors: name -> (shape as an array has it, type, bytes)."""
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata))
    head += b"".join(string(key) + value(given) for key, given in metadata.items())
    body = b""
    for name, (shape, kind, raw) in tensors.items():
        head += string(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *reversed(shape), kind, len(body))
        body += raw + bytes(-len(raw) % ALIGNMENT)
    return head + bytes(-len(head) % ALIGNMENT) + body


def q4_1(blocks):
    """Bytes of [(scale, least, 32 codes)]; the values are scale * code + least. The first 16 codes are the low nibbles."""
    return b"".join(struct.pack("<ee", scale, least) + bytes(codes[i] | codes[i + 16] << 4 for i in range(16))
                    for scale, least, codes in blocks)


def q8_0(blocks):
    """Bytes of [(scale, 32 signed codes)]."""
    return b"".join(struct.pack("<e32b", scale, *codes) for scale, codes in blocks)


def random_tensor(rng, shape, kind):
    """(shape, type, bytes) and the float64 values, all of which BF16 holds exactly where kind is not F32."""
    count = int(np.prod(shape)) // 32
    if kind == F32:
        values = rng.integers(48, 80, shape) / 64  # BF16 holds these, too
        return (shape, kind, values.astype("<f4").tobytes()), values
    if kind == Q4_1:
        codes = rng.integers(0, 16, (count, 32))
        blocks = [(2.0**-5, -7.0 * 2.0**-5, [int(code) for code in row]) for row in codes]
        return (shape, kind, q4_1(blocks)), ((codes - 7) / 32).reshape(shape)
    codes = rng.integers(-127, 128, (count, 32))
    return (shape, kind, q8_0([(2.0**-6, [int(code) for code in row]) for row in codes])), (codes / 64).reshape(shape)


def tiny_llama(seed=1):
    """(metadata, tensors, values): change any of the first two and give them to gguf_bytes."""
    rng, tensors, values = np.random.default_rng(seed), {}, {}
    keys = KV_HEADS * HIDDEN // HEADS
    shapes = {"token_embd": ((len(TOKENS), HIDDEN), Q8_0), "output_norm": ((HIDDEN,), F32)}
    for i in range(LAYERS):
        block = {"attn_norm": ((HIDDEN,), F32), "attn_q": ((HIDDEN, HIDDEN), Q4_1), "attn_k": ((keys, HIDDEN), Q4_1),
                 "attn_v": ((keys, HIDDEN), Q4_1), "attn_output": ((HIDDEN, HIDDEN), Q4_1), "ffn_norm": ((HIDDEN,), F32),
                 "ffn_gate": ((INTER, HIDDEN), Q4_1), "ffn_up": ((INTER, HIDDEN), Q4_1), "ffn_down": ((HIDDEN, INTER), Q4_1)}
        shapes.update({f"blk.{i}.{name}": what for name, what in block.items()})
    for name, (shape, kind) in shapes.items():
        tensors[f"{name}.weight"], values[f"{name}.weight"] = random_tensor(rng, shape, kind)
    metadata = {
        "general.architecture": "llama", "llama.block_count": LAYERS, "llama.context_length": 512,
        "llama.embedding_length": HIDDEN, "llama.feed_forward_length": INTER, "llama.attention.head_count": HEADS,
        "llama.attention.head_count_kv": KV_HEADS, "llama.rope.freq_base": 10000.0,
        "llama.attention.layer_norm_rms_epsilon": 2.0**-17, "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "smollm",
        "tokenizer.ggml.tokens": TOKENS, "tokenizer.ggml.token_type": [3] * 3 + [1] * (len(TOKENS) - 3),
        "tokenizer.ggml.merges": MERGES, "tokenizer.ggml.eos_token_id": 2}
    return metadata, tensors, values
