"""No call changes a file's mode, owner, times, name or content by a path whose parent others may write: who can put a link in
the place of a part of the path would choose what is changed. Such calls go by the descriptor of an opened folder.

Searches the sources of src, cache, tools and bindings. What may stay is in ALLOWED, each with its reason and still to be found.
"""

import ast
import re
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# (file, function, call) -> why the path is safe there.
ALLOWED = {
    ("src/base/folder.cpp", "Folder::undo_umask", "fchmodat"): "the name that /proc has for an open descriptor",
    ("tools/quantize_nvfp4.py", "convert", "mkdir"): "the folder that the user names",
    ("tools/quantize_nvfp4.py", "main", "open"): "the null device",
    ("tools/plot_bench.py", "draw", "mkdir"): "the folder that the user names",
    ("tools/plot_bench.py", "draw", "savefig"): "to an open file",
}

BY_PATH = ("chmod chown lchown utime utimes lutimes truncate truncate64 rename link symlink mkdir rmdir unlink mkfifo mknod "
           "creat mkstemp mkostemp mkstemps mkdtemp mktemp tmpnam tempnam setxattr lsetxattr removexattr lremovexattr").split()
# Fine with the descriptor of a folder and one name in it.
AT = ("fchmodat fchownat futimesat utimensat renameat renameat2 linkat symlinkat mkdirat unlinkat mkfifoat mknodat").split()
FILESYSTEM = ("remove remove_all rename create_directory create_directories create_symlink create_directory_symlink "
              "create_hard_link permissions resize_file copy copy_file copy_symlink last_write_time").split()
STREAMS = ("ofstream", "fstream", "filebuf")
# This project's own functions that act by a path.
OWN = ("remove_file",)
WRITING = re.compile(r"\bO_(WRONLY|RDWR|CREAT|TRUNC|APPEND|TMPFILE)\b")
COMMENT = re.compile(r'//[^\n]*|/\*.*?\*/', re.DOTALL)
TOKEN = re.compile(r'R"\((.*?)\)"|"(?:\\.|[^"\\\n])*"|' + r"'(?:\\.|[^'\\\n])+'|" + COMMENT.pattern, re.DOTALL)
NAMES = "|".join(sorted({*BY_PATH, *AT, *FILESYSTEM, *STREAMS, *OWN, "fopen", "freopen", "open", "open64", "openat", "openat2"}))
NAME = re.compile(rf"(?P<scope>(?:\b\w+)?(?:::\w+)*::|\.|->)?\b(?P<name>{NAMES})\b\s*(?P<open>[({{])?")
KEYWORDS_BEFORE_A_CALL = {"return", "else", "do", "co_return", "case", "and", "or", "not"}
NO_FUNCTION = {"if", "for", "while", "switch", "catch"}


def blank(text):
    """The text without comments, its strings empty but for the first character (the mode of fopen), lines as they were."""
    def short(match):
        whole = match.group()
        lines = "\n" * whole.count("\n")
        if whole.startswith('"'):
            return f'"{re.sub(r"[^a-z+]", "", whole[1:-1])[:3]}"' + lines if len(whole) < 8 else '""' + lines
        return ("''" if whole.startswith("'") else '""' if whole.startswith("R") else " ") + lines
    return TOKEN.sub(short, text)


def arguments_after(code, opening):
    """The arguments of the call whose bracket opens there."""
    depth, begin, found = 0, opening + 1, []
    for at in range(opening, len(code)):
        if code[at] in "([{":
            depth += 1
        elif code[at] in ")]}":
            depth -= 1
            if depth == 0:
                return [part for part in [*found, code[begin:at].strip()] if part]
        elif code[at] == "," and depth == 1:
            found.append(code[begin:at].strip())
            begin = at + 1
    return found


