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
//
// Phases: the first kStages steps of weights are requested; wait for the previous kernel; main loop; reduce; store.
#include "kernel_config.h"
#include "kernels/device/nvfp4_decode.cuh"
#include "kernels/device/ptx_mma.cuh"
#include "kernels/device/ptx_pdl.cuh"
#include "kernels/device/reduce_store.cuh"
#include "kernels/device/row_map.cuh"
#include "kernels/device/x_fragment.cuh"
#include "kernels/shared/nvfp4_layout.h"

namespace gemvjit {

inline constexpr i64 kSteps = (kK + kNvfp4StepK - 1) / kNvfp4StepK;
inline constexpr bool kHasKTail = kK % kNvfp4StepK != 0;
inline constexpr bool kRowsAre16ByteAligned = kK % 32 == 0;  // else 8 bytes
inline constexpr i64 kRowBytes = kK / 2;
inline constexpr int kLaneK = 32;                            // k of a lane in a step
inline constexpr i64 kPaddedScaleColumns = padded_scale_columns(kK);
inline constexpr i64 kScaleStepBytes = kNvfp4StepK / kScaleBlockK / kScaleTileColumns * kScaleTileBytes;
static_assert(kK % kScaleBlockK == 0);

// A lane's weights of one step.
struct Stage {
  U32x4 codes[kRowTiles][2];  // [tile][half]
  u16 scales[kRowTiles][2];   // two scale bytes
};

// Where a lane's weights begin.
struct WeightPointers {
  const u8* codes[kRowTiles][2];
  const u8* scales[kRowTiles][2];
};

__device__ __forceinline__ WeightPointers make_weight_pointers(const void* weight, const void* weight_scale,
                                                               i64 warp_first_tile, int g, int t) {
  WeightPointers p;
#pragma unroll
  for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const i64 row = weight_row(warp_first_tile + r, half, g);
      p.codes[r][half] = static_cast<const u8*>(weight) + row * kRowBytes + t * (kLaneK / 2);
      p.scales[r][half] =
          static_cast<const u8*>(weight_scale) + swizzled_scale_offset(row, 2 * t, kPaddedScaleColumns);
    }
  }
  return p;
}

// The first of a lane's two scale blocks of a step is inside K; the second is.
__device__ __forceinline__ bool block_is_valid(i64 step, int t, int block) {
  return !kHasKTail || step * kNvfp4StepK + t * kLaneK + block * kScaleBlockK < kK;
}

// Past K codes and scales are zero, whatever memory holds there: x is zero too, but 0 * NaN is NaN.
__device__ __forceinline__ void load_stage(Stage& stage, const WeightPointers& p, i64 step, int t) {
  const bool first = block_is_valid(step, t, 0), second = block_is_valid(step, t, 1);
#pragma unroll
  for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const u8* codes = p.codes[r][half] + step * (kNvfp4StepK / 2);
      U32x4& to = stage.codes[r][half];
      if constexpr (kRowsAre16ByteAligned) {
        to = first ? ld_weight_16(codes) : U32x4{{0, 0, 0, 0}};
      } else {
        to = U32x4{{0, 0, 0, 0}};
        if (first) ld_weight_8(codes, to.v[0], to.v[1]);
        if (second) ld_weight_8(codes + 8, to.v[2], to.v[3]);
      }
      u16 scales = first ? ld_scale_2(p.scales[r][half] + step * kScaleStepBytes) : static_cast<u16>(0);
      if (kHasKTail && !second) scales &= 0xff;
      stage.scales[r][half] = scales;
    }
  }
}

// One step: 8 MMAs for each tile of rows and tile of tokens.
__device__ __forceinline__ void compute_step(float (&acc)[kRowTiles][kNt][4], u32 (&nan_seen)[kRowTiles][2],
                                             const Stage& stage, const XRows& x, i64 step, int t) {
  U32x4 x8[kNt][4];
  load_x(x8, x, [&](int piece) { return step * kNvfp4StepK + t * kLaneK + piece * 8; },
         [&](int piece) { return block_is_valid(step, t, piece / 2); });
  u32 scale[kRowTiles][2][2];  // [tile][half][block]
#pragma unroll
  for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      decode_scales(stage.scales[r][half], scale[r][half][0], scale[r][half][1], nan_seen[r][half]);
    }
  }
