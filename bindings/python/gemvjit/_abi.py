"""The mirror of include/gemvjit/gemvjit.h: enums, structs, function types. Says nothing on its own; a test compiles a C
program against the header and compares every value, size and offset, so that this file cannot become stale.

Members of enums are called as in the header without GEMVJIT_, fields as in the header.
"""

import ctypes
import struct
from ctypes import POINTER, c_char_p, c_double, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from enum import IntEnum

VERSION = (0, 1, 0)  # of the header that this mirrors
DEVICE_CURRENT, DEVICE_NONE = -1, -2
MAX_SCALE_SEGMENTS = 8


class Status(IntEnum):
    OK = 0
    INVALID_ARGUMENT = 1
    INVALID_SHAPE = 2
    INVALID_ALIGNMENT = 3
    UNSUPPORTED = 4
    M_NOT_COVERED = 5
    UNTUNED = 6
    NOT_READY = 7
    SEALED = 8
    NO_DRIVER = 9
    NO_COMPILER = 10
    COMPILE_FAILED = 11
    CACHE_NOT_WRITABLE = 12
    ENTRY_DAMAGED = 13
    NOT_FOUND = 14
    IO_ERROR = 15
    CUDA_ERROR = 16
    CANCELLED = 17
    OUT_OF_MEMORY = 18
    INTERNAL_ERROR = 19
    FORKED = 20


class MissPolicy(IntEnum):
    ON_MISS_FAIL = 0
    ON_MISS_COMPILE = 1


class LogLevel(IntEnum):
    LOG_DEFAULT = 0
    LOG_DEBUG = 1
    LOG_INFO = 2
    LOG_WARNING = 3
    LOG_ERROR = 4
    LOG_OFF = 5


class Family(IntEnum):
    NVFP4_GEMV = 1
    BF16_GEMV = 2
    DEQUANTIZE_ROWS = 3
    SWIZZLE_BLOCKSCALE = 4


class Outcome(IntEnum):
    OUTCOME_COMPILED = 1
    OUTCOME_CACHED = 2
    OUTCOME_FAILED = 3
    OUTCOME_MISSING = 4


class ScaleLayout(IntEnum):
    SCALE_128X4_SWIZZLED = 1
    SCALE_ROW_MAJOR = 2


class GlobalScaleKind(IntEnum):
    GLOBAL_SCALE_MULTIPLIER = 1
    GLOBAL_SCALE_DIVISOR = 2


class EventKind(IntEnum):
    EVENT_LAUNCH_MISS = 1


class WarmupLevel(IntEnum):
    LEVEL_RESOLVED = 0
    LEVEL_COMPILED = 1
    LEVEL_LOADED = 2


LogCallback = ctypes.CFUNCTYPE(None, c_void_p, c_int32, c_char_p)


class Event(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("kind", c_int32), ("status", c_int32), ("family", c_int32),
                ("sealed", c_int32), ("m", c_int64), ("n", c_int64), ("k", c_int64), ("silu_mul", c_int32),
                ("pdl", c_int32), ("scale_segments", c_int32)]


EventCallback = ctypes.CFUNCTYPE(None, c_void_p, POINTER(Event))


class Options(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("device", c_int32), ("on_miss", c_int32), ("cache_dir", c_char_p),
                ("tuning_dir", c_char_p), ("dump_dir", c_char_p), ("compile_threads", c_int32),
                ("log_level", c_int32), ("log_callback", LogCallback), ("log_user", c_void_p),
                ("event_callback", EventCallback), ("event_user", c_void_p)]


class Problem(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("family", c_int32), ("nt", c_int32), ("n", c_int64), ("k", c_int64),
                ("silu_mul", c_int32), ("pdl", c_int32), ("allow_untuned", c_int32), ("scale_segments", c_int32),
                ("cluster_fallback", c_int32), ("arch", c_char_p)]


class KernelInfo(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("key", c_char_p), ("digest", c_char_p), ("arch", c_char_p),
                ("flags_text", c_char_p), ("match", c_char_p), ("path", c_char_p), ("error", c_char_p),
                ("n", c_int64), ("k", c_int64), ("flags", c_uint64), ("family", c_int32), ("nt", c_int32),
                ("outcome", c_int32), ("status", c_int32), ("milliseconds", c_double), ("compile_ms", c_uint32),
                ("registers", c_uint32), ("smem_bytes", c_uint32), ("spill_bytes", c_uint32),
                ("cubin_bytes", c_uint64), ("problem_index", c_size_t), ("done", c_size_t), ("total", c_size_t)]


KernelCallback = ctypes.CFUNCTYPE(ctypes.c_int, c_void_p, POINTER(KernelInfo))


class WarmupOptions(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("on_kernel", KernelCallback), ("user", c_void_p),
                ("cancel", POINTER(c_int32)), ("problem_status", POINTER(c_int32)), ("level", c_int32),
                ("require_cache", c_int32)]


class ScaleSegment(ctypes.Structure):
    _fields_ = [("row_end", c_int64), ("global_scale", c_void_p)]


class Nvfp4GemvArgs(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("m", c_int64), ("n", c_int64), ("k", c_int64),
                ("x_row_stride", c_int64), ("x", c_void_p), ("weight", c_void_p), ("weight_scale", c_void_p),
                ("global_scale", c_void_p), ("out", c_void_p), ("scale_layout", c_int32),
                ("global_scale_kind", c_int32), ("silu_mul", c_int32), ("pdl", c_int32), ("segment_count", c_int64),
                ("segments", c_void_p)]


