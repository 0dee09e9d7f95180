#!/usr/bin/env python3
"""Quantize the linear layers of a checkpoint to NVFP4, in the layout that ModelOpt exports.

    tools/quantize_nvfp4.py SRC DST [--format nvfp4|bf16] [--exclude PATTERN]...

SRC is a folder of safetensors with F32, F16 or BF16 weights; DST gets model.safetensors, hf_quant_config.json and a
copy of config.json. Of each linear layer X (a 2-D `X.weight` that is no embedding), with N rows and K columns:

    X.weight          U8 [N, K/2]        two E2M1 codes a byte, the even k in the low nibble
    X.weight_scale    F8_E4M3 [N, K/16]  row-major, one scale for 16 values along K
    X.weight_scale_2  F32 []             amax(X.weight) / 2688, a multiplier

    weight[n,k] ~ e2m1(code) * e4m3(weight_scale[n,k/16]) * weight_scale_2

The block scale is amax(block) / 6 / weight_scale_2, rounded to nearest even and at most 448; codes are rounded to
nearest even against that *rounded* scale. Both roundings decide in float64, where every tie of such operands is exact.
All other tensors are copied as they are. Layers whose N is no multiple of 8 or K none of 16 become BF16, as do all with
--format bf16, which makes the BF16 twin of the same checkpoint. A NaN or an infinity in a linear weight is an error
that names the tensor.

Needs numpy only. Memory: the largest tensor, a few times over. Exit 0 if DST was written, 1 for a checkpoint that
cannot be converted or a file that cannot be read or written (one line on stderr), 2 for wrong use.
"""

import argparse
import contextlib
import fnmatch
import json
import math
import os
import secrets
import stat
import struct
import sys
from pathlib import Path

import numpy as np

GROUP = 16  # values that share a block scale
E2M1_MAX, E4M3_MAX = 6.0, 448.0
MAX_HEADER_BYTES = 32 << 20  # of a header or an index; the format would allow a header of 100 MB
MAX_DIMENSIONS, MAX_LISTS = 64, 2_000_000
ROWS_AT_ONCE = 1 << 22  # elements that are in flight as float64

ITEM_BYTES = {"BOOL": 1, "U8": 1, "I8": 1, "F8_E4M3": 1, "F8_E5M2": 1, "U16": 2, "I16": 2, "F16": 2, "BF16": 2,
              "U32": 4, "I32": 4, "F32": 4, "U64": 8, "I64": 8, "F64": 8}
FLOATS = ("F32", "F16", "BF16")

# 2-D tensors called *.weight that are tables, not linear layers; and lm_head, which ModelOpt leaves alone by default.
EXCLUDED = ("*embed*", "*wte.weight", "*wpe.weight", "shared.weight", "*relative_attention_bias*", "*lm_head*")


class InputError(Exception):
    """Something about the checkpoint that the user has to know; the message says where."""


# ---------------------------------------------------------------------------------------------------------- rounding


def e4m3_from_positive(values):
    """Codes of values >= 0, to nearest even, at most 448."""
    _, exponent = np.frexp(values)
    exponent = np.where(values < 2.0**-6, -6, exponent - 1)  # below 2^-6 the step stays 2^-9
    steps = np.rint(np.ldexp(values, 3 - exponent)).astype(np.int64)
    codes = ((exponent.astype(np.int64) + 6) << 3) + steps  # a carry out of `steps` is the next exponent's first code
    return np.minimum(codes, 0x7E).astype(np.uint8)


def e4m3_to_float(codes):
    exponent = (codes >> 3).astype(np.int32)
    mantissa = (codes & 7).astype(np.float64)
    return np.where(exponent == 0, mantissa * 2.0**-9, np.ldexp(1 + mantissa / 8, exponent - 7))


# The midpoints of 0, 0.5, 1, 1.5, 2, 3, 4, 6. A tie goes to the even code: up at those listed second.
_MIDPOINTS_DOWN, _MIDPOINTS_UP = (0.25, 1.25, 2.5, 5.0), (0.75, 1.75, 3.5)


