"""gemvjit: small-M (decode) linear layers on NVIDIA GPUs, compiled at warmup, launched without a stall.

    out[M,N] = (x[M,K] @ dequant(W)[N,K]^T) * global_scale        0 <= M <= 32

Pure ctypes over libgemvjit.so (include/gemvjit/gemvjit.h), for torch tensors. Importing this opens no library and needs
neither a GPU nor torch. `import gemvjit.torch` adds operators for torch.compile and a Linear module. See
docs/python.md."""

from ._abi import Status
from ._devices import flush, seal, stats
from ._errors import (CacheIOError, CacheNotWritable, Cancelled, CompileFailed, CudaError, EntryDamaged, Forked,
                      GemvjitError, InternalError, InvalidAlignment, InvalidArgument, InvalidShape, LibraryNotFound,
                      MNotCovered, NoCompiler, NoDriver, NotFound, NotReady, OutOfMemory, Sealed, Unsupported, Untuned)
from ._launch import bf16_gemv, dequantize_rows, nvfp4_gemv, nvfp4_gemv_segments
from ._library import last_error, version
from ._problems import Kernel, explain, pick_nt, ready, tuned, warmup
from .formats import dequantize_nvfp4, quantize_nvfp4, swizzle_blockscale, unswizzle_blockscale

__version__ = "0.1.0"
__all__ = ["nvfp4_gemv", "nvfp4_gemv_segments", "bf16_gemv", "dequantize_rows", "pick_nt", "tuned", "warmup", "ready",
           "explain", "seal", "flush", "stats", "last_error", "version", "swizzle_blockscale", "unswizzle_blockscale",
           "quantize_nvfp4", "dequantize_nvfp4",
           "Kernel", "Status", "GemvjitError", "LibraryNotFound", "InvalidArgument", "InvalidShape",
           "InvalidAlignment", "Unsupported", "MNotCovered", "Untuned", "NotReady", "Sealed", "NoDriver",
           "NoCompiler", "CompileFailed", "CacheNotWritable", "EntryDamaged", "NotFound", "CacheIOError", "CudaError",
           "Cancelled", "OutOfMemory", "InternalError", "Forked"]
