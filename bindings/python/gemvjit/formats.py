"""NVFP4 as bytes: the quantizer, its inverse, and the 128x4 layout of block scales. Reference quality: exact rounding
in float64, written to be read. Needs no library and no GPU; tensors may be on any device of torch.

    weight[n,k] ~ e2m1(code) * e4m3(scale[n,k/16]) * global_scale
"""

import sys

from ._errors import invalid
from ._tensors import SCALES, dtype_name

GROUP = 16  # values along K that share a block scale
E2M1_MAX, E4M3_MAX = 6.0, 448.0
ELEMENTS_AT_ONCE = 1 << 22  # that are in flight as float64
# The midpoints of 0, 0.5, 1, 1.5, 2, 3, 4, 6. A tie goes to the even code: up at those listed second.
_MIDPOINTS_DOWN, _MIDPOINTS_UP = (0.25, 1.25, 2.5, 5.0), (0.75, 1.75, 3.5)
_E2M1 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0)


def swizzle_blockscale(scale):
    """Row-major block scales [N, K/16] to the 128x4 layout that the kernels read: [roundup(N, 128), roundup(K/16, 4)]
    with the bytes in that layout's order and zeros as padding. A torch tensor (float8_e4m3fn or uint8, any device) or
    a numpy array (uint8) gives the same kind. Do it once, at load: what it returns cannot be told from what it
    takes."""
    if getattr(scale, "ndim", None) != 2:
        raise invalid("swizzle_blockscale", "scale", "2 dimensions", list(getattr(scale, "shape", [])) or
                      type(scale).__name__)
    if dtype_name(scale.dtype) not in SCALES and str(scale.dtype) != "uint8":
        raise invalid("swizzle_blockscale", "scale", " or ".join(SCALES), scale.dtype)
    rows, columns = scale.shape
    padded_rows, padded_columns = -(-rows // 128) * 128, -(-columns // 4) * 4
    if hasattr(scale, "data_ptr"):
        torch = sys.modules["torch"]
        padded = torch.zeros((padded_rows, padded_columns), dtype=torch.uint8, device=scale.device)
        padded[:rows, :columns] = scale.view(torch.uint8)
        tiles = padded.view(padded_rows // 128, 4, 32, padded_columns // 4, 4).permute(0, 3, 2, 1, 4)
        return tiles.contiguous().view(padded_rows, padded_columns).view(scale.dtype)
    import numpy
    padded = numpy.zeros((padded_rows, padded_columns), numpy.uint8)
    padded[:rows, :columns] = scale
    tiles = padded.reshape(padded_rows // 128, 4, 32, padded_columns // 4, 4).transpose(0, 3, 2, 1, 4)
    return numpy.ascontiguousarray(tiles).reshape(padded_rows, padded_columns)


def unswizzle_blockscale(swizzled, n, k):
    """The inverse of swizzle_blockscale, of a torch tensor: [n, k/16]."""
    torch = sys.modules["torch"]
    rows, columns = -(-n // 128) * 128, -(-(k // GROUP) // 4) * 4
    tiles = swizzled.contiguous().view(torch.uint8).view(rows // 128, columns // 4, 32, 4, 4).permute(0, 3, 2, 1, 4)
    plain = tiles.contiguous().view(rows, columns)[:n, :k // GROUP].contiguous()
    return plain.view(swizzled.dtype)


def quantize_nvfp4(weight):
    """A float tensor [N, K], K a multiple of 16, to (codes uint8 [N, K/2], block scales float8_e4m3fn [N, K/16]
    row-major, global scale float32 []). The bytes are those of tools/quantize_nvfp4.py: the global scale is amax /
    2688, a block scale amax(block) / 6 / global scale rounded to nearest even and at most 448, a code the nearest
    against that rounded scale, ties to even."""
    import torch
    if getattr(weight, "ndim", None) != 2 or not weight.is_floating_point() or weight.shape[1] % GROUP:
        raise invalid("quantize_nvfp4", "weight", f"a float tensor [N, K] with K a multiple of {GROUP}",
                      f"{getattr(weight, 'dtype', type(weight).__name__)} {list(getattr(weight, 'shape', []))}")
    weight = weight.detach()
    if not bool(torch.isfinite(weight).all()):
        raise invalid("quantize_nvfp4", "weight", "finite values", "a NaN or an infinity")
    n, k = weight.shape
    amax = weight.abs().max().to(torch.float32) if weight.numel() else torch.zeros((), device=weight.device)
    largest = amax.new_tensor(E2M1_MAX * E4M3_MAX, dtype=torch.float64)
    global_scale = (amax.to(torch.float64) / largest).to(torch.float32)
    if not bool(global_scale > 0):  # zeros alone: any scale serves, and 1 divides safely
        global_scale = torch.ones_like(global_scale)
    packed = torch.empty((n, k // 2), dtype=torch.uint8, device=weight.device)
    scales = torch.empty((n, k // GROUP), dtype=torch.uint8, device=weight.device)
    step = max(1, ELEMENTS_AT_ONCE // max(k, 1))
    for row in range(0, n, step):
        blocks = weight[row:row + step].to(torch.float64).reshape(-1, k // GROUP, GROUP)
        scale = _e4m3_from_positive(blocks.abs().amax(dim=2) / _divisor(blocks) / global_scale.to(torch.float64))
        unit = e4m3_to_float64(scale) * global_scale.to(torch.float64)
        unit[scale == 0] = float("inf")  # too small for any scale: the codes are (signed) zeros
        codes = _e2m1_from(blocks / unit[:, :, None]).reshape(-1, k)
        packed[row:row + step] = codes[:, 0::2] | (codes[:, 1::2] << 4)
        scales[row:row + step] = scale
    return packed, scales.view(torch.float8_e4m3fn), global_scale


def dequantize_nvfp4(packed, scales, global_scale=None):
    """The exact products e2m1 * e4m3 of row-major scales in float64, times the global scale if one is given. Runs on
    any device: the reference for dequantize_rows and for tests."""
    import torch
    n, half = packed.shape
    packed = packed.view(torch.uint8)
    codes = torch.stack((packed & 15, packed >> 4), dim=2).reshape(n, 2 * half)
    table = torch.tensor(_E2M1, dtype=torch.float64, device=packed.device)
    values = table[codes.long()].reshape(n, -1, GROUP) * e4m3_to_float64(scales.view(torch.uint8))[:, :, None]
    values = values.reshape(n, 2 * half)
    return values if global_scale is None else values * global_scale.to(torch.float64)


def e4m3_to_float64(codes):
    """Values of scale bytes: NaN for 0x7F and 0xFF."""
    import torch
    return codes.view(torch.float8_e4m3fn).to(torch.float64)


def _divisor(like):
    # E2M1_MAX as a tensor, since torch on a GPU multiplies by the reciprocal of a Python number, which rounds twice.
    return like.new_tensor(E2M1_MAX)


def _e4m3_from_positive(values):
    """Codes of values >= 0, to nearest even, at most 448."""
    import torch
    values = values.clamp(max=E4M3_MAX)
    exponent = torch.frexp(values).exponent - 1
    exponent[values < 2.0 ** -6] = -6  # below 2^-6, and for 0, the step stays 2^-9
    powers = torch.tensor([2.0 ** (3 - e) for e in range(-6, 9)], dtype=torch.float64, device=values.device)
    steps = torch.round(values * powers[(exponent + 6).long()]).long()  # half to even
    # A carry out of `steps` is the next exponent's first code.
    return (((exponent.long() + 6) << 3) + steps).to(torch.uint8)


def _e2m1_from(values):
    """Codes 0..15, to nearest even, at most 6 in magnitude; the sign is kept, also of what rounds to zero."""
    import torch
    magnitude = values.abs()
    codes = torch.signbit(values).to(torch.uint8) << 3
    for midpoint in _MIDPOINTS_DOWN:
        codes += magnitude > midpoint
    for midpoint in _MIDPOINTS_UP:
        codes += magnitude >= midpoint
    return codes
