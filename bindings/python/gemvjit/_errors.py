"""Exceptions: one class for each status that a caller may want to tell apart, all below GemvjitError."""

import operator

from ._abi import Status


class GemvjitError(RuntimeError):
    """`status` is the library's code (a Status), or None where the library was not reached."""

    status = None


class LibraryNotFound(GemvjitError, ImportError):
    """No libgemvjit.so that can be used; the message names every place that was tried."""


class InvalidArgument(GemvjitError, ValueError):
    """Also of this package itself: a tensor whose type, shape, strides or device are not what the function takes."""


class InvalidShape(GemvjitError, ValueError):
    pass


class InvalidAlignment(GemvjitError, ValueError):
    pass


class Unsupported(GemvjitError):
    pass


class MNotCovered(GemvjitError):
    """More tokens than a warmed kernel covers: take another path."""


class Untuned(GemvjitError):
    """No measured configuration, and allow_untuned was not given."""


class NotReady(GemvjitError):
    """The kernel was not warmed; or a warmup while a stream captures."""


class Sealed(GemvjitError):
    """Would have to compile after seal()."""


class NoDriver(GemvjitError):
    pass


class NoCompiler(GemvjitError):
    pass


class CompileFailed(GemvjitError):
    pass


class CacheNotWritable(GemvjitError):
    pass


class EntryDamaged(GemvjitError):
    pass


class NotFound(GemvjitError):
    pass


class CacheIOError(GemvjitError):
    pass


class CudaError(GemvjitError):
    pass


class Cancelled(GemvjitError):
    pass


class OutOfMemory(GemvjitError, MemoryError):
    """Of host memory."""


class InternalError(GemvjitError):
    pass


class Forked(GemvjitError):
    """A context of the parent process, used after fork(). The functions of this package make new ones in the child; CUDA
    itself does not work there if the parent had started it: use multiprocessing's spawn."""


CLASSES = {
    Status.INVALID_ARGUMENT: InvalidArgument, Status.INVALID_SHAPE: InvalidShape,
    Status.INVALID_ALIGNMENT: InvalidAlignment, Status.UNSUPPORTED: Unsupported, Status.M_NOT_COVERED: MNotCovered,
    Status.UNTUNED: Untuned, Status.NOT_READY: NotReady, Status.SEALED: Sealed, Status.NO_DRIVER: NoDriver,
    Status.NO_COMPILER: NoCompiler, Status.COMPILE_FAILED: CompileFailed,
    Status.CACHE_NOT_WRITABLE: CacheNotWritable, Status.ENTRY_DAMAGED: EntryDamaged, Status.NOT_FOUND: NotFound,
    Status.IO_ERROR: CacheIOError, Status.CUDA_ERROR: CudaError, Status.CANCELLED: Cancelled,
    Status.OUT_OF_MEMORY: OutOfMemory, Status.INTERNAL_ERROR: InternalError, Status.FORKED: Forked,
}
for _status, _class in CLASSES.items():
    _class.status = _status


def error_of(status, message):
    """The exception for a status that is not OK. A code of a newer library is a plain GemvjitError."""
    cls = CLASSES.get(status, GemvjitError)
    error = cls(message or f"status {int(status)}")
    error.status = Status(status) if status in CLASSES else int(status)
    return error


def invalid(function, argument, expected, found):
    return InvalidArgument(f"{function}: {argument}: expected {expected}, found {found}")


def int64(function, argument, value):
    """The value as an int of 64 bits: ctypes would cut off what does not fit."""
    try:
        number = operator.index(value)
    except TypeError:
        raise invalid(function, argument, "an int", repr(value)) from None
    if not -2**63 <= number < 2**63:
        raise invalid(function, argument, "an int of 64 bits", number)
    return number
