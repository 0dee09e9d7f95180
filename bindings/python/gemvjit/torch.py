"""gemvjit in torch: operators that torch.compile and CUDA graphs take, and a Linear module. Import it where torch is.

    torch.ops.gemvjit.nvfp4_gemv(x, weight, weight_scale, global_scale, silu_mul=False, pdl=True) -> Tensor
    torch.ops.gemvjit.bf16_gemv(x, weight, silu_mul=False, pdl=True) -> Tensor
    torch.ops.gemvjit.dequantize_rows(weight, weight_scale) -> Tensor

On CUDA tensors they are the functions of the package; on CPU tensors they compute a float64 reference, for tests of a
model. They have no gradients. Code that torch.compile traces may call the package's functions of the same names: they
become these operators once this module is imported.
"""

from ._linear import Linear, warmup
from ._operators import bf16_gemv, dequantize_rows, nvfp4_gemv

__all__ = ["nvfp4_gemv", "bf16_gemv", "dequantize_rows", "Linear", "warmup"]
