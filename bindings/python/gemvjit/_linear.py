"""A linear layer that takes the GEMV for the numbers of tokens for which it was measured to be the fastest choice."""

import torch
from torch.nn import functional

from . import _devices, _operators, _problems, formats
from ._errors import invalid

MAX_TOKENS = 32
ROW_MAJOR, SWIZZLED = "row_major", "128x4"


class Linear(torch.nn.Module):
    """y = x @ W^T (+ bias), for inference. W is bfloat16 [N, K], or NVFP4: uint8 [N, K/2] with block scales and a
    global scale. With silu_mul W holds gate and up rows, and y = silu(gate) * up has N/2 columns.

    Make it by from_bf16, from_nvfp4, from_linear or quantized; move it to its device; then call warmup(), which decides
    for each number of tokens up to 32, once, whether the GEMV serves it. All else (and everything before warmup) takes
    the other path: functional.linear, or dequantize_rows and a matrix product, where the global scale multiplies the
    product that is already rounded to bfloat16.

    x: bfloat16 [..., K].
    """

    def __init__(self, weight, weight_scale=None, global_scale=None, bias=None, silu_mul=False, pdl=True):
        super().__init__()
        if silu_mul and bias is not None:
            raise invalid("Linear", "bias", "None with silu_mul", "a tensor")
        self.register_buffer("weight", weight.detach().contiguous())
        self.register_buffer("weight_scale", weight_scale)
        self.register_buffer("global_scale", global_scale)
        self.register_buffer("bias", None if bias is None else bias.detach())
        self.has_bias = bias is not None
        self.is_nvfp4 = weight_scale is not None
        self.out_features = weight.shape[0]
        self.in_features = weight.shape[1] * (2 if self.is_nvfp4 else 1)
        self.silu_mul, self.pdl = bool(silu_mul), bool(pdl)
        self._gemv_serves = (False,) * (MAX_TOKENS + 1)  # by the number of tokens; warmup fills it

    @classmethod
    def from_bf16(cls, weight, bias=None, silu_mul=False, pdl=True):
        if weight.dtype != torch.bfloat16 or weight.dim() != 2:
            raise invalid("Linear.from_bf16", "weight", "bfloat16 [N, K]", f"{weight.dtype} {list(weight.shape)}")
        return cls(weight, bias=bias, silu_mul=silu_mul, pdl=pdl)

    @classmethod
    def from_nvfp4(cls, weight, weight_scale, global_scale, scale_layout, bias=None, silu_mul=False, pdl=True):
        """scale_layout: "row_major", as checkpoints have them, or "128x4", as swizzle_blockscale gives them: the bytes
        do not tell. global_scale: a multiplier (ModelOpt's weight_scale_2), a number or a tensor with one."""
        if weight.dtype != torch.uint8 or weight.dim() != 2:
            raise invalid("Linear.from_nvfp4", "weight", "uint8 [N, K/2]", f"{weight.dtype} {list(weight.shape)}")
        if scale_layout not in (ROW_MAJOR, SWIZZLED):
            raise invalid("Linear.from_nvfp4", "scale_layout", f"'{ROW_MAJOR}' or '{SWIZZLED}'", repr(scale_layout))
        n, groups = weight.shape[0], weight.shape[1] // 8
        wanted = [n, groups] if scale_layout == ROW_MAJOR else [-(-n // 128) * 128, -(-groups // 4) * 4]
        if list(weight_scale.shape) != wanted or weight_scale.element_size() != 1:
            raise invalid("Linear.from_nvfp4", "weight_scale", f"float8_e4m3fn or uint8 {wanted}",
                          f"{weight_scale.dtype} {list(weight_scale.shape)}")
        if scale_layout == ROW_MAJOR:
            weight_scale = formats.swizzle_blockscale(weight_scale)
        global_scale = torch.as_tensor(global_scale, dtype=torch.float32, device=weight.device).reshape(1)
        # As bytes: Module.to(dtype) converts whatever torch counts as floating point, float8 too.
        weight_scale = weight_scale.detach().contiguous().view(torch.uint8)
        return cls(weight, weight_scale, global_scale, bias, silu_mul, pdl)

    @classmethod
    def quantized(cls, weight, bias=None, silu_mul=False, pdl=True):
        """NVFP4 of a float weight [N, K], by quantize_nvfp4."""
        return cls.from_nvfp4(*formats.quantize_nvfp4(weight), ROW_MAJOR, bias, silu_mul, pdl)

    @classmethod
    def from_linear(cls, linear, quantize=False, pdl=True):
        """In place of a torch.nn.Linear, with its weight in bfloat16 or quantized."""
        if quantize:
            return cls.quantized(linear.weight, linear.bias, pdl=pdl)
        return cls.from_bf16(linear.weight.detach().to(torch.bfloat16), linear.bias, pdl=pdl)

    def _apply(self, fn, recurse=True):
        """Module.to, cuda, half, ..: the global scale stays float32; on another device warmup has to be called
        again."""
        device, global_scale = self.weight.device, self.global_scale
        super()._apply(fn, recurse)
        if global_scale is not None and self.global_scale.dtype != torch.float32:
            self.global_scale = global_scale.to(self.global_scale.device)
        if self.weight.device != device:
            self._gemv_serves = (False,) * (MAX_TOKENS + 1)
        return self

    def forward(self, x):
        rows = x.reshape(-1, self.in_features)
        m = rows.shape[0]
        if m <= MAX_TOKENS and self._gemv_serves[m]:
            y = self._gemv(rows)
        else:
            y = self._product(rows)
        if self.has_bias:
            y = y + self.bias
        return y.reshape(*x.shape[:-1], y.shape[-1])

    def _gemv(self, x):
        buffers = self._buffers  # Module's own look-up of an attribute costs several times as much
        if self.is_nvfp4:
            return _operators.nvfp4_gemv(x, buffers["weight"], buffers["weight_scale"], buffers["global_scale"],
                                         self.silu_mul, self.pdl)
        return _operators.bf16_gemv(x, buffers["weight"], self.silu_mul, self.pdl)

    def _product(self, x):
        if not self.is_nvfp4:
            y = functional.linear(x, self.weight)
        else:
            y = functional.linear(x, _operators.dequantize_rows(self.weight, self.weight_scale))
            y = (y.float() * self.global_scale).to(torch.bfloat16)
        return _operators.silu_mul_halves(y) if self.silu_mul else y

    def choices(self, allow_untuned=False, device=None, arch=None):
        """pick_nt for 0, 1, .. 32 tokens."""
        return (None, *(_problems.pick_nt(self.out_features, self.in_features, m, self.silu_mul, not self.is_nvfp4,
                                          allow_untuned=allow_untuned, device=device, arch=arch)
                        for m in range(1, MAX_TOKENS + 1)))

    def warmup(self, allow_untuned=False):
        """Makes ready what forward needs on the module's device, and decides for each m. Returns the Kernels."""
        return warmup(self, allow_untuned)

    def extra_repr(self):
        kind = "nvfp4" if self.is_nvfp4 else "bf16"
        served = [m for m, serves in enumerate(self._gemv_serves) if serves]
        span = f"GEMV for {len(served)} numbers of tokens up to {served[-1]}" if served else "no GEMV"
        return f"{self.in_features}, {self.out_features}, {kind}, silu_mul={self.silu_mul}, {span}"


def warmup(module, allow_untuned=False):
    """Makes ready every gemvjit Linear below `module`, those of one device by one call, so that their kernels are
    compiled side by side. Returns the Kernels. A CUDA graph or a torch.compile of the module must come after it."""
    layers, choices, wanted = [m for m in module.modules() if isinstance(m, Linear)], {}, {}
    for layer in layers:
        if layer.weight.device.type != "cuda":
            raise invalid("warmup", "module", "its Linear layers on a CUDA device", str(layer.weight.device))
        device, shape = layer.weight.device.index or 0, (layer.out_features, layer.in_features)
        chosen = layer.choices(allow_untuned, device)
        choices[layer] = chosen
        of_device = wanted.setdefault(device, {})
        for nt in sorted(set(chosen) - {None}):
            of_device[(*shape, layer.silu_mul, layer.pdl, layer.is_nvfp4, nt)] = _problems.problem(
                *shape, layer.silu_mul, layer.pdl, not layer.is_nvfp4, nt, allow_untuned)
        if layer.is_nvfp4:
            of_device[shape] = _problems.dequantize_problem(*shape)
    kernels = []
    for device, problems in wanted.items():
        kernels += _problems.warm(list(problems.values()), _devices.context(device))
    for layer, chosen in choices.items():
        layer._gemv_serves = tuple(nt is not None for nt in chosen)
    return kernels
