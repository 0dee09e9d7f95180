"""The launches: nvfp4_gemv, bf16_gemv, dequantize_rows. Each checks its tensors, makes the output, and is one call of
the library on torch's current stream of the tensors' device.

A GEMV first asks all at once, in plain expressions over dtypes and devices that were seen to be right before, since
each call of a function here costs as much as several of them. Whatever does not pass goes to _tensors.py, which looks
at one thing after the other, and raises or remembers."""

import ctypes

from . import _devices, _library
from . import _tensors as check
from ._abi import (MAX_SCALE_SEGMENTS, Bf16GemvArgs, DequantizeRowsArgs, GlobalScaleKind, Nvfp4GemvArgs, ScaleLayout,
                   ScaleSegment, Status, packer)
from ._errors import int64, invalid

_SWIZZLED, _MULTIPLIER = int(ScaleLayout.SCALE_128X4_SWIZZLED), int(GlobalScaleKind.GLOBAL_SCALE_MULTIPLIER)
_bf16, _bytes, _scales, _float = (check.remembered(kind) for kind in (check.BF16, check.BYTES, check.SCALES,
                                                                      check.FLOAT))
_cuda = check.CUDA_DEVICES
_CUDA_ERROR = int(Status.CUDA_ERROR)
_pack_nvfp4, _pack_bf16, _pack_dequantize = map(packer, (Nvfp4GemvArgs, Bf16GemvArgs, DequantizeRowsArgs))


def nvfp4_gemv(x, weight, weight_scale, global_scale, silu_mul=False, pdl=True):
    """out[M,N] = (x[M,K] @ dequant(weight)[N,K]^T) * global_scale, in BF16; with silu_mul out[M,N/2] = silu(gate) *
    up of the halves of N.

    x: bfloat16 [M, K], inner stride 1, M at most 32. weight: uint8 [N, K/2], the even k in the low nibble.
    weight_scale: float8_e4m3fn or uint8 in the 128x4 layout (swizzle_blockscale). global_scale: one float32 on the
    device, a multiplier. The kernel must have been warmed (NotReady).

    With pdl the kernel may read weight, weight_scale and global_scale while kernels before it still run: they must not
    be what those write.
    """
    try:
        device, (m, k), (n, half), (stride, inner) = x.device, x.shape, weight.shape, x.stride()
        good = (x.dtype in _bf16 and weight.dtype in _bytes and weight_scale.dtype in _scales and inner == 1
                and global_scale.dtype in _float and half * 2 == k and (stride >= k or m < 2)
                and weight.device == device and weight_scale.device == device and global_scale.device == device
                and weight.is_contiguous() and weight_scale.is_contiguous() and global_scale.numel() == 1
                and weight_scale.numel() == check.swizzled_bytes(n, k))
        index = _cuda[device]
    except (AttributeError, LookupError, TypeError, ValueError):
        good = False
    if not good:
        m, n, k, stride, index = check.nvfp4_arguments("nvfp4_gemv", x, weight, weight_scale, global_scale)
    if m < 2:
        stride = k  # torch gives a row that stands alone any stride
    out = x.new_empty((m, n // 2 if silu_mul else n))
    _call(_library.load().gemvjit_nvfp4_gemv, index,
          _pack_nvfp4(m, n, k, stride, x.data_ptr(), weight.data_ptr(), weight_scale.data_ptr(),
                      global_scale.data_ptr(), out.data_ptr(), _SWIZZLED, _MULTIPLIER, 1 if silu_mul else 0,
                      1 if pdl else 0, 0, 0))
    return out


def nvfp4_gemv_segments(x, weight, weight_scale, segments, silu_mul=False, pdl=True):
    """nvfp4_gemv of a merged weight (qkv, gate and up) whose parts have global scales of their own: bit for bit the parts
    one by one. segments: up to 8 of (row_end, global_scale): the scale of the rows from the previous row_end up to this
    one; the last is N, all are multiples of 8. Warmed with warmup(..., segments=True). An ordinary call, with more work
    on the host than nvfp4_gemv."""
    try:
        parts = [(end, scale) for end, scale in segments]
    except (TypeError, ValueError):
        raise invalid("nvfp4_gemv_segments", "segments", "pairs of (row_end, global_scale)", segments) from None
    if not 1 <= len(parts) <= MAX_SCALE_SEGMENTS:
        raise invalid("nvfp4_gemv_segments", "segments", f"1 to {MAX_SCALE_SEGMENTS} of them", len(parts))
    array = (ScaleSegment * len(parts))()
    for segment, (end, scale) in zip(array, parts):
        m, n, k, stride, index = check.nvfp4_arguments("nvfp4_gemv_segments", x, weight, weight_scale, scale)
        segment.row_end = int64("nvfp4_gemv_segments", "row_end", end)
        segment.global_scale = scale.data_ptr()
    out = x.new_empty((m, n // 2 if silu_mul else n))
    _call(_library.load().gemvjit_nvfp4_gemv, index,
          _pack_nvfp4(m, n, k, k if m < 2 else stride, x.data_ptr(), weight.data_ptr(), weight_scale.data_ptr(), 0,
                      out.data_ptr(), _SWIZZLED, _MULTIPLIER, 1 if silu_mul else 0, 1 if pdl else 0, len(parts),
                      ctypes.addressof(array)))
    return out


def bf16_gemv(x, weight, silu_mul=False, pdl=True):
    """As nvfp4_gemv with a bfloat16 weight [N, K] and no scales."""
    try:
        device, (m, k), (n, columns), (stride, inner) = x.device, x.shape, weight.shape, x.stride()
        good = (x.dtype in _bf16 and weight.dtype in _bf16 and inner == 1 and columns == k
                and (stride >= k or m < 2) and weight.device == device and weight.is_contiguous())
        index = _cuda[device]
    except (AttributeError, LookupError, TypeError, ValueError):
        good = False
    if not good:
        m, n, k, stride, index = check.bf16_arguments("bf16_gemv", x, weight)
    if m < 2:
        stride = k
    out = x.new_empty((m, n // 2 if silu_mul else n))
    _call(_library.load().gemvjit_bf16_gemv, index,
          _pack_bf16(m, n, k, stride, x.data_ptr(), weight.data_ptr(), out.data_ptr(), 1 if silu_mul else 0,
                     1 if pdl else 0))
    return out


def dequantize_rows(weight, weight_scale):
    """out[N,K] = e2m1 * e4m3 in bfloat16, exact; the global scale is not applied. Waits for all kernels before it."""
    n, k, index = check.dequantize_arguments("dequantize_rows", weight, weight_scale)
    out = _devices.torch_functions().empty_bf16((n, k), weight.device)
    _call(_library.load().gemvjit_dequantize_rows, index,
          _pack_dequantize(n, k, weight.data_ptr(), weight_scale.data_ptr(), out.data_ptr(), _SWIZZLED, 0))
    return out


def _call(function, index, arguments):
    """Launch on the current stream of device `index`."""
    torch = _devices.torch_functions()
    if torch.current_device() != index:
        with torch.cuda.device(index):
            return _launch(torch, function, index, arguments)
    return _launch(torch, function, index, arguments)


def _launch(torch, function, index, arguments):
    context = _devices.context(index)
    status = function(context, arguments, torch.current_stream(index))
    if status == _CUDA_ERROR and torch.bind_thread(index):  # a thread's first use of CUDA: nothing was launched
        status = function(context, arguments, torch.current_stream(index))
    if status:
        _library.check(status)