def e2m1_from(values):
    """Codes 0..15, to nearest even, at most 6 in magnitude; the sign is kept, also of what rounds to zero."""
    magnitude = np.abs(values)
    codes = np.signbit(values).astype(np.uint8) << 3
    for midpoint in _MIDPOINTS_DOWN:
        codes += magnitude > midpoint
    for midpoint in _MIDPOINTS_UP:
        codes += magnitude >= midpoint
    return codes


def e2m1_to_float(codes):
    return np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])[codes]


def bf16_from_float32(values):
    """Bit patterns, to nearest even. The values are finite."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    return ((bits + (0x7FFF + ((bits >> 16) & 1))) >> 16).astype(np.uint16)


def float32_from_bf16(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32)


# ------------------------------------------------------------------------------------------------------ quantization


def quantize(weight):
    """[N, K] float32 -> (codes U8 [N, K/2], scales E4M3 [N, K/16], weight_scale_2 float32)."""
    n, k = weight.shape
    # A weight of zeros alone has no amax; any scale serves, and 1 divides safely.
    scale_2 = np.float32(np.max(np.abs(weight)) / (E2M1_MAX * E4M3_MAX)) or np.float32(1)
    packed = np.empty((n, k // 2), np.uint8)
    scales = np.empty((n, k // GROUP), np.uint8)
    step = max(1, ROWS_AT_ONCE // k)
    for row in range(0, n, step):
        blocks = weight[row:row + step].astype(np.float64).reshape(-1, k // GROUP, GROUP)
        scale = e4m3_from_positive(np.abs(blocks).max(axis=2) / E2M1_MAX / np.float64(scale_2))
        unit = e4m3_to_float(scale) * np.float64(scale_2)
        unit[scale == 0] = np.inf  # too small for any scale: the codes are (signed) zeros
        codes = e2m1_from(blocks / unit[:, :, None]).reshape(-1, k)
        packed[row:row + step] = codes[:, 0::2] | (codes[:, 1::2] << 4)
        scales[row:row + step] = scale
    return packed, scales, scale_2


def dequantize(packed, scales, scale_2):
    """The inverse, in float64."""
    n, half = packed.shape
    codes = np.empty((n, 2 * half), np.uint8)
    codes[:, 0::2], codes[:, 1::2] = packed & 15, packed >> 4
    blocks = e2m1_to_float(codes).reshape(n, -1, GROUP) * e4m3_to_float(scales)[:, :, None]
    return (blocks * np.float64(scale_2)).reshape(n, 2 * half)


# ------------------------------------------------------------------------------------------------------- safetensors


class Tensor:
    """One tensor of a file: dtype, shape, and where its bytes are."""

    def __init__(self, path, name, dtype, shape, begin, end):
        self.path, self.name, self.dtype, self.shape = path, name, dtype, tuple(shape)
        self.begin, self.size = begin, end - begin

    def read(self):
        with open(self.path, "rb") as file:
            file.seek(self.begin)
            data = file.read(self.size)
        if len(data) != self.size:
            raise InputError(f"{self.path}: {shown(self.name)} ends early")
        return data

    def as_float32(self):
        data = self.read()
        if self.dtype == "BF16":
            values = float32_from_bf16(np.frombuffer(data, "<u2"))
        else:
            values = np.frombuffer(data, "<f4" if self.dtype == "F32" else "<f2").astype(np.float32)
        return values.reshape(self.shape)


def shown(text, longest=120):
    """Text from a file, for a message: control characters escaped, long ones cut."""
    text = "".join(c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode() for c in str(text))
    return text if len(text) <= longest else text[:longest] + "..."


def open_regular(path):
    """Symbolic links are followed, as download caches are full of them. O_NONBLOCK: opening a FIFO must not hang."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise InputError(f"{path}: is not a regular file")
    return open(descriptor, "rb")


def parse_object(path, text, what):
    """A JSON object without repeated names, which json would silently drop."""
    def unique(pairs):
        names = set()
        for name, _ in pairs:
            if name in names:
                raise InputError(f"{path}: {what} names '{shown(name)}' twice")
            names.add(name)
        return dict(pairs)

    if text.count(b"[") > MAX_LISTS:
        raise InputError(f"{path}: {what} has more lists than any checkpoint")
    try:
        document = json.loads(text, object_pairs_hook=unique)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: {what} is no JSON: {shown(error)}") from None
    if not isinstance(document, dict):
        raise InputError(f"{path}: {what} is not a JSON object")
    return document


