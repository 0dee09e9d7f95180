// bf16_gemv: out[M,N] = x[M,K] @ W[N,K]^T, M <= 8 * kNt; with kSiluMul out[M,N/2] = silu(gate) * up over the halves.
//
//   x       BF16 [M, K], any row stride, 2-byte aligned
//   weight  BF16 [N, K], row-major, 16-byte aligned
//   out     BF16 [M, N], 2-byte aligned
//
// A warp owns kRowTiles tiles of 16 weight rows and works through its share of K in steps of 64, two parts of 32:
//
//     lane = 4 g + t          k of a step:  0   8   16  24  32  40  48  56  64
//     row g      (half 0)                   |t=0|t=1|t=2|t=3|t=0|t=1|t=2|t=3|   16 bytes a lane and part
//     row g + 8  (half 1)                   |t=0|t=1|t=2|t=3|t=0|t=1|t=2|t=3|
//
// The MMA's k order is free as long as weights and x agree: a lane feeds each of the 4 MMAs of a step with 4
// consecutive elements of its own, of weights and x alike, so nothing is permuted.
#include "kernel_config.h"
#include "kernels/device/bf16_weights.cuh"
#include "kernels/device/gemv.cuh"

namespace gemvjit {

struct NoScale {
  __device__ __forceinline__ auto prepare() const {
    return [](const auto&) { return [](float sum) { return sum; }; };
  }
};

// weight_scale and global_scale are not used: the GEMV families share one parameter list.
extern "C" __global__ void __launch_bounds__(kThreads, kMinCtas)
    bf16_gemv(const void* x, i64 x_row_stride, const void* weight, const void*, const float*, void* out, int m) {
  if constexpr (kRelease == 0) release_next_kernel();
  const Lane lane = make_lane();
  Bf16Weights weights(weight, lane.g, lane.t);
  run_gemv(weights, x, x_row_stride, out, m, lane, NoScale{});
  if constexpr (kRelease == 1) release_next_kernel();
}

}  // namespace gemvjit
