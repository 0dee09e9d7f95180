// The tensor-core instruction of a warpgroup; sm_90a alone. One PTX instruction a wrapper.
#pragma once

#include "kernels/device/types.cuh"

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

namespace gemvjit {

// acc += weights * tokens of a warpgroup. Each of its four warps brings 16 rows in registers, as for mma_m16n8k16_bf16;
// the tokens' operand lies in shared memory as 8 x 16-byte matrices [token][slots 8 h .. 8 h + 7], where its descriptor
// `tokens` says. Asynchronous: registers may be written again after wgmma_commit() and wgmma_wait_but().
__device__ __forceinline__ void wgmma_bf16(float (&acc)[1][4], u32 w0, u32 w1, u32 w2, u32 w3, u64 tokens) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0, %1, %2, %3}, {%4, %5, %6, %7}, %8, 1, 1, 1, 0;"
               : "+f"(acc[0][0]), "+f"(acc[0][1]), "+f"(acc[0][2]), "+f"(acc[0][3])
               : "r"(w0), "r"(w1), "r"(w2), "r"(w3), "l"(tokens));
}
__device__ __forceinline__ void wgmma_bf16(float (&acc)[2][4], u32 w0, u32 w1, u32 w2, u32 w3, u64 tokens) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, %5, %6, %7}, {%8, %9, %10, %11}, "
      "%12, 1, 1, 1, 0;"
      : "+f"(acc[0][0]), "+f"(acc[0][1]), "+f"(acc[0][2]), "+f"(acc[0][3]), "+f"(acc[1][0]), "+f"(acc[1][1]),
        "+f"(acc[1][2]), "+f"(acc[1][3])
      : "r"(w0), "r"(w1), "r"(w2), "r"(w3), "l"(tokens));
}
__device__ __forceinline__ void wgmma_bf16(float (&acc)[4][4], u32 w0, u32 w1, u32 w2, u32 w3, u64 tokens) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, "
      "%13, %14, %15}, {%16, %17, %18, %19}, %20, 1, 1, 1, 0;"
      : "+f"(acc[0][0]), "+f"(acc[0][1]), "+f"(acc[0][2]), "+f"(acc[0][3]), "+f"(acc[1][0]), "+f"(acc[1][1]),
        "+f"(acc[1][2]), "+f"(acc[1][3]), "+f"(acc[2][0]), "+f"(acc[2][1]), "+f"(acc[2][2]), "+f"(acc[2][3]),
        "+f"(acc[3][0]), "+f"(acc[3][1]), "+f"(acc[3][2]), "+f"(acc[3][3])
      : "r"(w0), "r"(w1), "r"(w2), "r"(w3), "l"(tokens));
}
// Register writes so far come before the wgmma that follow.
__device__ __forceinline__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int kPending>
__device__ __forceinline__ void wgmma_wait_but() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" : : "n"(kPending) : "memory");
}
// What this thread wrote to shared memory is seen by wgmma, after a barrier.
__device__ __forceinline__ void publish_to_wgmma() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

}  // namespace gemvjit

#endif
