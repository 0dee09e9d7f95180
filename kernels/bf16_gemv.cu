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
// The MMA's k order is free as long as weights and x agree: a lane feeds each of the 4 MMAs of a step with 4 consecutive
// elements of its own, of weights and x alike, so nothing is permuted.
//
// Phases: the first kStages steps of weights are requested; wait for the previous kernel; main loop; reduce; store.
#include "kernel_config.h"
#include "kernels/device/ptx_mma.cuh"
#include "kernels/device/ptx_pdl.cuh"
#include "kernels/device/reduce_store.cuh"
#include "kernels/device/row_map.cuh"
#include "kernels/device/x_fragment.cuh"

namespace gemvjit {

inline constexpr i64 kSteps = (kK + kBf16StepK - 1) / kBf16StepK;
inline constexpr bool kHasKTail = kK % kBf16StepK != 0;
inline constexpr int kParts = 2;
inline constexpr int kPartK = kBf16StepK / kParts;
inline constexpr int kLaneK = 8;  // k of a lane in a part
static_assert(kK % kLaneK == 0);

// A lane's weights of one step.
struct Stage {
  U32x4 weights[kRowTiles][2][kParts];  // [tile][half][part]
};

struct WeightPointers {
  const u16* row[kRowTiles][2];
};

__device__ __forceinline__ WeightPointers make_weight_pointers(const void* weight, i64 warp_first_tile, int g, int t) {
  WeightPointers p;
#pragma unroll
  for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      p.row[r][half] = static_cast<const u16*>(weight) + weight_row(warp_first_tile + r, half, g) * kK + t * kLaneK;
    }
  }
  return p;
}

__device__ __forceinline__ bool part_is_valid(i64 step, int part, int t) {
  return !kHasKTail || step * kBf16StepK + part * kPartK + t * kLaneK < kK;
}

// Past K the weight is zero, whatever memory holds there: x is zero too, but 0 * NaN is NaN.
__device__ __forceinline__ void load_stage(Stage& stage, const WeightPointers& p, i64 step, int t) {
#pragma unroll
  for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int part = 0; part < kParts; ++part) {
        const u16* from = p.row[r][half] + step * kBf16StepK + part * kPartK;
        stage.weights[r][half][part] = part_is_valid(step, part, t) ? ld_weight_16(from) : U32x4{{0, 0, 0, 0}};
      }
    }
  }
}

// One step: 4 MMAs for each tile of rows and tile of tokens.
__device__ __forceinline__ void compute_step(float (&acc)[kRowTiles][kNt][4], const Stage& stage, const XRows& x,
                                             i64 step, int t) {
  U32x4 x8[kNt][kParts];
  load_x(x8, x, [&](int part) { return step * kBf16StepK + part * kPartK + t * kLaneK; },
         [&](int part) { return part_is_valid(step, part, t); });
#pragma unroll
  for (int part = 0; part < kParts; ++part) {
#pragma unroll
    for (int n = 0; n < kNt; ++n) {
      const u32(&x_pairs)[4] = x8[n][part].v;
#pragma unroll
      for (int r = 0; r < kRowTiles; ++r) {
        const U32x4 &w0 = stage.weights[r][0][part], &w1 = stage.weights[r][1][part];
        mma_m16n8k16_bf16(acc[r][n], w0.v[0], w1.v[0], w0.v[1], w1.v[1], x_pairs[0], x_pairs[1]);
        mma_m16n8k16_bf16(acc[r][n], w0.v[2], w1.v[2], w0.v[3], w1.v[3], x_pairs[2], x_pairs[3]);
      }
    }
  }
}

__device__ __forceinline__ void main_loop(float (&acc)[kRowTiles][kNt][4], Stage (&ring)[kStages],
                                          const WeightPointers& weights, const XRows& x, i64 first_step, int t) {
  for (i64 base = first_step; base < kSteps; base += static_cast<i64>(kStages) * kSplits) {
#pragma unroll
    for (int s = 0; s < kStages; ++s) {
      const i64 step = base + static_cast<i64>(s) * kSplits;
      if (step < kSteps) {
        compute_step(acc, ring[s], x, step, t);
        const i64 next = step + static_cast<i64>(kStages) * kSplits;
        if (next < kSteps) load_stage(ring[s], weights, next, t);
      }
    }
  }
}

// weight_scale and global_scale are not used: the GEMV families share one parameter list.
extern "C" __global__ void __launch_bounds__(kThreads, 1)
    bf16_gemv(const void* x, i64 x_row_stride, const void* weight, const void*, const float*, void* out, int m) {
  extern __shared__ float partial[];
  if constexpr (kRelease == 0) release_next_kernel();
  const int warp = threadIdx.x / kWarpSize, lane = threadIdx.x % kWarpSize;
  const int g = lane / 4, t = lane % 4;
  const int warp_k = warp % kWarpsK, warp_n = warp / kWarpsK;
  const u32 rank = kClusterK > 1 ? cluster_rank() : 0;
  const i64 first_tile = static_cast<i64>(blockIdx.x / kClusterK) * kTilesPerCta;
  const i64 first_step = static_cast<i64>(rank) * kWarpsK + warp_k;

  const WeightPointers weights = make_weight_pointers(weight, first_tile + warp_n * kRowTiles, g, t);
  Stage ring[kStages];
#pragma unroll
  for (int s = 0; s < kStages; ++s) {
    const i64 step = first_step + static_cast<i64>(s) * kSplits;
    if (step < kSteps) load_stage(ring[s], weights, step, t);
  }

  wait_for_previous_kernel();

  float acc[kRowTiles][kNt][4] = {};
  main_loop(acc, ring, weights, make_x_rows(x, x_row_stride, m, g), first_step, t);

  write_partials(partial, acc, warp_k, warp_n, g, t);
  reduce_and_store(partial, static_cast<u16*>(out), first_tile, m, [](float sum) { return sum; });
  if constexpr (kRelease == 1) release_next_kernel();
}

}  // namespace gemvjit
