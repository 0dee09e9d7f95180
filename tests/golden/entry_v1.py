#!/usr/bin/env python3
"""Writes entry_v1.entry: a cache entry of format version 1, built from the grammar in docs/cache_format.md alone.

It is an encoder of its own, so that the file checks cache/entry.cpp and not the other way round. The file is checked
in and never changes: a new format version gets a new file.
"""
import hashlib
import pathlib
import struct


def string(text):
    data = text.encode()
    return struct.pack("<I", len(data)) + data


digest = bytes(range(0xA0, 0xC0))
header = struct.pack("<qqiQiB", 28672, 4096, 2, 0x0123456789ABCDEF, 90, ord("a")) + digest
header += struct.pack("<q", 1700000000)
header += struct.pack("<IIIIII", 251, 168, 1040, 16, 24, 48) + struct.pack("<B", 1)
header += string("nvfp4_gemv") + string("NVRTC 13.0 (13.0.88)")
payload = b"\x7fELF\x02\x01\x01" + bytes(i * 7 % 256 for i in range(93))
body = b"GEMVJIT\n" + struct.pack("<II", 1, len(header)) + header + struct.pack("<Q", len(payload)) + payload
path = pathlib.Path(__file__).with_suffix(".entry")
path.write_bytes(body + hashlib.sha256(body).digest())
