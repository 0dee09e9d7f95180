// From each warp's partial sums to out: over the warps of the CTA in shared memory, over the CTAs of the cluster in
// distributed shared memory, always in the same order, so that two runs give the same bits.
#pragma once

#include "kernel_config.h"
#include "kernels/device/ptx_cluster.cuh"
#include "kernels/device/ptx_memory.cuh"
#include "kernels/device/row_map.cuh"

namespace gemvjit {

inline constexpr int kPartialStride = gemv_partial_stride(kGeometry);  // floats from token to token
inline constexpr int kPartialFloats = gemv_partial_floats(kGeometry);  // floats from warp to warp
inline constexpr int kRowsPerCta = kTilesPerCta * kRowsPerTile;
inline constexpr int kOutRowsPerCta = kSilu ? kRowsPerCta / 2 : kRowsPerCta;
inline constexpr int kTotalAt = kWarpsK > 1 ? kWarpsK* kPartialFloats : 0;  // of a cluster's CTA

// partial: [warp over K][token][row of the CTA].
__device__ __forceinline__ void write_partials(float* partial, const float (&acc)[kRowTiles][kNt][4], int warp_k,
                                               int warp_n, int g, int t) {
  float* own = partial + warp_k * kPartialFloats + warp_n * kRowTiles * kRowsPerTile + 2 * t * kPartialStride + g;
#pragma unroll
  for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
    for (int n = 0; n < kNt; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int row = r * kRowsPerTile + (i >> 1) * kRowsPerHalf, token = n * kTokensPerTile + (i & 1);
        own[token * kPartialStride + row] = acc[r][n][i];
      }
    }
  }
}

__device__ __forceinline__ void add(F32x4& sum, const F32x4& more) {
#pragma unroll
  for (int i = 0; i < 4; ++i) sum.v[i] += more.v[i];
}
// Four rows of a token.
__device__ __forceinline__ F32x4 sum_over_warps(const float* partial, int row, int token) {
  const float* place = partial + token * kPartialStride + row;
  F32x4 sum = *reinterpret_cast<const F32x4*>(place);
#pragma unroll
  for (int w = 1; w < kWarpsK; ++w) add(sum, *reinterpret_cast<const F32x4*>(place + w * kPartialFloats));
  return sum;
}
__device__ __forceinline__ F32x4 sum_over_cluster(const float* cta_total, int row, int token) {
  const float* place = cta_total + token * kPartialStride + row;
  F32x4 totals[kClusterK];  // all on their way together
#pragma unroll
  for (int rank = 0; rank < kClusterK; ++rank) totals[rank] = ld_peer(place, rank);
#pragma unroll
  for (int rank = 1; rank < kClusterK; ++rank) add(totals[0], totals[rank]);
  return totals[0];
}

// silu(gate) * up in FP32 from operands rounded to BF16, rounded once. The exponential is taken of -|gate|, so that it
// neither overflows nor loses a large negative gate's small result.
__device__ __forceinline__ u16 silu_mul(float gate_sum, float up_sum) {
  const float gate = float_from_bf16(bf16_from_float(gate_sum)), up = float_from_bf16(bf16_from_float(up_sum));
  const float e = expf(-fabsf(gate));
  const float sigmoid = (gate < 0.0f ? e : 1.0f) / (1.0f + e);
  return bf16_from_float(gate * sigmoid * up);
}

// All threads of the CTA. `finish` takes a function that gives a weight row, and gives the function that turns an FP32 sum
// of that row, or of the next three, into the value before its rounding (the global scale).
// Writes out[token][column] for the tokens below m and the columns of this CTA. `partial` may be written again after
// the next barrier of the CTA, or with a cluster of the cluster.
template <typename Finish>
__device__ __forceinline__ void reduce_and_store(float* partial, u16* out, i64 first_tile, int m,
                                                 const Finish& finish) {
  const u32 rank = kClusterK > 1 ? cluster_rank() : 0;
  float* cta_total = partial + kTotalAt;
  if constexpr (kClusterK > 1) {
    if constexpr (kWarpsK > 1) {
      __syncthreads();
      constexpr int kGroups = kRowsPerCta / 4;
      for (int e = threadIdx.x; e < kGroups * m; e += kThreads) {
        const int row = e % kGroups * 4, token = e / kGroups;
        *reinterpret_cast<F32x4*>(cta_total + token * kPartialStride + row) = sum_over_warps(partial, row, token);
      }
    }
    cluster_barrier();
  } else {
    __syncthreads();
  }
  const auto total = [&](int row, int token, const auto& weight_row) {
    F32x4 sum = kClusterK > 1 ? sum_over_cluster(cta_total, row, token) : sum_over_warps(partial, row, token);
    const auto finish_value = finish(weight_row);
#pragma unroll
    for (int i = 0; i < 4; ++i) sum.v[i] = finish_value(sum.v[i]);
    return sum;
  };
  // A thread makes four neighbouring outputs of a token, neighbouring threads the next of the CTA's rows; the CTAs of a
  // cluster take turns of a CTA's width.
  constexpr int kGroups = kOutRowsPerCta / 4;
  for (int e = threadIdx.x + static_cast<int>(rank) * kThreads; e < kGroups * m; e += kThreads * kClusterK) {
    const int out_row = e % kGroups * 4, token = e / kGroups, g = out_row % kRowsPerHalf;
    const int tile = out_row / (kSilu ? kRowsPerHalf : kRowsPerTile), half = kSilu ? 0 : out_row / kRowsPerHalf % 2;
    if (!half_is_valid(first_tile + tile, half)) continue;
    u16 values[4];
    const int row = kSilu ? tile * kRowsPerTile + g : out_row;
    const F32x4 first = total(row, token, [&] { return row_of(first_tile + tile, half, g); });
    if constexpr (kSilu) {
      const F32x4 up = total(row + kRowsPerHalf, token, [&] { return row_of(first_tile + tile, 1, g); });
#pragma unroll
      for (int i = 0; i < 4; ++i) values[i] = silu_mul(first.v[i], up.v[i]);
    } else {
#pragma unroll
      for (int i = 0; i < 4; ++i) values[i] = bf16_from_float(first.v[i]);
    }
    store_4(out + token * kOutN + row_of(first_tile + tile, half, g), values);
  }
}

}  // namespace gemvjit
