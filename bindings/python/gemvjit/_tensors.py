"""What the functions demand of tensors, checked before a call: whatever is wrong is an InvalidArgument that names the
argument, what was expected and what was found. Any object will do that has torch's dtype, shape, stride(), device and
data_ptr()."""

from ._errors import invalid  # noqa: F401  (also for those who check)

BF16 = ("bfloat16",)
BYTES = ("uint8", "float4_e2m1fn_x2")
SCALES = ("float8_e4m3fn", "uint8")
FLOAT = ("float32",)

_names = {}  # a dtype -> its name without "torch."


def dtype_name(dtype):
    name = _names.get(dtype)
    if name is None:
        name = _names[dtype] = str(dtype).rpartition(".")[2]
    return name


def _described(value):
    try:
        return f"{dtype_name(value.dtype)} {list(value.shape)} on {value.device}"
    except (AttributeError, TypeError):
        return type(value).__name__


def matrix(function, name, value, dtypes):
    """(rows, columns) of a 2-D tensor of one of `dtypes`."""
    try:
        found, shape = value.dtype, value.shape
    except AttributeError:
        raise invalid(function, name, "a tensor", type(value).__name__) from None
    if dtype_name(found) not in dtypes:
        raise invalid(function, name, " or ".join(dtypes), _described(value))
    if len(shape) != 2:
        raise invalid(function, name, "2 dimensions", _described(value))
    return shape


def cuda_index(function, name, value):
    """The ordinal of the tensor's device."""
    device = value.device
    if device.type != "cuda":
        raise invalid(function, name, "a CUDA tensor", _described(value))
    return device.index or 0


def same_device(function, name, value, device):
    if value.device != device:
        raise invalid(function, name, f"a tensor on {device}, as x", _described(value))


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
        found, count = value.dtype, value.numel()
    except AttributeError:
        raise invalid(function, name, "a tensor", type(value).__name__) from None
    if dtype_name(found) not in SCALES:
        raise invalid(function, name, " or ".join(SCALES), _described(value))
    wanted = swizzled_bytes(n, k)
    if count != wanted:
        raise invalid(function, name, f"{wanted} scales in the 128x4 layout ([{-(-n // 128) * 128}, "
                                      f"{-(-(k // 16) // 4) * 4}]; see swizzle_blockscale)", _described(value))


def swizzled_bytes(n, k):
    return -(-n // 128) * 128 * (-(-(k // 16) // 4) * 4)


def scalar(function, name, value):
    try:
        found, count = value.dtype, value.numel()
    except AttributeError:
        raise invalid(function, name, "a tensor with one float32 on the device", repr(value)) from None
    if dtype_name(found) not in FLOAT or count != 1:
        raise invalid(function, name, "one float32", _described(value))
