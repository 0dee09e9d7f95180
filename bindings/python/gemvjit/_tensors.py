"""What the functions demand of tensors, checked before a call: whatever is wrong is an InvalidArgument that names the
argument, what was expected and what was found. Any object will do that has torch's dtype, shape, stride(), device and
data_ptr()."""

from ._errors import invalid

BF16 = ("bfloat16",)
BYTES = ("uint8", "float4_e2m1fn_x2")
SCALES = ("float8_e4m3fn", "uint8")
FLOAT = ("float32",)

CUDA_DEVICES = {}  # device -> ordinal, of those that cuda_index found to be CUDA devices
_remembered = {}   # a tuple of names as above -> the dtypes that had one


def remembered(names):
    """The set, growing, of dtypes that passed as one of `names`."""
    return _remembered.setdefault(names, set())


def dtype_name(dtype):
    return str(dtype).rpartition(".")[2]


def _check_dtype(function, name, value, names):
    if dtype_name(value.dtype) not in names:
        raise invalid(function, name, " or ".join(names), _described(value))
    remembered(names).add(value.dtype)


def _described(value):
    try:
        return f"{dtype_name(value.dtype)} {list(value.shape)} on {value.device}"
    except (AttributeError, TypeError):
        return type(value).__name__


def matrix(function, name, value, dtypes):
    """(rows, columns) of a 2-D tensor of one of `dtypes`."""
    try:
        _, shape = value.dtype, value.shape
    except AttributeError:
        raise invalid(function, name, "a tensor", type(value).__name__) from None
    _check_dtype(function, name, value, dtypes)
    if len(shape) != 2:
        raise invalid(function, name, "2 dimensions", _described(value))
    return shape


def cuda_index(function, name, value):
    """The ordinal of the tensor's device."""
    device = value.device
    if device.type != "cuda":
        raise invalid(function, name, "a CUDA tensor", _described(value))
    return CUDA_DEVICES.setdefault(device, device.index or 0)


def same_device(function, name, value, device):
    if value.device != device:
        raise invalid(function, name, f"a tensor on {device}, as the others", _described(value))


def contiguous(function, name, value):
    if not value.is_contiguous():
        raise invalid(function, name, "a contiguous tensor", f"strides {tuple(value.stride())} of {_described(value)}")


def row_stride(function, name, value, rows, columns):
    """Elements from a row to the next; the inner stride must be 1."""
    outer, inner = value.stride()
    if inner != 1:
        raise invalid(function, name, "an inner stride of 1", f"strides ({outer}, {inner}) of {_described(value)}")
    if rows < 2:
        return columns  # torch gives a row that stands alone any stride
    if outer < columns:
        raise invalid(function, name, f"a row stride of at least {columns}",
                      f"strides ({outer}, {inner}) of {_described(value)}")
    return outer


def scales(function, name, value, n, k):
    """The swizzled block scales of an [n, k] weight: only their number can be checked."""
    try:
        _, count = value.dtype, value.numel()
    except AttributeError:
        raise invalid(function, name, "a tensor", type(value).__name__) from None
    _check_dtype(function, name, value, SCALES)
    wanted = swizzled_bytes(n, k)
    if count != wanted:
        raise invalid(function, name, f"{wanted} scales in the 128x4 layout ([{-(-n // 128) * 128}, "
                                      f"{-(-(k // 16) // 4) * 4}]; see swizzle_blockscale)", _described(value))


def swizzled_bytes(n, k):
    return -(-n // 128) * 128 * (-(-(k // 16) // 4) * 4)


def scalar(function, name, value):
    try:
        _, count = value.dtype, value.numel()
    except AttributeError:
        raise invalid(function, name, "a tensor with one float32 on the device", repr(value)) from None
    _check_dtype(function, name, value, FLOAT)
    if count != 1:
        raise invalid(function, name, "one float32", _described(value))


def nvfp4_arguments(function, x, weight, weight_scale, global_scale):
    """(m, n, k, row stride of x, ordinal of the device)"""
    m, k = matrix(function, "x", x, BF16)
    n, half = matrix(function, "weight", weight, BYTES)
    if half * 2 != k:
        raise invalid(function, "weight", f"[N, {k // 2}], as x has K = {k}", list(weight.shape))
    index = cuda_index(function, "x", x)
    scales(function, "weight_scale", weight_scale, n, k)
    scalar(function, "global_scale", global_scale)
    for name, value in (("weight", weight), ("weight_scale", weight_scale), ("global_scale", global_scale)):
        same_device(function, name, value, x.device)
        contiguous(function, name, value)
    return m, n, k, row_stride(function, "x", x, m, k), index


def bf16_arguments(function, x, weight):
    """As nvfp4_arguments."""
    m, k = matrix(function, "x", x, BF16)
    n, columns = matrix(function, "weight", weight, BF16)
    if columns != k:
        raise invalid(function, "weight", f"[N, {k}], as x has K = {k}", list(weight.shape))
    index = cuda_index(function, "x", x)
    same_device(function, "weight", weight, x.device)
    contiguous(function, "weight", weight)
    return m, n, k, row_stride(function, "x", x, m, k), index


def dequantize_arguments(function, weight, weight_scale):
    """(n, k, ordinal of the device)"""
    n, half = matrix(function, "weight", weight, BYTES)
    index = cuda_index(function, "weight", weight)
    scales(function, "weight_scale", weight_scale, n, half * 2)
    same_device(function, "weight_scale", weight_scale, weight.device)
    contiguous(function, "weight", weight)
    contiguous(function, "weight_scale", weight_scale)
    return n, half * 2, index
