"""Questions about a layer and its warmup: pick_nt, tuned, explain, warmup.

All take `device` (an ordinal or a torch.device; None: the current one) or `arch` ("sm_90a": a question about a
target, or a warmup that only fills the cache; no GPU is needed), and `allow_untuned`, as gemvjit_problem says."""

import ctypes
from typing import NamedTuple

from . import _abi, _devices, _interruptible, _library
from ._abi import Family, Outcome, Status
from ._errors import error_of, int64, invalid


class Kernel(NamedTuple):
    """One kernel of a warmup, as gemvjit_kernel_info has it."""

    key: str
    outcome: str  # "compiled", "cached" or "failed"
    match: str    # "exact", "predicted", "nearest_shape", "family_default"
    milliseconds: float
    path: str
    error: str


def problem(n, k, silu_mul=False, pdl=True, bf16=False, nt=0, allow_untuned=False, arch=None, family=None,
            segments=False):
    made = _abi.Problem()
    library = _library.load()
    n, k = int64("problem", "n", n), int64("problem", "k", k)
    if arch is not None and (not isinstance(arch, str) or "\0" in arch):
        raise invalid("problem", "arch", "a name such as 'sm_90a'", repr(arch))
    family = family or (Family.BF16_GEMV if bf16 else Family.NVFP4_GEMV)
    _library.check(library.gemvjit_problem_init(ctypes.byref(made), family, n, k))
    made.silu_mul, made.pdl, made.nt, made.allow_untuned = bool(silu_mul), bool(pdl), nt, bool(allow_untuned)
    made.scale_segments = bool(segments)
    made.arch = None if arch is None else arch.encode()
    return made


def dequantize_problem(n, k, arch=None):
    return problem(n, k, pdl=False, allow_untuned=True, arch=arch, family=Family.DEQUANTIZE_ROWS)


def pick_nt(n, k, m, silu_mul=False, bf16=False, *, allow_untuned=False, device=None, arch=None):
    """The nt (1, 2, 4) of the GEMV for m tokens where that was measured to be the fastest choice (with allow_untuned
    also where it was not measured); None: take another path."""
    asked = problem(n, k, silu_mul=silu_mul, bf16=bf16, allow_untuned=allow_untuned, arch=arch)
    nt = ctypes.c_int32()
    _library.check(_library.load().gemvjit_pick_nt(_devices.context_of(device, arch), ctypes.byref(asked), int64("pick_nt", "m", m),
                                                   ctypes.byref(nt)))
    return nt.value or None


def tuned(n, k, silu_mul=False, bf16=False, *, device=None, arch=None):
    """Whether the shape has a measured configuration that beats the alternative, for some m."""
    asked = problem(n, k, silu_mul=silu_mul, bf16=bf16, arch=arch)
    answer = ctypes.c_int32()
    _library.check(_library.load().gemvjit_tuned(_devices.context_of(device, arch), ctypes.byref(asked),
                                                 ctypes.byref(answer)))
    return bool(answer.value)


def explain(n, k, m=1, silu_mul=False, bf16=False, *, pdl=True, allow_untuned=True, device=None, arch=None):
    """Text for people: which kernel the layer gets for m tokens, and why."""
    asked = problem(n, k, silu_mul=silu_mul, pdl=pdl, bf16=bf16, allow_untuned=allow_untuned, arch=arch)
    handle, length = _devices.context_of(device, arch), ctypes.c_size_t()
    size = 4096
    while True:
        text = ctypes.create_string_buffer(size)
        _library.check(_library.load().gemvjit_explain(handle, ctypes.byref(asked), int64("explain", "m", m), text, size,
                                                       ctypes.byref(length)))
        if length.value < size:
            return text.value.decode()
        size = length.value + 1


def ready(n, k, silu_mul=False, pdl=True, bf16=False, *, allow_untuned=False, segments=False, device=None):
    """Whether all that warmup of the same arguments makes ready would be launched without loading anything, in the
    thread's current CUDA context. Does not wait. False also while an ordinary stream captures, when nothing could be
    warmed: ask before. Raises Untuned where warmup would."""
    wanted = _wanted(n, k, silu_mul, pdl, bf16, allow_untuned, segments, None)
    status = _library.load().gemvjit_ready(_devices.context_of(device, None), (_abi.Problem * len(wanted))(*wanted),
                                           len(wanted), None)
    if status == Status.NOT_READY:
        _library.keep_error(_library.thread_error())
        return False
    _library.check(status)
    return True


def warmup(n, k, silu_mul=False, pdl=True, bf16=False, *, allow_untuned=False, segments=False, device=None,
           arch=None):
    """Makes the layer's kernels ready: its GEMV for every nt that was measured (with allow_untuned for every nt; with
    segments also for nvfp4_gemv_segments), and for NVFP4 dequantize_rows. May compile, for seconds. Returns the Kernels.
    Raises Untuned if nothing was measured for the shape; dequantize_rows is ready even so. Ctrl-C is KeyboardInterrupt,
    at once; kernels that are being compiled are finished and kept."""
    wanted = _wanted(n, k, silu_mul, pdl, bf16, allow_untuned, segments, arch)
    return warm(wanted, _devices.context_of(device, arch), compile_only=arch is not None and device is None)


def _wanted(n, k, silu_mul, pdl, bf16, allow_untuned, segments, arch):
    def gemv(segments):
        return problem(n, k, silu_mul=silu_mul, pdl=pdl, bf16=bf16, allow_untuned=allow_untuned, arch=arch,
                       segments=segments)

    wanted = [gemv(False)]
    if segments:
        wanted.append(gemv(True))
    if not bf16:
        wanted.append(dequantize_problem(n, k, arch))
    return wanted


def warm(wanted, handle, compile_only=False):
    """One gemvjit_warmup of all the problems, on several threads. The first failure is raised after all were tried."""
    kernels = []

    def on_kernel(_, info):
        seen = info.contents
        kernels.append(Kernel(seen.key.decode(), Outcome(seen.outcome).name[8:].lower(), seen.match.decode(),
                              seen.milliseconds, seen.path.decode(errors="surrogateescape"),
                              seen.error.decode(errors="replace")))
        return 0

    if not wanted:
        return kernels
    cancel = ctypes.c_int32()
    options = _abi.WarmupOptions()
    options.struct_size = ctypes.sizeof(options)
    options.on_kernel = _abi.KernelCallback(on_kernel)
    options.level = _abi.WarmupLevel.LEVEL_COMPILED if compile_only else _abi.WarmupLevel.LEVEL_RESOLVED
    options.cancel = ctypes.pointer(cancel)
    library, problems = _library.load(), (_abi.Problem * len(wanted))(*wanted)

    def run():
        status = library.gemvjit_warmup(handle, problems, len(problems), ctypes.byref(options))
        return status, _library.thread_error() if status else ""

    status, message = _interruptible.call(run, cancel, uses_cuda=not compile_only)
    if status:
        _library.keep_error(message)
        raise error_of(status, message)
    return kernels