def acts_by_path(name, scope, arguments):
    """Whether that call changes something that a path leads to. `scope`: what stands before the name, without blanks."""
    text = " ".join(arguments)
    of_system = scope in ("", "::", "std::")
    if scope in ("fs::", "filesystem::", "std::filesystem::"):
        if name == "last_write_time":  # with a time it sets it
            return len(arguments) > 2 or (len(arguments) == 2 and "err" not in arguments[1] and arguments[1] != "ec")
        return name in FILESYSTEM
    if scope in (".", "->") or not of_system:
        return False
    if name in STREAMS:
        return True
    if name == "remove":  # not the algorithm, which has three
        return scope != "" and len(arguments) == 1
    if name in ("fopen", "freopen"):
        return len(arguments) < 2 or not re.fullmatch(r'"r[be]*"', arguments[1])
    if name in ("open", "open64"):
        return bool(WRITING.search(text))
    if name in ("openat", "openat2"):
        writes = WRITING.search(text) is not None
        return writes and ("AT_FDCWD" in text or not re.search(r"\bO_(NOFOLLOW|EXCL|TMPFILE)\b", text))
    if name in AT:
        if "AT_FDCWD" in text or "AT_SYMLINK_FOLLOW" in text:
            return True
        return name in ("fchmodat", "fchownat", "utimensat") and "AT_SYMLINK_NOFOLLOW" not in text
    return name in BY_PATH or (name in OWN and scope == "")


def function_at(code, at):
    """The name of the function around that place, "" outside of any."""
    stack, last = [], 0
    for match in re.finditer(r"[{};]", code[:at]):
        if match.group() == "{":
            head = code[last:match.start()]
            named = re.search(r"([\w:~]+)\s*\(", head)
            first = re.match(r"\s*(\w+)", head)
            is_function = named and "=" not in head[:named.start()] and not (first and first.group(1) in NO_FUNCTION) \
                and named.group(1).split("::")[-1] not in NO_FUNCTION
            stack.append(named.group(1) if is_function else None)
        elif match.group() == "}" and stack:
            stack.pop()
        last = match.end()
    return next((name for name in reversed(stack) if name), "")


def calls_in_cpp(text):
    """(line, function, call) of each call by path, and of each mention of such a function without one."""
    code = blank(text)
    found = []
    for match in NAME.finditer(code):
        name, scope = match["name"], match["scope"] or ""
        before = re.search(r"(\w*)[\w>][&*]?\s*$", code[max(0, match.start() - 80):match.start()])
        declared = scope == "" and before and before.group().strip() not in KEYWORDS_BEFORE_A_CALL
        if re.search(r"^\s*#\s*include", code[code.rfind("\n", 0, match.start()) + 1:match.end()]):
            continue
        if name in STREAMS:
            called = scope in ("std::", "")
        elif match["open"] == "(":
            called = not declared and acts_by_path(name, scope, arguments_after(code, match.end() - 1))
        else:  # handed on as a pointer
            called = scope == "::" and (name in BY_PATH or name in AT)
        if called:
            found.append((code.count("\n", 0, match.start("name")) + 1, function_at(code, match.start()), name))
    if re.search(r"using\s+namespace\s+(std::)?(filesystem|fs)\b", code):
        found.append((0, "", "using namespace filesystem"))
    return found


PYTHON_OS = set("chmod chown lchown utime truncate rename renames replace link symlink mkdir makedirs rmdir removedirs unlink "
                "remove mkfifo mknod setxattr removexattr".split())
PYTHON_METHODS = set("write_text write_bytes mkdir unlink rename rmdir touch chmod lchmod symlink_to hardlink_to savefig".split())


