// Which weight row a lane works on. A tile is two halves of 8 rows: 16 consecutive rows, or with silu_mul 8 gate rows
// and the 8 up rows that belong to them, so that one lane ends up with both sums.
#pragma once

#include "kernel_config.h"
#include "kernels/device/types.cuh"
#include "kernels/shared/gemv_geometry.h"

namespace gemvjit {

inline constexpr GemvGeometry kGeometry{kWarpsK, kWarpsN, kClusterK, kRowTiles, kNt};
inline constexpr int kThreads = gemv_threads(kGeometry);
inline constexpr int kTilesPerCta = gemv_tiles_per_cta(kGeometry);
inline constexpr int kSplits = kWarpsK * kClusterK;
inline constexpr bool kSilu = kSiluMul != 0;
inline constexpr i64 kOutN = kSilu ? kN / 2 : kN;  // columns of out
static_assert(kN % kRowsPerHalf == 0 && (!kSilu || kN % (2 * kRowsPerHalf) == 0));
static_assert(gemv_smem_bytes(kGeometry) <= kSmemBytes, "host and kernel disagree about shared memory");

// Whether some half tile of the last CTA lies past N.
inline constexpr bool kHasRowTail = kN % (static_cast<i64>(kTilesPerCta) * kRowsPerTile) != 0;

__device__ __forceinline__ bool half_is_valid(i64 tile, int half) {
  if constexpr (!kHasRowTail) return true;
  return kSilu ? tile * kRowsPerHalf < kN / 2 : tile * kRowsPerTile + half * kRowsPerHalf < kN;
}

// Row of lane group g (0..7) of a half tile. A half past N reads the first rows instead; its sums are never stored.
__device__ __forceinline__ i64 weight_row(i64 tile, int half, int g) {
  if (!half_is_valid(tile, half)) tile = 0, half = kSilu ? half : 0;
  return kSilu ? half * (kN / 2) + tile * kRowsPerHalf + g : tile * kRowsPerTile + half * kRowsPerHalf + g;
}

}  // namespace gemvjit
