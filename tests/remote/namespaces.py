"""Two hosts on one machine: network namespaces with a link between them that can be cut. For root."""

import ctypes
import os
import subprocess
import threading

CLONE_NEWNET = 0x40000000


def ip(*arguments):
    return subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)


class Pair:
    """`first` has 10.99.0.1, `second` 10.99.0.2.."""

    def __init__(self):
        self.first, self.second = f"gjt{os.getpid()}a", f"gjt{os.getpid()}b"

    def __enter__(self):
        for name in (self.first, self.second):
            self.must("netns", "add", name)
        self.must("link", "add", "veth0", "netns", self.first, "type", "veth", "peer", "name", "veth0", "netns", self.second)
        for at, name in enumerate((self.first, self.second)):
            self.must("-n", name, "addr", "add", f"10.99.0.{at + 1}/24", "dev", "veth0")
            self.must("-n", name, "link", "set", "lo", "up")
            self.must("-n", name, "link", "set", "veth0", "up")
        return self

    def must(self, *arguments):
        done = ip(*arguments)
        if done.returncode != 0:
            self.__exit__()
            raise OSError(f"ip {' '.join(arguments)}: {done.stderr.strip()}")

    def __exit__(self, *_):
        for name in (self.first, self.second):
            ip("netns", "del", name)

    def cut(self):
        self.must("-n", self.first, "link", "set", "veth0", "down")

    def mend(self):
        self.must("-n", self.first, "link", "set", "veth0", "up")

    @staticmethod
    def command(name):
        """What to put before a command to run it there."""
        return ["ip", "netns", "exec", name]


def call_in(name, function):
    """function() in a thread that is in that namespace: the sockets that it makes stay there."""
    result = []

    def inside():
        libc = ctypes.CDLL(None, use_errno=True)
        with open(f"/var/run/netns/{name}", "rb") as file:
            if libc.setns(file.fileno(), CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), "setns")
        result.append(function())

    thread = threading.Thread(target=inside)
    thread.start()
    thread.join()
    if not result:
        raise OSError(f"could not be done in the namespace {name}")
    return result[0]


def missing():
    """Why there can be no two namespaces here, or None."""
    if os.geteuid() != 0:
        return "two network namespaces need root"
    try:
        with Pair():
            return None
    except OSError as error:
        return str(error)
