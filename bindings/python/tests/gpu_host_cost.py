"""Time of a call on the host, without a graph, beside torch's: of calls in a row that the device's queue can hold."""

import statistics
import time

import torch

import gemvjit
from gemvjit import _devices, _launch, _library

CALLS_IN_A_ROW, ROUNDS = 200, 31


def time_of(function):
    """Microseconds a call: the median round and the least."""
    for _ in range(50):
        function()
    times = []
    for _ in range(ROUNDS):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(CALLS_IN_A_ROW):
            function()
        times.append((time.perf_counter() - start) / CALLS_IN_A_ROW * 1e6)
    torch.cuda.synchronize()
    return {"median": round(statistics.median(times), 3), "least": round(min(times), 3)}


def calls(layer, plain, m):
    """name -> a call, for m tokens of an NVFP4 and a BF16 layer of one shape, both warmed."""
    n, k = layer.n, layer.k
    weight, scales, one = layer.arguments()
    x, transposed = layer.x(m), plain.weight.t()
    out = torch.empty((m, n), dtype=torch.bfloat16, device=x.device)
    context, stream = _devices.context(x.device.index), torch.cuda.current_stream().cuda_stream
    packed = _launch._pack_nvfp4(m, n, k, k, x.data_ptr(), weight.data_ptr(), scales.data_ptr(), one.data_ptr(),
                                 out.data_ptr(), 1, 1, 0, 1, 0, 0)
    launch = _library.load().gemvjit_nvfp4_gemv
    if launch(context, packed, stream):
        raise AssertionError(gemvjit.last_error())
    nvfp4_op, bf16_op = torch.ops.gemvjit.nvfp4_gemv.default, torch.ops.gemvjit.bf16_gemv.default
    return {
        "ctypes call alone": lambda: launch(context, packed, stream) or out,  # `out` has to live on
        "gemvjit.nvfp4_gemv": lambda: gemvjit.nvfp4_gemv(x, weight, scales, one),
        "gemvjit.bf16_gemv": lambda: gemvjit.bf16_gemv(x, plain.weight),
        "torch.ops.gemvjit.nvfp4_gemv": lambda: nvfp4_op(x, weight, scales, one),
        "torch.ops.gemvjit.bf16_gemv": lambda: bf16_op(x, plain.weight),
        "torch.mm": lambda: torch.mm(x, transposed),
        "functional.linear": lambda: torch.nn.functional.linear(x, plain.weight),
        "new_empty alone": lambda: x.new_empty((m, n)),
    }


def measure(layer, plain, m=1):
    """name -> time_of, printed as it comes. Shape and tokens stand beside."""
    measured = {"shape": {"m": m, "n": layer.n, "k": layer.k}}
    with torch.inference_mode():
        for name, function in calls(layer, plain, m).items():
            measured[name] = time_of(function)
            print(f"{name:34} {measured[name]['median']:7.2f} us a call (least {measured[name]['least']:.2f})",
                  flush=True)
    return measured
