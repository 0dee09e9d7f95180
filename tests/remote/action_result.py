"""The few messages of build.bazel.remote.execution.v2 that the remote cache's /ac/ files are made of, read and written
without protobuf: an ActionResult with output_files of {path, digest{hash, size_bytes}}. Other fields are passed over."""


def varint(number):
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def read_varint(data, at):
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return number, at


def fields(data):
    """(number, value) of each field: bytes of a length-delimited one, the number of a varint. ValueError if it is none."""
    at = 0
    while at < len(data):
        tag, at = read_varint(data, at)
        if tag & 7 == 0:
            value, at = read_varint(data, at)
        elif tag & 7 == 2:
            size, at = read_varint(data, at)
            value, at = data[at:at + size], at + size
            if len(value) != size:
                raise ValueError("cut field")
        else:
            raise ValueError(f"wire type {tag & 7}")
        yield tag >> 3, value


def delimited(number, value):
    return varint(number << 3 | 2) + varint(len(value)) + value


def parse(data):
    """[(path, hash, size), ...] of an ActionResult's output_files."""
    files = []
    for number, value in fields(data):
        if number == 2:
            file = dict(fields(value))
            digest = dict(fields(file[2]))
            files.append((file[1].decode(), digest[1].decode(), digest.get(2, 0)))
    return files


def build(files):
    out = b""
    for path, digest, size in files:
        inner = delimited(1, digest.encode()) + (varint(2 << 3) + varint(size) if size else b"")
        out += delimited(2, delimited(1, path.encode()) + delimited(2, inner))
    return out
