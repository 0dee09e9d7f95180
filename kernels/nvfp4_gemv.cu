// nvfp4_gemv: out[M,N] = (x[M,K] @ dequant(W)[N,K]^T) * global_scale, M <= 8 * kNt; with kSiluMul
// out[M,N/2] = silu(gate) * up over the two halves of N.
//
//   x             BF16 [M, K], any row stride, 2-byte aligned
//   weight        uint8 [N, K/2], E2M1 codes, even k in the low nibble, 16-byte aligned
//   weight_scale  E4M3, one for 16 k, 128x4 swizzle (kernels/shared/nvfp4_layout.h)
//   out           BF16 [M, N], 2-byte aligned
//
// A warp owns kRowTiles tiles of 16 weight rows and works through its share of K in steps of 128:
//
//     lane = 4 g + t          k of a step:  0        32       64       96      128
//     row g      (half 0)                   | t = 0  | t = 1  | t = 2  | t = 3  |   16 bytes of codes, 2 scales a lane
//     row g + 8  (half 1)                   | t = 0  | t = 1  | t = 2  | t = 3  |
//
// The MMA's k order is free as long as weights and x agree: a lane feeds each of the 8 MMAs of a step with 4 of its 32
// codes, in the pairs {i, i + 4} that the decoder yields, and x is permuted to match.
#include "kernel_config.h"
#include "kernels/device/gemv.cuh"
#include "kernels/device/nvfp4_weights.cuh"

namespace gemvjit {

struct GlobalScale {
  const float* address;
  // Read before the wait. The decoder's power of two first: that product is exact, so the global scale is applied to
  // the true sum.
  __device__ __forceinline__ auto prepare() const {
    return [scale = ld_global_scale(address)](float sum) { return sum * kDecodeFactor * scale; };
  }
};

extern "C" __global__ void __launch_bounds__(kThreads, kMinCtas)
    nvfp4_gemv(const void* x, i64 x_row_stride, const void* weight, const void* weight_scale, const float* global_scale,
               void* out, int m) {
  if constexpr (kRelease == 0) release_next_kernel();
  const Lane lane = make_lane();
  Nvfp4Weights weights(weight, weight_scale, lane.g, lane.t);
  run_gemv(weights, x, x_row_stride, out, m, lane, GlobalScale{global_scale});
  if constexpr (kRelease == 1) release_next_kernel();
}

}  // namespace gemvjit
