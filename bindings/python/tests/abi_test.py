"""The mirror of the C header in gemvjit/_abi.py against the header itself: a C program, compiled now, prints the
value of every enum constant and the size and field offsets of every struct that the header has.

    abi_test.py COMPILER LIBRARY
"""

import ctypes
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "bindings" / "python"))
from gemvjit import _abi, _library  # noqa: E402

HEADER = ROOT / "include" / "gemvjit" / "gemvjit.h"
COMPILER, LIBRARY = (sys.argv[1:] + ["cc", ""])[:2]


def without_comments(text):
    return re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL)


def header_enums(text):
    """enum name -> constants; those of the unnamed enum under ''."""
    found = {}
    for name, body in re.findall(r"enum\s*(\w*)\s*\{(.*?)\}", without_comments(text), re.DOTALL):
        found.setdefault(name, []).extend(re.findall(r"(GEMVJIT_\w+)\s*=", body))
    return found


def header_structs(text):
    """struct name -> field names, in their order."""
    found = {}
    for body, name in re.findall(r"typedef struct \w+ \{(.*?)\}\s*(\w+);", without_comments(text), re.DOTALL):
        fields = []
        for declaration in filter(None, map(str.strip, body.split(";"))):
            fields += [re.search(r"(\w+)\s*$", part)[1] for part in declaration.split(",")]
        found[name] = fields
    return found


def ask_compiler(text):
    """name -> number, as the compiler has them: 'CONSTANT', 'struct', 'struct.field' and 'struct.field:size'."""
    lines = [f'P("{constant}", {constant});' for constants in header_enums(text).values() for constant in constants]
    for struct, fields in header_structs(text).items():
        lines.append(f'P("{struct}", sizeof({struct}));')
        for field in fields:
            lines.append(f'P("{struct}.{field}", offsetof({struct}, {field}));')
            lines.append(f'P("{struct}.{field}:size", sizeof((({struct}*)0)->{field}));')
    lines += [f'P("{part}", GEMVJIT_VERSION_{part});' for part in ("MAJOR", "MINOR", "PATCH")]
    program = ("#include <gemvjit/gemvjit.h>\n#include <stdio.h>\n"
               "static void P(const char* name, long long value) { printf(\"%s %lld\\n\", name, value); }\n"
               "int main(void) {\n" + "\n".join(lines) + "\nreturn 0; }\n")
    with tempfile.TemporaryDirectory() as folder:
        source, binary = Path(folder) / "abi.c", Path(folder) / "abi"
        source.write_text(program)
        subprocess.run([COMPILER, "-std=c99", f"-I{ROOT / 'include'}", "-o", str(binary), str(source)], check=True)
        printed = subprocess.run([str(binary)], check=True, capture_output=True, text=True).stdout
    return {name: int(value) for name, value in map(str.split, printed.splitlines())}


def differences(text, numbers, structs, enums):
    """What the mirror has wrong, as a list of lines."""
    found = []
    named = {name: constants for name, constants in header_enums(text).items() if name}
    if set(named) != set(enums):
        found.append(f"enums {sorted(set(named) ^ set(enums))} are on one side only")
    for name, mirror in enums.items():
        want = {constant[8:]: numbers[constant] for constant in named.get(name, [])}
        if want != {member.name: int(member) for member in mirror}:
            found.append(f"{name}: header {want}")
    in_header = header_structs(text)
    if set(in_header) != set(structs):
        found.append(f"structs {sorted(set(in_header) ^ set(structs))} are on one side only")
    for name, mirror in structs.items():
        if ctypes.sizeof(mirror) != numbers.get(name):
            found.append(f"{name}: {ctypes.sizeof(mirror)} bytes, {numbers.get(name)} in the header")
        if [field for field, _ in mirror._fields_] != in_header.get(name):
            found.append(f"{name}: other fields or another order than the header's {in_header.get(name)}")
        for field, kind in mirror._fields_:
            if getattr(mirror, field).offset != numbers.get(f"{name}.{field}"):
                found.append(f"{name}.{field}: offset {getattr(mirror, field).offset}")
            if ctypes.sizeof(kind) != numbers.get(f"{name}.{field}:size"):
                found.append(f"{name}.{field}: {ctypes.sizeof(kind)} bytes")
    return found


