"""Operands and float64 references for test_gpu.py, made on the fly from the formats' definitions."""

import torch

import gemvjit
from gemvjit.formats import GROUP


def bits(tensor):
    return tensor.contiguous().view(torch.uint8)


class Layer:
    """An NVFP4 weight [n, k] of random codes and scales, whose swizzled scales have 0xFF in all padding."""

    def __init__(self, n, k, device, seed=0, largest_scale=0x7E):
        random = torch.Generator().manual_seed(seed * 7919 + n * 31 + k)
        self.n, self.k = n, k
        self.weight = torch.randint(0, 256, (n, k // 2), generator=random, dtype=torch.uint8).to(device)
        scales = torch.randint(0, largest_scale + 1, (n, k // GROUP), generator=random, dtype=torch.uint8)
        self.scales = scales.to(device)
        self.global_scale = torch.tensor([0.003 + 0.001 * (seed % 3)], device=device)
        self.random = random

    def swizzled(self, scales=None):
        scales = self.scales if scales is None else scales
        rows, columns = -(-self.n // 128) * 128, -(-(self.k // GROUP) // 4) * 4
        padded = torch.full((rows, columns), 0xFF, dtype=torch.uint8, device=scales.device)
        padded[:self.n, :self.k // GROUP] = scales
        return gemvjit.swizzle_blockscale(padded).view(torch.float8_e4m3fn)

    def values(self):
        """The products code * scale, in float64."""
        return gemvjit.dequantize_nvfp4(self.weight, self.scales)

    def dequantized(self):
        return self.values() * self.global_scale.double()

    def arguments(self):
        return self.weight, self.swizzled(), self.global_scale

    def x(self, m, row_stride=None):
        return rows_of_x(m, self.k, self.weight.device, self.random, row_stride)


class Bf16Layer:
    def __init__(self, n, k, device, seed=0):
        self.random = torch.Generator().manual_seed(seed * 7919 + n * 17 + k)
        self.n, self.k = n, k
        self.weight = (torch.randn(n, k, generator=self.random) * 0.1).bfloat16().to(device)

    def dequantized(self):
        return self.weight.double()

    def arguments(self):
        return (self.weight,)

    def x(self, m, row_stride=None):
        return rows_of_x(m, self.k, self.weight.device, self.random, row_stride)


def rows_of_x(m, k, device, random, row_stride=None):
    stride = row_stride or k
    storage = torch.randn(m * stride, generator=random).bfloat16().to(device)
    return storage.as_strided((m, k), (stride, 1))


def reference(x, weight, silu_mul=False):
    """The float64 result, and how far each element may be from it: 2^-8 of the value for the rounding to BF16, 2^-19 of
    the sum of magnitudes for the FP32 accumulation; with silu_mul what such errors of gate and up become."""
    x = x.double()
    y, magnitude = x @ weight.t(), x.abs() @ weight.abs().t()
    bound = 2 ** -8 * y.abs() + 2 ** -19 * magnitude
    if not silu_mul:
        return y, bound
    (gate, up), (gate_error, up_error) = y.chunk(2, dim=1), bound.chunk(2, dim=1)
    silu = gate * torch.sigmoid(gate)
    result = silu * up
    # The slope of silu is at most 1.1.
    error = 1.1 * gate_error * (up.abs() + up_error) + silu.abs() * up_error
    return result, error + 2 ** -8 * (result.abs() + error)


def worst(out, x, weight, silu_mul=False):
    """The largest error in units of its bound; NaN where one side alone is NaN gives infinity."""
    want, bound = reference(x, weight, silu_mul)
    if out.shape != want.shape or out.dtype != torch.bfloat16:
        return float("inf")
    out = out.double()
    if not torch.equal(out.isnan(), want.isnan()):
        return float("inf")
    errors = ((out - want).abs() / bound.clamp(min=1e-300))[~want.isnan()]
    errors = errors[~((out == want)[~want.isnan()])]
    return errors.max().item() if errors.numel() else 0.0