def calls_in_python(text):
    found = []

    def visit(node, function):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            function = node.name
        if isinstance(node, ast.Call):
            named = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            owner = getattr(node.func.value, "id", "?") if isinstance(node.func, ast.Attribute) else ""
            given = [*node.args, *(keyword.value for keyword in node.keywords if keyword.arg in ("mode", "flags"))]
            said = " ".join(ast.unparse(argument) for argument in given)
            modes = [a.value for a in given if isinstance(a, ast.Constant) and isinstance(a.value, str)]
            by_descriptor = any(keyword.arg and keyword.arg.endswith("dir_fd") for keyword in node.keywords)
            # of what os.open gave, which is looked at by itself
            is_descriptor = bool(node.args) and re.match(r"descriptor$|os\.open\(", ast.unparse(node.args[0])) is not None
            writes = not is_descriptor and any(re.fullmatch(r"[rwaxbt+]*[wax+][rwaxbt+]*", mode) for mode in modes)
            if (owner == "os" and named in PYTHON_OS and not by_descriptor) \
                    or (owner == "os" and named == "open" and WRITING.search(said) and not by_descriptor) \
                    or (named == "open" and owner != "os" and writes) \
                    or (owner == "shutil" and re.match("copy|move|rmtree|chown", named)) \
                    or (owner == "tempfile" and named == "mktemp") \
                    or (owner not in ("os", "shutil") and named in PYTHON_METHODS and owner != "") \
                    or (owner not in ("os", "") and named == "replace" and len(node.args) == 1 and not node.keywords):
                found.append((node.lineno, function, named))
        for child in ast.iter_child_nodes(node):
            visit(child, function)

    visit(ast.parse(text), "")
    return found


def calls_in(path, text):
    return calls_in_python(text) if path.endswith(".py") else calls_in_cpp(text)


def complaints(files, allowed):
    """files: path -> text."""
    found, used = [], set()
    for path, text in sorted(files.items()):
        for line, function, call in calls_in(path, text):
            row = (path, function, call)
            used.add(row)
            if row not in allowed:
                found.append(f"{path}:{line}: {function or 'no function'}: {call} by a path")
    found += [f"{' '.join(row)}: is allowed and not there" for row in sorted(set(allowed) - used)]
    return found


def product_files():
    files = {}
    for folder in ("src", "cache", "tools", "bindings"):
        for path in (ROOT / folder).rglob("*"):
            name = path.relative_to(ROOT).as_posix()
            if path.suffix in (".h", ".cpp", ".c", ".inc", ".py") and not name.startswith("bindings/python/tests/"):
                files[name] = path.read_text(encoding="utf-8")
    return files


