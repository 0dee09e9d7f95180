"""The launches: nvfp4_gemv, bf16_gemv, dequantize_rows. Each checks its tensors, makes the output, and is one call of
the library on torch's current stream of the tensors' device."""

from . import _devices, _library
from . import _tensors as check
from ._abi import Bf16GemvArgs, DequantizeRowsArgs, GlobalScaleKind, Nvfp4GemvArgs, ScaleLayout, Status, packer

_SWIZZLED, _MULTIPLIER = int(ScaleLayout.SCALE_128X4_SWIZZLED), int(GlobalScaleKind.GLOBAL_SCALE_MULTIPLIER)
_CUDA_ERROR = int(Status.CUDA_ERROR)
_pack_nvfp4, _pack_bf16, _pack_dequantize = map(packer, (Nvfp4GemvArgs, Bf16GemvArgs, DequantizeRowsArgs))


def nvfp4_gemv(x, weight, weight_scale, global_scale, silu_mul=False, pdl=True):
    """out[M,N] = (x[M,K] @ dequant(weight)[N,K]^T) * global_scale, in BF16; with silu_mul out[M,N/2] = silu(gate) * up of
    the halves of N.

    x: bfloat16 [M, K], inner stride 1, M at most 32. weight: uint8 [N, K/2], the even k in the low nibble.
    weight_scale: float8_e4m3fn or uint8 in the 128x4 layout (swizzle_blockscale). global_scale: one float32 on the
    device, a multiplier. The kernel must have been warmed (NotReady).

    With pdl the kernel may read weight, weight_scale and global_scale while kernels before it still run: they must not
    be what those write.
    """
    m, k = check.matrix("nvfp4_gemv", "x", x, check.BF16)
    n, half = check.matrix("nvfp4_gemv", "weight", weight, check.BYTES)
    if half * 2 != k:
        raise check.invalid("nvfp4_gemv", "weight", f"[N, {k // 2}], as x has K = {k}", list(weight.shape))
    index, device = check.cuda_index("nvfp4_gemv", "x", x), x.device
    check.scales("nvfp4_gemv", "weight_scale", weight_scale, n, k)
    check.scalar("nvfp4_gemv", "global_scale", global_scale)
    for name, value in (("weight", weight), ("weight_scale", weight_scale), ("global_scale", global_scale)):
        check.same_device("nvfp4_gemv", name, value, device)
        check.contiguous("nvfp4_gemv", name, value)
    stride = check.row_stride("nvfp4_gemv", "x", x, m, k)
    out = x.new_empty((m, n // 2 if silu_mul else n))
    _call(_library.load().gemvjit_nvfp4_gemv, index,
          _pack_nvfp4(m, n, k, stride, x.data_ptr(), weight.data_ptr(), weight_scale.data_ptr(),
                      global_scale.data_ptr(), out.data_ptr(), _SWIZZLED, _MULTIPLIER, 1 if silu_mul else 0,
                      1 if pdl else 0))
    return out


def bf16_gemv(x, weight, silu_mul=False, pdl=True):
    """As nvfp4_gemv with a bfloat16 weight [N, K] and no scales."""
    m, k = check.matrix("bf16_gemv", "x", x, check.BF16)
    n, columns = check.matrix("bf16_gemv", "weight", weight, check.BF16)
    if columns != k:
        raise check.invalid("bf16_gemv", "weight", f"[N, {k}], as x has K = {k}", list(weight.shape))
    index = check.cuda_index("bf16_gemv", "x", x)
    check.same_device("bf16_gemv", "weight", weight, x.device)
    check.contiguous("bf16_gemv", "weight", weight)
    stride = check.row_stride("bf16_gemv", "x", x, m, k)
    out = x.new_empty((m, n // 2 if silu_mul else n))
    _call(_library.load().gemvjit_bf16_gemv, index,
          _pack_bf16(m, n, k, stride, x.data_ptr(), weight.data_ptr(), out.data_ptr(), 1 if silu_mul else 0,
                     1 if pdl else 0))
    return out


def dequantize_rows(weight, weight_scale):
    """out[N,K] = e2m1 * e4m3 in bfloat16, exact; the global scale is not applied. Waits for all kernels before it."""
    n, half = check.matrix("dequantize_rows", "weight", weight, check.BYTES)
    k = half * 2
    index = check.cuda_index("dequantize_rows", "weight", weight)
    check.scales("dequantize_rows", "weight_scale", weight_scale, n, k)
    check.same_device("dequantize_rows", "weight_scale", weight_scale, weight.device)
    check.contiguous("dequantize_rows", "weight", weight)
    check.contiguous("dequantize_rows", "weight_scale", weight_scale)
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
