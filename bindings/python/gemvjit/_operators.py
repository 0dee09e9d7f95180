"""The operators of gemvjit.torch: schemas, CUDA and CPU implementations, fake ones, and what torch.compile makes of the
package's functions. Imported by gemvjit.torch only, since it needs torch."""

import torch
from torch.nn import functional

from . import _launch, formats

_library = torch.library.Library("gemvjit", "DEF")
_SCHEMAS = {
    "nvfp4_gemv": "(Tensor x, Tensor weight, Tensor weight_scale, Tensor global_scale, bool silu_mul=False, "
                  "bool pdl=True) -> Tensor",
    "bf16_gemv": "(Tensor x, Tensor weight, bool silu_mul=False, bool pdl=True) -> Tensor",
    "dequantize_rows": "(Tensor weight, Tensor weight_scale) -> Tensor",
}


def _shape_of_gemv(x, weight, silu_mul):
    torch._check(x.dim() == 2 and weight.dim() == 2, lambda: "gemvjit: x and weight have 2 dimensions")
    torch._check(x.dtype == torch.bfloat16, lambda: f"gemvjit: x: expected bfloat16, found {x.dtype}")
    n = weight.shape[0]
    return x.new_empty((x.shape[0], n // 2 if silu_mul else n))


def _fake_nvfp4(x, weight, weight_scale, global_scale, silu_mul=False, pdl=True):
    torch._check(weight.shape[1] * 2 == x.shape[1], lambda: f"gemvjit: weight {list(weight.shape)} does not fit x "
                                                            f"{list(x.shape)}")
    return _shape_of_gemv(x, weight, silu_mul)


def _fake_bf16(x, weight, silu_mul=False, pdl=True):
    torch._check(weight.shape[1] == x.shape[1], lambda: f"gemvjit: weight {list(weight.shape)} does not fit x "
                                                        f"{list(x.shape)}")
    return _shape_of_gemv(x, weight, silu_mul)


def _fake_dequantize(weight, weight_scale):
    torch._check(weight.dim() == 2, lambda: "gemvjit: weight has 2 dimensions")
    return torch.empty((weight.shape[0], weight.shape[1] * 2), dtype=torch.bfloat16, device=weight.device)


def silu_mul_halves(y):
    """silu(gate) * up of the halves of a bfloat16 tensor's columns, in float32, rounded once."""
    gate, up = y.float().chunk(2, dim=-1)
    return (functional.silu(gate) * up).to(torch.bfloat16)


def _reference_gemv(x, weight, global_scale, silu_mul):
    y = x.double() @ weight.t()
    if global_scale is not None:
        y = y * global_scale.double()
    y = y.to(torch.bfloat16)
    return silu_mul_halves(y) if silu_mul else y


def _reference_rows(weight, weight_scale):
    n, half = weight.shape
    return formats.dequantize_nvfp4(weight, formats.unswizzle_blockscale(weight_scale, n, 2 * half))


def _cpu_nvfp4(x, weight, weight_scale, global_scale, silu_mul=False, pdl=True):
    return _reference_gemv(x, _reference_rows(weight, weight_scale), global_scale, silu_mul)


def _cpu_bf16(x, weight, silu_mul=False, pdl=True):
    return _reference_gemv(x, weight.double(), None, silu_mul)


def _cpu_dequantize(weight, weight_scale):
    return _reference_rows(weight, weight_scale).to(torch.bfloat16)


for _name, _fake, _cpu in (("nvfp4_gemv", _fake_nvfp4, _cpu_nvfp4), ("bf16_gemv", _fake_bf16, _cpu_bf16),
                           ("dequantize_rows", _fake_dequantize, _cpu_dequantize)):
    _library.define(_name + _SCHEMAS[_name], tags=(torch.Tag.pt2_compliant_tag,))
    _library.impl(_name, getattr(_launch, _name), "CUDA")
    _library.impl(_name, _cpu, "CPU")
    torch.library.register_fake(f"gemvjit::{_name}", _fake, lib=_library)

nvfp4_gemv = torch.ops.gemvjit.nvfp4_gemv.default
bf16_gemv = torch.ops.gemvjit.bf16_gemv.default
dequantize_rows = torch.ops.gemvjit.dequantize_rows.default


def _substitute_in_graphs():
    """What torch.compile traces as a call of the package's function becomes the operator."""

    @torch.compiler.substitute_in_graph(_launch.nvfp4_gemv)
    def _(x, weight, weight_scale, global_scale, silu_mul=False, pdl=True):
        return torch.ops.gemvjit.nvfp4_gemv(x, weight, weight_scale, global_scale, silu_mul, pdl)

    @torch.compiler.substitute_in_graph(_launch.bf16_gemv)
    def _(x, weight, silu_mul=False, pdl=True):
        return torch.ops.gemvjit.bf16_gemv(x, weight, silu_mul, pdl)

    @torch.compiler.substitute_in_graph(_launch.dequantize_rows)
    def _(weight, weight_scale):
        return torch.ops.gemvjit.dequantize_rows(weight, weight_scale)


if hasattr(torch.compiler, "substitute_in_graph"):  # older torch: a compiled function calls the operators itself
    _substitute_in_graphs()
