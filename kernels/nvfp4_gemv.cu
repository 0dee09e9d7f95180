// nvfp4_gemv: out[M,N] = (x[M,K] @ dequant(W)[N,K]^T) * global_scale, M <= 8 * kNt; with kSiluMul
// out[M,N/2] = silu(gate) * up over the two halves of N.
//
//   x             BF16 [M, K], any row stride, 2-byte aligned
//   weight        uint8 [N, K/2], E2M1 codes, even k in the low nibble, 16-byte aligned
//   weight_scale  E4M3, one for 16 k, 128x4 swizzle (kernels/shared/nvfp4_layout.h)
//   global_scale  one float; with kScaleSegments that of the weight row's segment (kernels/shared/scale_segments.h)
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
#include "kernels/shared/scale_segments.h"

namespace gemvjit {

// The decoder's power of two first: that product is exact, so the global scale is applied to the true sum.
__device__ __forceinline__ float scaled(float sum, float global_scale) { return sum * kDecodeFactor * global_scale; }

// Of the whole weight: read before the wait.
struct GlobalScale {
  const float* address;
  __device__ __forceinline__ auto prepare() const {
    return [scale = ld_global_scale(address)](const auto&) {
      return [scale](float sum) { return scaled(sum, scale); };
    };
  }
};

// Of the row's segment: brought near before the wait, read once the sum is there.
struct SegmentScales {
  const ScaleSegments& segments;
  __device__ __forceinline__ auto prepare() const {
    if (threadIdx.x < kMaxScaleSegments) prefetch_l2(segments.scale[threadIdx.x]);
    return [this](const auto& weight_row) {
      const i64 row = weight_row();
      int i = 0;
      while (i < kMaxScaleSegments - 1 && row >= segments.row_end[i]) ++i;
      return [scale = ld_global_scale(segments.scale[i])](float sum) { return scaled(sum, scale); };
    };
  }
};

template <bool kSegmented>
struct ScaleParameter {
  using Value = const float*;
  using Finish = GlobalScale;
};
template <>
struct ScaleParameter<true> {
  using Value = ScaleSegments;
  using Finish = SegmentScales;
};
using Scale = ScaleParameter<kScaleSegments != 0>;

extern "C" __global__ void __launch_bounds__(kThreads, kMinCtas)
    nvfp4_gemv(const void* x, i64 x_row_stride, const void* weight, const void* weight_scale,
               const __grid_constant__ Scale::Value global_scale, void* out, int m) {
  if constexpr (kRelease == 0) release_next_kernel();
  const Lane lane = make_lane();
  Nvfp4Weights weights(weight, weight_scale, lane.g, lane.t);
  run_gemv(weights, x, x_row_stride, out, m, lane, Scale::Finish{global_scale});
  if constexpr (kRelease == 1) release_next_kernel();
}

}  // namespace gemvjit