class Bf16GemvArgs(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("m", c_int64), ("n", c_int64), ("k", c_int64),
                ("x_row_stride", c_int64), ("x", c_void_p), ("weight", c_void_p), ("out", c_void_p),
                ("silu_mul", c_int32), ("pdl", c_int32)]


class DequantizeRowsArgs(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("n", c_int64), ("k", c_int64), ("weight", c_void_p),
                ("weight_scale", c_void_p), ("out", c_void_p), ("scale_layout", c_int32), ("pdl", c_int32)]


class SwizzleBlockscaleArgs(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("n", c_int64), ("k", c_int64), ("row_major", c_void_p),
                ("swizzled", c_void_p)]


class StatsData(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t)] + [(name, c_uint64) for name in (
        "launches", "launch_misses", "compiles", "compile_failures", "cache_hits", "cache_misses", "cache_damaged",
        "cache_writes", "cache_write_failures", "kernels_loaded", "untuned_kernels", "compile_milliseconds",
        "exact_kernels", "predicted_kernels", "nearest_kernels", "default_kernels", "build_waits",
        "build_stale_waits", "build_shared_failures", "cache_evictions", "cache_thrashed", "cache_writes_refused",
        "cache_quarantined", "cache_determinism_alarms", "cache_unreadable", "unserved_problems", "cluster_fallbacks",
        "remote_hits", "remote_misses", "remote_failures", "remote_uploads", "remote_upload_failures")]


# The header's names, for the test that compares; a struct or an enum that is in the header alone fails it.
STRUCTS = {"gemvjit_options": Options, "gemvjit_event": Event, "gemvjit_problem": Problem,
           "gemvjit_kernel_info": KernelInfo,
           "gemvjit_warmup_options": WarmupOptions, "gemvjit_nvfp4_gemv_args": Nvfp4GemvArgs,
           "gemvjit_bf16_gemv_args": Bf16GemvArgs, "gemvjit_dequantize_rows_args": DequantizeRowsArgs,
           "gemvjit_scale_segment": ScaleSegment, "gemvjit_swizzle_blockscale_args": SwizzleBlockscaleArgs,
           "gemvjit_stats_data": StatsData}
ENUMS = {"gemvjit_status": Status, "gemvjit_miss_policy": MissPolicy, "gemvjit_log_level": LogLevel,
         "gemvjit_family": Family, "gemvjit_outcome": Outcome, "gemvjit_scale_layout": ScaleLayout,
         "gemvjit_global_scale_kind": GlobalScaleKind, "gemvjit_event_kind": EventKind,
         "gemvjit_warmup_level": WarmupLevel}

_context, _problems, _status = c_void_p, POINTER(Problem), c_int32
# Arguments of a launch are bytes that packer() made: one call in place of one for each field.
_launch = (_status, (_context, c_char_p, c_void_p))
FUNCTIONS = {
    "gemvjit_version": (c_char_p, ()),
    "gemvjit_status_name": (c_char_p, (_status,)),
    "gemvjit_last_error": (c_char_p, ()),
    "gemvjit_options_init": (_status, (POINTER(Options),)),
    "gemvjit_create": (_status, (POINTER(Options), POINTER(_context))),
    "gemvjit_destroy": (_status, (_context,)),
    "gemvjit_device_arch": (c_char_p, (_context,)),
    "gemvjit_cache_dir": (c_char_p, (_context,)),
    "gemvjit_tuning_hash": (c_char_p, (_context,)),
    "gemvjit_seal": (_status, (_context,)),
    "gemvjit_problem_init": (_status, (_problems, c_int32, c_int64, c_int64)),
    "gemvjit_supported": (_status, (_context, _problems, c_char_p, c_size_t)),
    "gemvjit_pick_nt": (_status, (_context, _problems, c_int64, POINTER(c_int32))),
    "gemvjit_tuned": (_status, (_context, _problems, POINTER(c_int32))),
    "gemvjit_explain": (_status, (_context, _problems, c_int64, c_char_p, c_size_t, POINTER(c_size_t))),
    "gemvjit_ready": (_status, (_context, _problems, c_size_t, POINTER(c_int32))),
    "gemvjit_warmup": (_status, (_context, _problems, c_size_t, POINTER(WarmupOptions))),
    "gemvjit_flush": (_status, (_context, c_int32)),
    "gemvjit_nvfp4_gemv": _launch,
    "gemvjit_bf16_gemv": _launch,
    "gemvjit_dequantize_rows": _launch,
    "gemvjit_swizzled_scale_bytes": (c_size_t, (c_int64, c_int64)),
    "gemvjit_swizzle_blockscale": (_status, (c_char_p, c_int64, c_int64, c_void_p, c_size_t)),
    "gemvjit_stats": (_status, (_context, POINTER(StatsData))),
}

_CODES = {c_size_t: "N", c_int64: "q", c_int32: "i", c_void_p: "P"}


def packer(structure):
    """A function of all fields but struct_size that returns the struct's bytes. Bytes that Python allocates are aligned
    for any C type, so the library can be handed them as they are."""
    size = ctypes.sizeof(structure)
    layout = struct.Struct("@" + "".join(_CODES[kind] for _, kind in structure._fields_))
    if layout.size != size:
        raise AssertionError(f"{structure.__name__}: {layout.size} bytes packed, {size} in the struct")
    pack = layout.pack

    def packed(*fields):
        return pack(size, *fields)

    return packed
