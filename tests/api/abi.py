"""What a program that was built with gemvjit.h relies on: read from the header and the library, or as a list in a file.

A list has one item a line, with the version it came with:
    symbol    gemvjit_create                        0.1.0
    enum      gemvjit_status.GEMVJIT_OK = 0         0.1.0
    field     gemvjit_options.device @8 +4 int32_t  0.1.0     offset, bytes and type
    size      gemvjit_options 64                    0.1.0
The numbers are the compiler's: a C program with offsetof and sizeof, made from the header, prints them.
"""

import re
import subprocess
import tempfile
from pathlib import Path

ENUM = re.compile(r"(?:typedef )?enum (\w+)? ?\{(.*?)\}", re.DOTALL)
STRUCT = re.compile(r"typedef struct (\w+) \{(.*?)\} (\w+);", re.DOTALL)


def without_comments(text):
    return re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL)


def enums(header):
    """[(enum, value's name)]; an enum without a name is "constants"."""
    found = []
    for name, body in ENUM.findall(without_comments(header)):
        found += [(name or "constants", item.split("=")[0].strip()) for item in body.split(",") if item.strip()]
    return found


def structs(header):
    """[(struct, [(field, type)])], in the header's order."""
    found = []
    for name, body, _ in STRUCT.findall(without_comments(header)):
        fields = []
        for declaration in filter(None, (" ".join(part.split()) for part in body.split(";"))):
            kind, first = re.fullmatch(r"(.*?[\s*])(\w+(?:, \w+)*)", declaration).groups()
            fields += [(field, kind.strip()) for field in first.split(", ")]
        found.append((name, fields))
    return found


def program(header):
    lines = ["#include <stddef.h>", "#include <stdio.h>", '#include "gemvjit.h"', "int main(void) {"]
    for name, value in enums(header):
        lines.append(f'  printf("enum {name}.{value} = %lld\\n", (long long){value});')
    for name, fields in structs(header):
        for field, kind in fields:
            lines.append(f'  printf("field {name}.{field} @%zu +%zu {kind}\\n", offsetof({name}, {field}), '
                         f"sizeof((({name}*)0)->{field}));")
        lines.append(f'  printf("size {name} %zu\\n", sizeof({name}));')
    return "\n".join([*lines, "  return 0;", "}", ""])


def items_of_header(compiler, header):
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "gemvjit.h").write_text(header, encoding="utf-8")
        source, binary = Path(folder, "abi.c"), Path(folder, "abi")
        source.write_text(program(header), encoding="utf-8")
        subprocess.run([compiler, "-std=c99", f"-I{folder}", "-o", str(binary), str(source)], check=True)
        return subprocess.run([str(binary)], check=True, capture_output=True, text=True).stdout.splitlines()


def symbols_of_library(library):
    command = ["nm", "--dynamic", "--defined-only", "--format=posix", str(library)]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    return sorted(f"symbol {line.split()[0].split('@')[0]}" for line in lines if line)


def version_of(header):
    return ".".join(re.search(rf"#define GEMVJIT_VERSION_{part} (\d+)", header).group(1)
                    for part in ("MAJOR", "MINOR", "PATCH"))


def parse(text):
    """{item: version}, in the file's order."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return {" ".join(line.split()[:-1]): line.split()[-1] for line in lines}


def sizes(items):
    """{struct: its largest size among the items}"""
    found = {}
    for item in items:
        if item.startswith("size "):
            _, name, size = item.split()
            found[name] = max(int(size), found.get(name, 0))
    return found


def compare(stored, current):
    """(broken, added): what programs relied on and is no more, and the items that are not stored yet.

    A struct that begins with struct_size may grow by fields behind its former end (the former size stays in the list:
    callers may have it). A new field anywhere else breaks, also in padding, since struct_size cannot tell of it; but a
    `reserved` one, which callers had to set to 0, may become another of its type."""
    ends, sizes_now = sizes(stored), sizes(current)
    may_grow = {item.split()[1].split(".")[0] for item in stored if ".struct_size @0 " in item}
    places = {re.sub(r"\.\w+", "", item) for item in current if item.startswith("field ")}
    reserved = {re.sub(r"\.\w+", "", item) for item in stored if re.match(r"field \w+\.reserved\w* ", item)}
    added = [item for item in current if item not in stored]
    broken = []
    for item in stored:
        kind, name, *rest = item.split()
        grown = kind == "size" and name in may_grow and int(rest[0]) < sizes_now.get(name, 0)
        place = re.sub(r"\.\w+", "", item)
        if item not in current and not grown and not (place in reserved and place in places):
            broken.append(item)
    for item in added:
        field = re.match(r"field (\w+)\.\w+ @(\d+) ", item)
        if field and int(field.group(2)) < ends.get(field.group(1), 0) and re.sub(r"\.\w+", "", item) not in reserved:
            broken.append(f"{item} (not behind the {ends[field.group(1)]} bytes that the struct had)")
    return broken, added
