"""Every descriptor that the product opens is close-on-exec: a program that the host starts must not inherit it.

Looks at the calls in the sources; what libcurl opens is tried in tests/host. Streams of the C++ library cannot be told, so
the library uses none; a tool, which starts programs of its own, may read with one.
"""

import re
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# What opens a descriptor, and what has to stand among its arguments.
CALLS = {"open": "O_CLOEXEC", "openat": "O_CLOEXEC", "openat2": "O_CLOEXEC", "socket": "SOCK_CLOEXEC",
         "socketpair": "SOCK_CLOEXEC", "accept4": "SOCK_CLOEXEC", "pipe2": "O_CLOEXEC", "mkostemp": "O_CLOEXEC",
         "eventfd": "EFD_CLOEXEC", "epoll_create1": "EPOLL_CLOEXEC", "inotify_init1": "IN_CLOEXEC",
         "memfd_create": "MFD_CLOEXEC", "signalfd": "SFD_CLOEXEC", "timerfd_create": "TFD_CLOEXEC"}
# These cannot be told; and what a tool needs not.
NEVER = ("pipe", "accept", "dup", "mkstemp", "tmpfile", "popen", "epoll_create", "inotify_init", "creat")
STREAMS = re.compile(r"\bstd::[io]?fstream\b")
# Standard descriptors that were closed: they are to be inherited.
EXCEPT = {"tools/common/output.cpp": '::open("/dev/null", O_RDONLY)'}
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


def arguments_at(text, start):
    """The text from an opening bracket to the one that closes it."""
    depth = 0
    for i in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[i], 0)
        if depth == 0:
            return text[start:i + 1]
    return text[start:]


def complaints_of(path, text):
    text = COMMENT.sub(" ", text)
    if path in EXCEPT:
        text = text.replace(EXCEPT[path], "")
    found = []
    for match in re.finditer(r"(?<![\w.>:])(?:::)(\w+)\s*(?=\()|(?<![\w.>:])(?:std::)?(fopen|freopen)\s*(?=\()", text):
        name, arguments = match.group(1) or match.group(2), arguments_at(text, match.end())
        if name in ("fopen", "freopen"):
            good = re.search(r',\s*"\w*e\w*"', arguments)
        elif name in NEVER:
            good = False
        else:
            good = name not in CALLS or CALLS[name] in arguments
        if not good:
            found.append(f"{path}: {name}{arguments}")
    if not path.startswith("tools/"):
        found += [f"{path}: {match.group()}" for match in STREAMS.finditer(text)]
    return found


class CloseOnExec(unittest.TestCase):
    def test_every_call_says_so(self):
        seen, complaints = 0, []
        for folder in ("src", "cache", "tools"):
            for path in (ROOT / folder).rglob("*"):
                if path.suffix in (".cpp", ".h"):
                    text = path.read_text(encoding="utf-8")
                    seen += text.count("O_CLOEXEC")
                    complaints += complaints_of(path.relative_to(ROOT).as_posix(), text)
        self.assertGreater(seen, 10, "the calls were found")
        self.assertFalse(complaints, "\n" + "\n".join(complaints))

    def test_what_must_be_caught(self):
        for text in ('::open(path, O_RDONLY | flags_of(x))', '::socket(AF_UNIX, SOCK_STREAM, 0)', '::pipe(ends)',
                     'std::fopen(path.c_str(), "a")', 'std::ifstream file(path);', 'x(::openat(folder, "a", O_RDWR))'):
            self.assertTrue(complaints_of("src/x.cpp", text), text)
        for text in ('::open(path, O_RDONLY | O_CLOEXEC)', '// ::open(path, 0)', 'Bundle::open(path)',
                     'file.open(path)', 'std::fopen(p, "ae")', '::socket(a, b | SOCK_CLOEXEC, c)'):
            self.assertFalse(complaints_of("src/x.cpp", text), text)


if __name__ == "__main__":
    unittest.main(argv=sys.argv)