#pragma unroll
  for (int word = 0; word < 4; ++word) {  // 8 codes, 2 MMAs
    U32x4 x_pairs[kNt];
#pragma unroll
    for (int n = 0; n < kNt; ++n) {
      const u32(&v)[4] = x8[n][word].v;
      x_pairs[n] = U32x4{{prmt(v[0], v[2], 0x5410), prmt(v[0], v[2], 0x7632), prmt(v[1], v[3], 0x5410),
                          prmt(v[1], v[3], 0x7632)}};
    }
#pragma unroll
    for (int r = 0; r < kRowTiles; ++r) {
      u32 w[2][4];
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        decode_codes(stage.codes[r][half].v[word], w[half]);
#pragma unroll
        for (int i = 0; i < 4; ++i) w[half][i] = mul_bf16x2(w[half][i], scale[r][half][word / 2]);
      }
#pragma unroll
      for (int n = 0; n < kNt; ++n) {
        mma_m16n8k16_bf16(acc[r][n], w[0][0], w[1][0], w[0][1], w[1][1], x_pairs[n].v[0], x_pairs[n].v[1]);
        mma_m16n8k16_bf16(acc[r][n], w[0][2], w[1][2], w[0][3], w[1][3], x_pairs[n].v[2], x_pairs[n].v[3]);
      }
    }
  }
}

__device__ __forceinline__ void main_loop(float (&acc)[kRowTiles][kNt][4], u32 (&nan_seen)[kRowTiles][2],
                                          Stage (&ring)[kStages], const WeightPointers& weights, const XRows& x,
                                          i64 first_step, int t) {
  for (i64 base = first_step; base < kSteps; base += static_cast<i64>(kStages) * kSplits) {
#pragma unroll
    for (int s = 0; s < kStages; ++s) {
      const i64 step = base + static_cast<i64>(s) * kSplits;
      if (step < kSteps) {
        compute_step(acc, nan_seen, ring[s], x, step, t);
        const i64 next = step + static_cast<i64>(kStages) * kSplits;
        if (next < kSteps) load_stage(ring[s], weights, next, t);
      }
    }
  }
}

// A row with a NaN scale gives NaN for every token, and no other row does. Each lane of a quad saw a part of K.
__device__ __forceinline__ void apply_nan_rows(float (&acc)[kRowTiles][kNt][4], u32 (&nan_seen)[kRowTiles][2]) {
#pragma unroll
  for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      u32 seen = nan_seen[r][half];
      seen |= __shfl_xor_sync(0xffffffffu, seen, 1);
      seen |= __shfl_xor_sync(0xffffffffu, seen, 2);
      if (!has_nan_scale(seen)) continue;
#pragma unroll
      for (int n = 0; n < kNt; ++n) {
        acc[r][n][2 * half] = acc[r][n][2 * half + 1] = __uint_as_float(0x7fffffffu);
      }
    }
  }
}

extern "C" __global__ void __launch_bounds__(kThreads, 1)
    nvfp4_gemv(const void* x, i64 x_row_stride, const void* weight, const void* weight_scale,
               const float* global_scale, void* out, int m) {
  extern __shared__ float partial[];
  if constexpr (kRelease == 0) release_next_kernel();
  const int warp = threadIdx.x / kWarpSize, lane = threadIdx.x % kWarpSize;
  const int g = lane / 4, t = lane % 4;
  const int warp_k = warp % kWarpsK, warp_n = warp / kWarpsK;
  const u32 rank = kClusterK > 1 ? cluster_rank() : 0;
  const i64 first_tile = static_cast<i64>(blockIdx.x / kClusterK) * kTilesPerCta;
  const i64 first_step = static_cast<i64>(rank) * kWarpsK + warp_k;

  const WeightPointers weights = make_weight_pointers(weight, weight_scale, first_tile + warp_n * kRowTiles, g, t);
  Stage ring[kStages];
#pragma unroll
  for (int s = 0; s < kStages; ++s) {
    const i64 step = first_step + static_cast<i64>(s) * kSplits;
    if (step < kSteps) load_stage(ring[s], weights, step, t);
  }
  const float scale = ld_global_scale(global_scale);

  wait_for_previous_kernel();

  float acc[kRowTiles][kNt][4] = {};
  u32 nan_seen[kRowTiles][2] = {};
  main_loop(acc, nan_seen, ring, weights, make_x_rows(x, x_row_stride, m, g), first_step, t);
  apply_nan_rows(acc, nan_seen);

  write_partials(partial, acc, warp_k, warp_n, g, t);
  // The decoder's power of two first: that product is exact, so the global scale is applied to the true sum.
  reduce_and_store(partial, static_cast<u16*>(out), first_tile, m,
                   [scale](float sum) { return sum * kDecodeFactor * scale; });
  if constexpr (kRelease == 1) release_next_kernel();
}

}  // namespace gemvjit