class Abi(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.text = HEADER.read_text(encoding="utf-8")
        cls.numbers = ask_compiler(cls.text)

    def test_the_header_was_read(self):
        self.assertGreaterEqual(len(header_structs(self.text)), 8)
        self.assertEqual(len(header_structs(self.text)["gemvjit_nvfp4_gemv_args"]), 16)
        self.assertEqual(len(header_enums(self.text)["gemvjit_status"]), 21)

    def test_mirror_is_the_header(self):
        self.assertEqual(differences(self.text, self.numbers, _abi.STRUCTS, _abi.ENUMS), [])
        self.assertEqual(tuple(self.numbers[part] for part in ("MAJOR", "MINOR", "PATCH")), _abi.VERSION)
        self.assertEqual(self.numbers["GEMVJIT_DEVICE_CURRENT"], _abi.DEVICE_CURRENT)
        self.assertEqual(self.numbers["GEMVJIT_DEVICE_NONE"], _abi.DEVICE_NONE)
        self.assertEqual(self.numbers["GEMVJIT_MAX_SCALE_SEGMENTS"], _abi.MAX_SCALE_SEGMENTS)

    def test_a_stale_mirror_is_seen(self):
        """Negative control: each way in which the mirror may lag behind."""

        class Shifted(ctypes.Structure):
            _fields_ = [(name, ctypes.c_int64 if name == "n" else kind) for name, kind in _abi.Problem._fields_
                        if name != "nt"]

        class Narrow(ctypes.Structure):  # one field narrower where padding hides it from the offsets
            _fields_ = [(name, ctypes.c_int16 if name == "pdl" else kind) for name, kind in _abi.Problem._fields_]

        for mirror in (Shifted, Narrow):
            wrong = dict(_abi.STRUCTS, gemvjit_problem=mirror)
            self.assertNotEqual(differences(self.text, self.numbers, wrong, _abi.ENUMS), [])
        fewer = {name: mirror for name, mirror in _abi.STRUCTS.items() if name != "gemvjit_stats_data"}
        self.assertNotEqual(differences(self.text, self.numbers, fewer, _abi.ENUMS), [])
        other = dict(_abi.ENUMS, gemvjit_status=_abi.MissPolicy)
        self.assertNotEqual(differences(self.text, self.numbers, _abi.STRUCTS, other), [])

    def test_packed_bytes_are_the_struct(self):
        for name in ("gemvjit_nvfp4_gemv_args", "gemvjit_bf16_gemv_args", "gemvjit_dequantize_rows_args"):
            mirror = _abi.STRUCTS[name]
            values = range(1, len(mirror._fields_))
            seen = mirror.from_buffer_copy(_abi.packer(mirror)(*values))
            self.assertEqual(seen.struct_size, ctypes.sizeof(mirror))
            self.assertEqual([getattr(seen, field) for field, _ in mirror._fields_[1:]], list(values), name)

    def test_functions_take_as_many_arguments_as_in_the_header(self):
        declared = {name: [part for part in arguments.split(",") if part.strip() != "void"] for name, arguments in
                    re.findall(r"GEMVJIT_API [\w\s*]*?(gemvjit_\w+)\(([^)]*)\)", without_comments(self.text))}
        for name, (_, arguments) in _abi.FUNCTIONS.items():
            self.assertIn(name, declared)
            self.assertEqual(len(arguments), len(declared[name]), name)

    @unittest.skipUnless(LIBRARY, "no library named")
    def test_the_library_has_every_function(self):
        self.assertEqual(_library.open_library([LIBRARY]).gemvjit_status_name(7), b"GEMVJIT_NOT_READY")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
