#!/usr/bin/env python3
"""Writes bundle_v1.gjb: a bundle of format version 1 with entry_v1.entry and a second entry, built from the grammars in
docs/cache_format.md and cache/bundle.h alone.

It is an encoder of its own, so that the file checks cache/bundle*.cpp and not the other way round. The file is checked
in and never changes: a new format version gets a new file.
"""
import hashlib
import pathlib
import struct

here = pathlib.Path(__file__).parent
KEY = struct.Struct("<qqiQiB")  # N, K, nt, flags, arch number, arch suffix
KEY_AT = 16  # after magic, version and header length


def sha256(data):
    return hashlib.sha256(data).digest()


def entry_of(first, n):
    """The entry with another N and another digest."""
    fields = list(KEY.unpack_from(first, KEY_AT))
    fields[0] = n
    digest_at = KEY_AT + KEY.size
    body = first[:KEY_AT] + KEY.pack(*fields) + bytes(range(32)) + first[digest_at + 32:-32]
    return body + sha256(body)


def index_item(entry, offset):
    n, k, nt, flags, number, suffix = KEY.unpack_from(entry, KEY_AT)
    key = f"n{n}-k{k}-nt{nt}-f{flags:016x}-sm_{number}{chr(suffix)}".encode()
    digest = entry[KEY_AT + KEY.size:][:32]
    return struct.pack("<I", len(key)) + key + digest + struct.pack("<QQ", offset, len(entry)) + sha256(entry)


golden = (here / "entry_v1.entry").read_bytes()
entries = [entry_of(golden, 1024), golden]  # in the order of their keys' texts
data = b"GEMVJITB" + struct.pack("<II", 1, 0)
index = b""
for entry in entries:
    index += index_item(entry, len(data))
    data += entry
footer = struct.pack("<QQQ", len(data), len(index), len(entries)) + sha256(index) + b"GJBEND\r\n"
(here / "bundle_v1.gjb").write_bytes(data + index + footer)