def is_size(value):
    return type(value) is int and value >= 0  # a bool is an int, too


def parse_tensor(path, name, entry, data_begin, data_bytes):
    def refuse(what):
        raise InputError(f"{path}: tensor '{shown(name)}': {what}")

    if not isinstance(entry, dict):
        refuse("its header entry is not a JSON object")
    dtype, shape, offsets = entry.get("dtype"), entry.get("shape"), entry.get("data_offsets")
    if not isinstance(dtype, str) or dtype not in ITEM_BYTES:
        refuse(f"its type {shown(dtype)} is not known here")
    if not isinstance(shape, list) or len(shape) > MAX_DIMENSIONS or not all(map(is_size, shape)):
        refuse("its shape is no list of sizes")
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(map(is_size, offsets)) or offsets[0] > offsets[1]:
        refuse("its data_offsets are no range")
    begin, end = offsets
    if end > data_bytes:
        refuse(f"truncated: its data ends at {end} of only {data_bytes} bytes")
    if end - begin != math.prod(shape) * ITEM_BYTES[dtype]:
        refuse(f"{dtype} {shown(shape)} does not take the {end - begin} bytes that its data_offsets span")
    return Tensor(path, name, dtype, shape, data_begin + begin, data_begin + end)


def check_coverage(path, tensors, data_begin, data_bytes):
    """The data is covered once: no overlap, no hole, nothing behind the last tensor."""
    covered = data_begin
    for tensor in sorted(tensors.values(), key=lambda tensor: (tensor.begin, tensor.size)):
        if tensor.begin < covered:
            raise InputError(f"{path}: tensor '{shown(tensor.name)}' overlaps another one")
        if tensor.begin > covered:
            raise InputError(f"{path}: {tensor.begin - covered} bytes before tensor '{shown(tensor.name)}' belong to "
                             "no tensor")
        covered += tensor.size
    if covered != data_begin + data_bytes:
        raise InputError(f"{path}: its last {data_begin + data_bytes - covered} bytes belong to no tensor")


def read_header(path):
    """name -> Tensor, every number checked against the file's size."""
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        start = file.read(8)
        length = struct.unpack("<Q", start)[0] if len(start) == 8 else 0
        if length < 2 or length > min(size - 8, MAX_HEADER_BYTES):
            raise InputError(f"{path}: not a safetensors file (its header would have {length} of {size} bytes, "
                             f"{MAX_HEADER_BYTES} at most)")
        header = parse_object(path, file.read(length), "not a safetensors file: its header")
    data_begin, data_bytes = 8 + length, size - 8 - length
    tensors = {name: parse_tensor(path, name, entry, data_begin, data_bytes)
               for name, entry in header.items() if name != "__metadata__"}
    check_coverage(path, tensors, data_begin, data_bytes)
    return tensors


INDEX = "model.safetensors.index.json"  # names the files of a checkpoint that has several


def read_index(path):
    """tensor -> name of a file in the same folder."""
    with open_regular(path) as file:
        text = file.read(MAX_HEADER_BYTES + 1)
    if len(text) > MAX_HEADER_BYTES:
        raise InputError(f"{path}: an index of more than {MAX_HEADER_BYTES} bytes is not believed")
    files = parse_object(path, text, "the index").get("weight_map")
    if not isinstance(files, dict) or not files:
        raise InputError(f"{path}: the index has no weight_map that names files")
    for tensor, name in files.items():
        if not isinstance(name, str) or name in ("", ".", "..") or "/" in name or "\0" in name:
            raise InputError(f"{path}: the file of tensor '{shown(tensor)}', '{shown(name)}', is no name of a file in "
                             "this folder")
    return files


