"""One context a device, made on first use and kept to the end of the process; and what torch says of devices and
streams.

torch is never imported here unless a caller hands over tensors of a device: who only asks questions needs none.
After fork() the child's contexts are new ones (gemvjit.h: a context belongs to the process that made it).
"""

import ctypes
import os
import sys
import threading

from . import _abi, _library

_lock = threading.Lock()
_contexts = {}  # ordinal or DEVICE_NONE -> handle; read without the lock
_sealed = False


def _forget_after_fork():
    global _lock
    _lock = threading.Lock()  # another thread may have held it
    _library.forget_lock()
    _contexts.clear()         # not destroyed: what they hold is the parent's


os.register_at_fork(after_in_child=_forget_after_fork)


def create(device, **options):
    """A new context of its own. options: fields of gemvjit_options, strings as str."""
    library = _library.load()
    settings = _abi.Options()
    _library.check(library.gemvjit_options_init(ctypes.byref(settings)))
    settings.device = device
    for name, value in options.items():
        setattr(settings, name, os.fsencode(value) if isinstance(value, (str, os.PathLike)) else value)
    handle = ctypes.c_void_p()
    _library.check(library.gemvjit_create(ctypes.byref(settings), ctypes.byref(handle)))
    return handle.value


def context(device):
    """The handle of the device's context, made now if there is none."""
    handle = _contexts.get(device)
    if handle is not None:
        return handle
    with _lock:
        if device not in _contexts:
            handle = create(device)
            if _sealed:
                _library.check(_library.load().gemvjit_seal(handle))
            _contexts[device] = handle
        return _contexts[device]


def context_of(device=None, arch=None):
    """The context for a question or a warmup. With an `arch` it needs no device. device: an ordinal, anything with an
    `index`, or None: torch's current device where torch is in use, else 0."""
    if arch is not None and device is None:
        return context(_abi.DEVICE_NONE)
    return context(ordinal(device))


def ordinal(device=None):
    if isinstance(device, int) and not isinstance(device, bool):
        return device
    index = getattr(device, "index", None)
    if isinstance(index, int):
        return index
    if device is not None and getattr(device, "type", None) != "cuda":
        raise TypeError(f"device: expected None, an ordinal or a CUDA device with an index, found {device!r}")
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        return torch.cuda.current_device()
    return 0


def seal():
    """From now on nothing compiles, in any context of this process: also not in one that is made later. For good."""
    global _sealed
    library = _library.load()
    with _lock:
        _sealed = True
        for handle in _contexts.values():
            _library.check(library.gemvjit_seal(handle))


def flush(timeout=30.0):
    """Wait until what warmups gave to the remote cache is sent, by every context of this process, at most `timeout`
    seconds for each. CacheIOError if some of it could not be sent, Cancelled if it is not done in time."""
    library = _library.load()
    with _lock:
        handles = list(_contexts.values())
    for handle in handles:
        _library.check(library.gemvjit_flush(handle, max(0, int(timeout * 1000))))


def stats(device=None):
    """The counters of the device's context since it was made, as a dict."""
    data = _abi.StatsData()
    data.struct_size = ctypes.sizeof(data)
    _library.check(_library.load().gemvjit_stats(context_of(device), ctypes.byref(data)))
    return {name: getattr(data, name) for name, _ in data._fields_ if name != "struct_size"}


class Torch:
    """The few functions of torch that a launch needs, looked up once. The private ones have been there for years, and
    spare a launch a Python object each; the public ones stand in where they are gone."""

    def __init__(self):
        import torch
        private = torch._C
        self.cuda = torch.cuda
        self.current_device = getattr(private, "_cuda_getDevice", torch.cuda.current_device)
        self.current_stream = getattr(private, "_cuda_getCurrentRawStream",
                                      lambda index: torch.cuda.current_stream(index).cuda_stream)
        self.bound = threading.local()
        self.empty_bf16 = lambda shape, device: torch.empty(shape, dtype=torch.bfloat16, device=device)

    def bind_thread(self, index):
        """Makes the device's primary context current to a thread that has not used CUDA. True if that was new."""
        if getattr(self.bound, "done", False):
            return False
        self.bound.done = True
        with self.cuda.device(index):
            self.cuda.mem_get_info(index)
        return True


_torch = None


def torch_functions():
    global _torch
    if _torch is None:
        _torch = Torch()
    return _torch
