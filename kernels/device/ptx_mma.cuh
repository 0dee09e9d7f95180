// The tensor-core instruction. Fragments are named by role, since swap-AB turns A and B around: the 16-row operand
// holds weights (w_frag), the 8-column operand tokens (x_frag).
#pragma once

#include "kernels/device/types.cuh"

namespace gemvjit {

// Lane = 4 * g + t. With slots 0,1 for k = 2t, 2t+1 and slots 2,3 for k = 2t+8, 2t+9 of the 16:
//   w_frag[0] row g   slots 0,1     w_frag[1] row g+8 slots 0,1     w_frag[2] row g   slots 2,3     w_frag[3] row g+8 slots 2,3
//   x_frag[0] token g slots 0,1     x_frag[1] token g slots 2,3
//   acc[0] (row g, token 2t)  acc[1] (row g, token 2t+1)  acc[2] (row g+8, token 2t)  acc[3] (row g+8, token 2t+1)
// Which k a slot stands for is free as long as both operands agree; the kernels use that.
__device__ __forceinline__ void mma_m16n8k16_bf16(float (&acc)[4], u32 w0, u32 w1, u32 w2, u32 w3, u32 x0, u32 x1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(acc[0]), "+f"(acc[1]), "+f"(acc[2]), "+f"(acc[3])
      : "r"(w0), "r"(w1), "r"(w2), "r"(w3), "r"(x0), "r"(x1));
}

}  // namespace gemvjit
