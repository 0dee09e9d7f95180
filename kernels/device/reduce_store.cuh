// From each warp's partial sums to out: over the warps of the CTA in shared memory, over the CTAs of the cluster in
// distributed shared memory, always in the same order, so that two runs give the same bits.
#pragma once

#include "kernel_config.h"
#include "kernels/device/ptx_cluster.cuh"
#include "kernels/device/row_map.cuh"

namespace gemvjit {

inline constexpr int kPartialStride = gemv_partial_stride(kGeometry);  // floats from row to row
inline constexpr int kPartialFloats = gemv_partial_floats(kGeometry);  // floats from warp to warp
inline constexpr int kRowsPerCta = kTilesPerCta * kRowsPerTile;
inline constexpr int kOutRowsPerCta = kSilu ? kRowsPerCta / 2 : kRowsPerCta;

// partial: [warps_k (+ 1 with a cluster: the CTA's own total)][row of the CTA][token].
__device__ __forceinline__ void write_partials(float* partial, const float (&acc)[kRowTiles][kNt][4], int warp_k,
                                               int warp_n, int g, int t) {
#pragma unroll
  for (int r = 0; r < kRowTiles; ++r) {
    float* tile = partial + warp_k * kPartialFloats + (warp_n * kRowTiles + r) * kRowsPerTile * kPartialStride;
#pragma unroll
    for (int n = 0; n < kNt; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int row = g + (i >> 1) * kRowsPerHalf, token = n * kTokensPerTile + 2 * t + (i & 1);
        tile[row * kPartialStride + token] = acc[r][n][i];
      }
    }
  }
}

__device__ __forceinline__ float sum_over_warps(const float* partial, int row, int token) {
  float sum = partial[row * kPartialStride + token];
#pragma unroll
  for (int w = 1; w < kWarpsK; ++w) sum += partial[w * kPartialFloats + row * kPartialStride + token];
  return sum;
}

__device__ __forceinline__ float sum_over_cluster(const float* cta_total, int row, int token) {
  float sum = ld_peer(cta_total + row * kPartialStride + token, 0);
#pragma unroll
  for (int rank = 1; rank < kClusterK; ++rank) sum += ld_peer(cta_total + row * kPartialStride + token, rank);
  return sum;
}

// silu(gate) * up in FP32 from operands rounded to BF16, rounded once. The exponential is taken of -|gate|, so that it
// neither overflows nor loses a large negative gate's small result.
__device__ __forceinline__ u16 silu_mul(float gate_sum, float up_sum) {
  const float gate = float_from_bf16(bf16_from_float(gate_sum)), up = float_from_bf16(bf16_from_float(up_sum));
  const float e = expf(-fabsf(gate));
  const float sigmoid = (gate < 0.0f ? e : 1.0f) / (1.0f + e);
  return bf16_from_float(gate * sigmoid * up);
}

// All threads of the CTA. `finish` turns an FP32 sum into the value before its rounding (the global scale).
// Writes out[token][column] for the tokens below m and the columns of this CTA. `partial` may be written again after
// the next barrier of the CTA, or with a cluster of the cluster.
template <typename Finish>
__device__ __forceinline__ void reduce_and_store(float* partial, u16* out, i64 first_tile, int m,
                                                 const Finish& finish) {
  __syncthreads();
  const u32 rank = kClusterK > 1 ? cluster_rank() : 0;
  float* cta_total = partial + kWarpsK * kPartialFloats;
  if constexpr (kClusterK > 1) {
    for (int e = threadIdx.x; e < kRowsPerCta * m; e += kThreads) {
      const int row = e % kRowsPerCta, token = e / kRowsPerCta;
      cta_total[row * kPartialStride + token] = sum_over_warps(partial, row, token);
    }
    cluster_barrier();
  }
  const auto total = [&](int row, int token) {
    return finish(kClusterK > 1 ? sum_over_cluster(cta_total, row, token) : sum_over_warps(partial, row, token));
  };
  // Neighbouring threads take neighbouring rows of the CTA; the CTAs of a cluster take turns of a CTA's width.
  for (int e = threadIdx.x + static_cast<int>(rank) * kThreads; e < kOutRowsPerCta * m; e += kThreads * kClusterK) {
    const int out_row = e % kOutRowsPerCta, token = e / kOutRowsPerCta;
    const int g = out_row % kRowsPerHalf;
    if constexpr (kSilu) {
      const int tile = out_row / kRowsPerHalf;
      if (!half_is_valid(first_tile + tile, 0)) continue;
      const int gate_row = tile * kRowsPerTile + g;
      out[token * kOutN + row_of(first_tile + tile, 0, g)] =
          silu_mul(total(gate_row, token), total(gate_row + kRowsPerHalf, token));
    } else {
      const int tile = out_row / kRowsPerTile, half = out_row / kRowsPerHalf % 2;
      if (!half_is_valid(first_tile + tile, half)) continue;
      out[token * kOutN + row_of(first_tile + tile, half, g)] = bf16_from_float(total(out_row, token));
    }
  }
}

}  // namespace gemvjit