class CallsByPath(unittest.TestCase):
    def test_nothing_is_changed_by_a_path(self):
        files = product_files()
        self.assertGreater(len(files), 200, "the product's files were found")
        found = complaints(files, ALLOWED)
        self.assertFalse(found, "\n" + "\n".join(found))

    def test_calls_by_path_are_found(self):
        bad = [
            "::chmod(p, 0700);", "chmod(p.c_str(), 0700);", "(void)!::chown(p, 1, 2);", "if (::lchown(p, 1, 2) != 0) return;",
            "return ::utimes(p, t);", "::utimensat(AT_FDCWD, p, t, AT_SYMLINK_NOFOLLOW);", "::utimensat(fd, p, t, 0);",
            "::truncate(p, 0);", "std::rename(a, b);", "::rename(a,\n  b);", "renameat(AT_FDCWD, a, fd, b);",
            "::renameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE);", "const int x = ::link(a, b);", "::symlink(a, b);",
            "::linkat(fd, a, fd, b, AT_SYMLINK_FOLLOW);", "::mkdir(p, 0700);", "x = ::mkdirat(AT_FDCWD, p, 0700);",
            "::rmdir(p);", "::unlink(p);", "std::remove(p);", "::remove(p);", "fs::remove_all(p, error);",
            "std::filesystem::create_directories(p);", "fs::permissions(p, x);", "fs::rename(a, b);", "fs::copy_file(a, b);",
            "fs::last_write_time(p, when);", "fs::last_write_time(p, when, error);", "fs::resize_file(p, 0);",
            "::open(p, O_RDWR | O_CLOEXEC);", "open(p, O_CREAT | O_EXCL, 0600);", "::open(p, O_WRONLY);", "::creat(p, 0600);",
            "::openat(fd, p, O_WRONLY | O_CREAT, 0600);", "::openat(AT_FDCWD, p, O_CREAT | O_EXCL, 0600);",
            "::fchmodat(fd, p, 0600, 0);", "::fchownat(fd, p, 1, 2, 0);", 'std::fopen(p, "w");', 'fopen(p, "a");',
            'fopen(p, "r+");', "fopen(p, mode);", "std::ofstream out(p);", "std::fstream out{p};", "::mkstemp(p);",
            "::mkdtemp(p);", "auto* f = &::unlink;", "std::unique_ptr<char, decltype(x)> y(p, ::unlink);", "remove_file(p);",
            "using namespace std::filesystem;", "::setxattr(p, n, v, 1, 0);",
        ]
        for line in bad:
            with self.subTest(line):
                found = calls_in("x.cpp", f"void act(const char* p) {{\n  {line}\n}}\n")
                self.assertTrue(found, "not found")
                if not line.startswith("using"):
                    self.assertEqual({function for _, function, _ in found}, {"act"})
        for line in ("os.chmod(p, 0o700)", "os.replace(a, b)", "os.makedirs(p)", "os.open(p, os.O_CREAT)", "open(p, 'w')",
                     "open(p, mode='ab')", "Path(p).write_text('')", "p.mkdir()", "p.unlink(missing_ok=True)", "p.open('x')",
                     "shutil.copyfile(a, b)", "shutil.rmtree(p)", "tempfile.mktemp()", "p.replace(b)", "figure.savefig(p)",
                     "os.unlink(p)"):
            with self.subTest(line):
                self.assertEqual([function for _, function, _ in calls_in("x.py", f"def act(p):\n    {line}\n")], ["act"])

    def test_others_are_not(self):
        good = [
            "// ::unlink(p);", "/* ::chmod(p, 0) */", 'say("::unlink(p); std::ofstream");', "::fchmod(fd, 0700);",
            "::unlinkat(folder, name, 0);", "::renameat(a, x, b, y);", "::mkdirat(folder, name, 0700);",
            "::linkat(folder, a, folder, b, 0);", "::utimensat(fd, name, t, AT_SYMLINK_NOFOLLOW);", "::futimens(fd, t);",
            "::openat(fd, name, O_RDWR | O_CREAT | O_NOFOLLOW, 0600);", "::open(p, O_RDONLY | O_DIRECTORY);",
            'std::fopen(p, "r");', 'std::fopen(p, "rb");', "std::ifstream in(p);", "store->remove(id);", "store.remove(id);",
            "list.erase(std::remove(a, b, c), d);", "Status remove(const EntryId& id);", "fs::last_write_time(p, error);",
            "Bundle::open(p);", "Status rename(const X& x);", "object.rename(a);", "R\"(::unlink(p))\";", "int link = 1;",
            "::ftruncate(fd, 0);",
        ]
        for line in good:
            with self.subTest(line):
                self.assertEqual(calls_in("x.cpp", f"#include <fstream>\nvoid act() {{\n  {line}\n}}\n"), [])
        for line in ("'a'.replace('b', 'c')", "open(p)", "open(p, 'rb')", "os.open(p, os.O_RDONLY)",
                     "os.unlink(p, dir_fd=d)", "open(descriptor, 'wb')", "x = 'os.unlink(p)'", "read(p, 'was')"):
            with self.subTest(line):
                self.assertEqual(calls_in("x.py", f"def act(p):\n    {line}  # os.unlink(p)\n"), [])

    def test_an_allowed_call_that_is_gone_is_told(self):
        text = "Status A::make(int a) {\n  if (a) {\n    for (;;) ::mkdir(p, 0700);\n  }\n}\n"
        self.assertEqual(complaints({"x.cpp": text}, {("x.cpp", "A::make", "mkdir"): "because"}), [])
        self.assertEqual(len(complaints({"x.cpp": text}, {("x.cpp", "A::make", "unlink"): "because"})), 2)
        self.assertEqual(len(complaints({"x.cpp": ""}, {("x.cpp", "A::make", "mkdir"): "because"})), 1)


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    unittest.main(verbosity=1)
