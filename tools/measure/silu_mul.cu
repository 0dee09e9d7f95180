// out = silu(gate) * up of a product [m, 2 * columns] whose rows are [gate | up]: the second kernel of an engine that
// has no GEMV with a fused activation. One thread makes 8 outputs; columns is a multiple of 8.
#include "kernel_config.h"  // empty

__device__ inline float low_bf16(unsigned pair) { return __uint_as_float(pair << 16); }
__device__ inline float high_bf16(unsigned pair) { return __uint_as_float(pair & 0xFFFF0000u); }
__device__ inline float silu(float v) { return v / (1.0f + __expf(-v)); }

__device__ inline unsigned two_outputs(unsigned gate, unsigned up) {
  const float low = silu(low_bf16(gate)) * low_bf16(up), high = silu(high_bf16(gate)) * high_bf16(up);
  unsigned pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

extern "C" __global__ void __launch_bounds__(256)
    silu_mul(const uint4* product, uint4* out, unsigned rows, unsigned vectors_a_row) {
  const unsigned at = blockIdx.x * 256 + threadIdx.x;
  if (at >= rows * vectors_a_row) return;
  const unsigned row = at / vectors_a_row, column = at % vectors_a_row;
  const uint4 gate = product[row * 2 * vectors_a_row + column];
  const uint4 up = product[(row * 2 + 1) * vectors_a_row + column];
  uint4 result;
  result.x = two_outputs(gate.x, up.x);
  result.y = two_outputs(gate.y, up.y);
  result.z = two_outputs(gate.z, up.z);
  result.w = two_outputs(gate.w, up.w);
  out[at] = result;
}
