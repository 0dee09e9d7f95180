// Which weight row a lane works on. A tile is two halves of 8 rows: with silu_mul 8 gate rows and the 8 up rows that
// belong to them, so that one lane ends up with both sums; else 16 rows.
//
// Plain order: the 16 (8) rows are consecutive. Interleaved order, for NVFP4 where 128 divides the rows: a tile takes 4
// consecutive rows from each 32 of a band of 128 (4 from each of two 32 for 8 rows), because the scales of rows r, r +
// 32, r + 64 and r + 96 share 16 bytes: a tile's scales are then whole sectors (with silu_mul half sectors).
#pragma once

#include "kernel_config.h"
#include "kernels/device/types.cuh"
#include "kernels/shared/gemv_geometry.h"

namespace gemvjit {

inline constexpr GemvGeometry kGeometry{kWarpsK, kWarpsN, kClusterK, kRowTiles, kNt,
                                        kStages, kRounds, kXPath,    kVariant};
inline constexpr int kThreads = gemv_threads(kGeometry);
inline constexpr int kTilesPerCta = gemv_tiles_per_cta(kGeometry);
inline constexpr bool kSilu = kSiluMul != 0;
inline constexpr i64 kOutN = kSilu ? kN / 2 : kN;  // columns of out
static_assert(kN % kRowsPerHalf == 0 && (!kSilu || kN % (2 * kRowsPerHalf) == 0));

inline constexpr bool kRowsAreInterleaved = kFamily == kNvfp4Family && kOutN % 128 == 0;
// Whether some half tile of the last row group lies past N.
inline constexpr bool kHasRowTail = kN % (static_cast<i64>(kTilesPerCta) * kRowsPerTile) != 0;
// Whether a warp's rows lie at the same distances from each other for every warp, in the weight and in its scales.
inline constexpr bool kRowsAreRegular = !kHasRowTail && (kRowsAreInterleaved || !kSilu);

// From a CTA's row group to that of its next round, in tiles; whether that is the same distance in the weight and in
// its scales everywhere. NVFP4 scales repeat their pattern after 128 rows (with silu_mul of each half) and not before.
inline constexpr i64 kRoundTiles = gemv_ctas_over_n(kN, kGeometry) * kTilesPerCta;
inline constexpr i64 kTilesOf128Rows = kSilu ? 16 : 8;
inline constexpr bool kRoundsAreRegular =
    kRowsAreRegular && (kFamily != kNvfp4Family || kRoundTiles % kTilesOf128Rows == 0);

__device__ __forceinline__ bool half_is_valid(i64 tile, int half) {
  if constexpr (!kHasRowTail) return true;
  return kSilu ? tile * kRowsPerHalf < kN / 2 : tile * kRowsPerTile + half * kRowsPerHalf < kN;
}

// Row of lane group g (0..7) of a half tile that is valid.
__device__ constexpr i64 row_of(i64 tile, int half, int g) {
  if constexpr (!kRowsAreInterleaved) {
    return kSilu ? half * (kN / 2) + tile * kRowsPerHalf + g : tile * kRowsPerTile + half * kRowsPerHalf + g;
  } else if constexpr (kSilu) {
    return half * (kN / 2) + tile / 16 * 128 + tile / 8 % 2 * 64 + tile % 8 * 4 + g / 4 * 32 + g % 4;
  } else {
    return tile / 8 * 128 + half * 64 + tile % 8 * 4 + g / 4 * 32 + g % 4;
  }
}

// The same for any half: one past N reads the first tile's rows instead; its sums are never stored.
__device__ __forceinline__ i64 weight_row(i64 tile, int half, int g) {
  if (!half_is_valid(tile, half)) tile = 0, half = kSilu ? half : 0;
  return row_of(tile, half, g);
}

}  // namespace gemvjit