def read_model(folder):
    index = read_index(folder / INDEX) if os.path.lexists(folder / INDEX) else {}
    files = [folder / name for name in sorted(set(index.values()))] or sorted(folder.glob("*.safetensors"))
    if not files:
        raise InputError(f"{folder}: no .safetensors file")
    tensors = {}
    for path in files:
        for name, tensor in read_header(path).items():
            if name in tensors:
                raise InputError(f"tensor {shown(name)} is in {tensors[name].path} and in {path}")
            tensors[name] = tensor
    for name, file in index.items():
        if name not in tensors or tensors[name].path != folder / file:
            raise InputError(f"{folder / INDEX}: says that {shown(file)} holds tensor '{shown(name)}', but it does not")
    return tensors


@contextlib.contextmanager
def published(folder, name):
    """A file that gets its name in the folder, which is a descriptor, when it is whole. Others may be allowed to write in
    the folder: what they put there in its place, a link too, is replaced and not written through."""
    partial = f".{name}.{secrets.token_hex(8)}.partial"
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666, dir_fd=folder)
    try:
        with open(descriptor, "wb") as file:
            yield file
        os.replace(partial, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        os.unlink(partial, dir_fd=folder)
        raise


def write_model(folder, file_name, layout, produce):
    """Write a safetensors file in the folder, a descriptor. layout: [(dtype, name, shape)]; produce() yields (name, bytes) in any order, so that
    only what it holds at once is in memory."""
    # Larger items first, so that every tensor starts at a multiple of its item size.
    layout = sorted(layout, key=lambda row: (-ITEM_BYTES[row[0]], row[1]))
    header, offset = {"__metadata__": {"format": "pt"}}, 0
    for dtype, name, shape in layout:
        size = ITEM_BYTES[dtype] * int(np.prod(shape, dtype=np.int64))
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with published(folder, file_name) as file:
        file.write(struct.pack("<Q", len(text)) + text)
        missing = {tensor for _, tensor, _ in layout}
        for tensor, data in produce():
            begin, end = header[tensor]["data_offsets"]
            if len(data) != end - begin:
                raise AssertionError(f"{tensor}: {len(data)} bytes instead of {end - begin}")
            file.seek(8 + len(text) + begin)
            file.write(data)
            missing.remove(tensor)
        if missing:
            raise AssertionError(f"not produced: {sorted(missing)}")
        file.truncate(8 + len(text) + offset)


# ------------------------------------------------------------------------------------------------------------- tool


def is_linear(tensor, excluded):
    if len(tensor.shape) != 2 or not tensor.name.endswith(".weight") or 0 in tensor.shape:
        return False
    return tensor.dtype in FLOATS and not any(fnmatch.fnmatchcase(tensor.name, pattern) for pattern in excluded)


def plan(tensors, excluded, output_format):
    """name -> 'nvfp4', 'bf16' or 'keep'; and notes for people about layers that cannot be NVFP4."""
    actions, notes = {}, []
    for name, tensor in tensors.items():
        if not is_linear(tensor, excluded):
            actions[name] = "keep"
            continue
        n, k = tensor.shape
        actions[name] = output_format
        if output_format == "nvfp4" and (k % GROUP or n % 8):
            actions[name] = "bf16"
            notes.append(f"{shown(name)} [{n}, {k}] stays BF16: NVFP4 takes N a multiple of 8 and K one of {GROUP}")
    return actions, notes


def layout_of(tensors, actions):
    rows = []
    for name, tensor in tensors.items():
        if actions[name] == "keep":
            rows.append((tensor.dtype, name, tensor.shape))
        elif actions[name] == "bf16":
            rows.append(("BF16", name, tensor.shape))
        else:
            n, k = tensor.shape
            rows += [("U8", name, (n, k // 2)), ("F8_E4M3", f"{name}_scale", (n, k // GROUP)),
                     ("F32", f"{name}_scale_2", ())]
    return rows


def checked_float32(tensor):
    values = tensor.as_float32()
    bad = ~np.isfinite(values)
    if bad.any():
        n, k = (int(index[0]) for index in np.nonzero(bad))
        raise InputError(f"{tensor.path}: tensor {shown(tensor.name)} holds {values[n, k]} at [{n}, {k}]; "
                         "a weight with NaN or infinity cannot be quantized")
    return values


def produce_tensors(tensors, actions):
    for name, tensor in tensors.items():
        if actions[name] == "keep":
            yield name, tensor.read()
        elif actions[name] == "bf16":
            bits = bf16_from_float32(checked_float32(tensor))
            if not np.isfinite(float32_from_bf16(bits)).all():
                raise InputError(f"{tensor.path}: tensor {shown(name)} holds values beyond BF16's range")
            yield name, bits.tobytes()
        else:
            packed, scales, scale_2 = quantize(checked_float32(tensor))
            yield name, packed.tobytes()
            yield f"{name}_scale", scales.tobytes()
            yield f"{name}_scale_2", np.float32(scale_2).tobytes()


def quantization_config(tensors, actions, excluded):
    """hf_quant_config.json. Engines choose their loader by the producer's name, so it names the layout; the version
    says who wrote it."""
    left = [name for name, action in actions.items()
            if action == "bf16" or (action == "keep" and is_linear(tensors[name], ()) and "embed" not in name)]
    return {
        "producer": {"name": "modelopt", "version": "gemvjit quantize_nvfp4"},
        "quantization": {"quant_algo": "NVFP4", "kv_cache_quant_algo": None, "group_size": GROUP,
                         "exclude_modules": sorted(name.removesuffix(".weight") for name in left)},
    }


def convert(source, destination, output_format, excluded):
    """The whole tool. Returns a summary line and notes."""
    if destination.exists() and source.resolve() == destination.resolve():
        raise InputError(f"{destination}: source and destination are the same folder")
    others = [path.name for path in (*destination.glob("*.safetensors"), destination / INDEX)
              if path.exists() and path.name != "model.safetensors"]
    if others:
        raise InputError(f"{destination}: holds another checkpoint's {', '.join(sorted(others))}; name an empty folder")
    tensors = read_model(source)
    actions, notes = plan(tensors, excluded, output_format)
    counts = {action: sum(value == action for value in actions.values()) for action in ("nvfp4", "bf16", "keep")}
    if counts["nvfp4"] + counts["bf16"] == 0:
        raise InputError(f"{source}: no linear layer (2-D *.weight of {', '.join(FLOATS)}) in {len(tensors)} tensors")
    outputs = [name for _, name, _ in layout_of(tensors, actions)]
    if len(outputs) != len(set(outputs)):
        raise InputError(f"{source}: the checkpoint already holds *.weight_scale tensors; give the unquantized one")
    destination.mkdir(parents=True, exist_ok=True)
    folder = os.open(destination, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        write_model(folder, "model.safetensors", layout_of(tensors, actions), lambda: produce_tensors(tensors, actions))
        if (source / "config.json").is_file():
            with published(folder, "config.json") as file:
                file.write((source / "config.json").read_bytes())
        if output_format == "nvfp4":
            with published(folder, "hf_quant_config.json") as file:
                file.write((json.dumps(quantization_config(tensors, actions, excluded), indent=4) + "\n").encode())
        else:
            with contextlib.suppress(FileNotFoundError):
                os.unlink("hf_quant_config.json", dir_fd=folder)
    finally:
        os.close(folder)
    summary = f"{counts['nvfp4']} layers NVFP4, {counts['bf16']} BF16, {counts['keep']} other tensors kept"
    return summary, notes


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Quantize a checkpoint's linear layers to NVFP4 (ModelOpt layout).")
    parser.add_argument("source", type=Path, metavar="SRC", help="folder of safetensors")
    parser.add_argument("destination", type=Path, metavar="DST", help="folder to write, made if missing")
    parser.add_argument("--format", choices=("nvfp4", "bf16"), default="nvfp4", help="of the linear weights (nvfp4)")
    parser.add_argument("--exclude", action="append", default=[], metavar="PATTERN",
                        help="tensor names to leave as they are, besides " + ", ".join(EXCLUDED))
    options = parser.parse_args(arguments)
    try:
        summary, notes = convert(options.source, options.destination, options.format, EXCLUDED + tuple(options.exclude))
        for note in notes:
            print(f"quantize_nvfp4: note: {note}", file=sys.stderr)
        print(f"{options.destination}: {summary}", flush=True)
    except (InputError, OSError) as error:
        print(f"quantize_nvfp4: error: {error}", file=sys.stderr)
        if sys.stdout is sys.__stdout__:  # what could not be written must not fail once more at exit
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
