// kernels/device/row_map.cuh on the host: every row of the weight belongs to exactly one lane of one row group, and the
// short cuts that the kernels take from row to row lead where row_of says.
#include <gtest/gtest.h>

#include <set>
#include <utility>
#include <vector>

#include "kernels/shared/gemv_geometry.h"
#include "kernels/shared/nvfp4_layout.h"

// The header's functions and constants become static members of a template over the constants of a key.
#define __device__
#define __forceinline__ inline
#ifdef __clang__  // which looks at the constraints of functions that nobody calls
#define asm(...)
#endif
unsigned __byte_perm(unsigned, unsigned, unsigned);
float __uint_as_float(unsigned);
#include "kernels/device/types.cuh"
#undef __device__
#undef __forceinline__
#undef asm

namespace gemvjit {
namespace {

template <i64 kN, int kFamily, int kSiluMul, int kWarpsN, int kRowTiles, int kRounds>
struct OnHost {
  static constexpr int kWarpsK = 1, kClusterK = 1, kNt = 1, kStages = 1, kXPath = 0, kVariant = 0;
#define __device__ static
#define __forceinline__
#define inline static
#define namespace struct
#define gemvjit Rows
#include "kernels/device/row_map.cuh"
#undef __device__
#undef __forceinline__
#undef inline
#undef namespace
#undef gemvjit
  ;
};

// Row groups of all CTAs in all rounds, as gemv_body.cuh deals them out.
template <typename Map>
std::vector<i64> first_tiles(i64 n, int rounds) {
  std::vector<i64> tiles;
  const i64 groups = gemv_row_groups(n, Map::kGeometry), ctas = gemv_ctas_over_n(n, Map::kGeometry);
  for (i64 cta = 0; cta < ctas; ++cta) {
    for (int round = 0; round < rounds; ++round) {
      if (cta + round * ctas < groups) tiles.push_back((cta + round * ctas) * Map::kTilesPerCta);
    }
  }
  return tiles;
}

template <i64 kN, int kFamily, int kSiluMul, int kWarpsN, int kRowTiles, int kRounds>
void check_bijection() {
  using Map = typename OnHost<kN, kFamily, kSiluMul, kWarpsN, kRowTiles, kRounds>::Rows;
  std::vector<int> seen(kN);
  for (const i64 first : first_tiles<Map>(kN, kRounds)) {
    for (i64 tile = first; tile < first + Map::kTilesPerCta; ++tile) {
      for (int half = 0; half < 2; ++half) {
        for (int g = 0; g < 8; ++g) {
          const i64 read = Map::weight_row(tile, half, g);
          ASSERT_GE(read, 0);
          ASSERT_LT(read, kN) << "a read past the weight";
          if (!Map::half_is_valid(tile, half)) continue;
          const i64 row = Map::row_of(tile, half, g);
          ASSERT_EQ(read, row);
          ASSERT_LT(row, kN) << "a sum stored past N";
          ++seen[static_cast<std::size_t>(row)];
          // With silu_mul a lane holds gate and up of the same column; validity is that of the tile.
          if (kSiluMul == 0) continue;
          ASSERT_EQ(row / (kN / 2), half);
          ASSERT_EQ(Map::row_of(tile, 1, g), Map::row_of(tile, 0, g) + kN / 2);
          ASSERT_EQ(Map::half_is_valid(tile, 0), Map::half_is_valid(tile, 1));
        }
      }
    }
  }
  for (i64 row = 0; row < kN; ++row) ASSERT_EQ(seen[static_cast<std::size_t>(row)], 1) << "row " << row << " of " << kN;
}

// What Weights::codes_address, scales_address and seek_next_round take for granted.
template <i64 kN, int kFamily, int kSiluMul, int kWarpsN, int kRowTiles, int kRounds>
void check_short_cuts() {
  using Map = typename OnHost<kN, kFamily, kSiluMul, kWarpsN, kRowTiles, kRounds>::Rows;
  const i64 columns = padded_scale_columns(2880);
  const auto scale = [&](i64 row) { return swizzled_scale_offset(row, 0, columns); };
  const i64 all_tiles = kN / 16;
  for (const i64 first : first_tiles<Map>(kN, kRounds)) {
    for (int warp = 0; warp < kWarpsN; ++warp) {
      const i64 tile = first + warp * kRowTiles;
      for (int g = 0; g < 8; ++g) {
        const i64 from = Map::weight_row(tile, 0, g);
        for (int r = 0; Map::kRowsAreRegular && r < kRowTiles; ++r) {
          for (int half = 0; half < 2; ++half) {
            const i64 row = Map::weight_row(tile + r, half, g), distance = Map::row_of(r, half, 0);
            ASSERT_EQ(row, from + distance);
            if (kFamily == kNvfp4Family) {
              ASSERT_EQ(scale(row), scale(from) + scale(distance));
            }
          }
        }
        if (Map::kRoundsAreRegular && kRounds > 1 && tile + Map::kRoundTiles < all_tiles) {
          const i64 next = Map::weight_row(tile + Map::kRoundTiles, 0, g),
                    distance = Map::row_of(Map::kRoundTiles, 0, 0);
          ASSERT_EQ(next, from + distance);
          if (kFamily == kNvfp4Family) {
            ASSERT_EQ(scale(next), scale(from) + scale(distance));
          }
        }
      }
    }
  }
}

// The 16 bytes of four scales' rows r, r + 32, r + 64, r + 96: a tile in bands touches whole sectors of 32 bytes.
template <i64 kN, int kSiluMul, int kWarpsN, int kRowTiles, int kRounds>
void check_whole_sectors() {
  using Map = typename OnHost<kN, kNvfp4Family, kSiluMul, kWarpsN, kRowTiles, kRounds>::Rows;
  if (!Map::kRowsAreInterleaved) return;
  for (i64 tile = 0; tile < kN / 16; ++tile) {
    std::set<i64> sectors;
    for (int half = 0; half < 2; ++half) {
      for (int g = 0; g < 8; ++g) sectors.insert(swizzled_scale_offset(Map::row_of(tile, half, g), 0, 4) / 32);
    }
    // 16 rows x 4 bytes are 2 sectors; with silu_mul each half has its own, half used.
    ASSERT_EQ(sectors.size(), kSiluMul ? 4u : 2u) << "tile " << tile;
  }
}

template <i64 kN, int kSiluMul, int kWarpsN, int kRowTiles, int kRounds>
void check_geometry() {
  ASSERT_NO_FATAL_FAILURE((check_bijection<kN, 1, kSiluMul, kWarpsN, kRowTiles, kRounds>())) << "NVFP4 " << kN;
  ASSERT_NO_FATAL_FAILURE((check_bijection<kN, 2, kSiluMul, kWarpsN, kRowTiles, kRounds>())) << "BF16 " << kN;
  ASSERT_NO_FATAL_FAILURE((check_short_cuts<kN, 1, kSiluMul, kWarpsN, kRowTiles, kRounds>())) << "NVFP4 " << kN;
  ASSERT_NO_FATAL_FAILURE((check_short_cuts<kN, 2, kSiluMul, kWarpsN, kRowTiles, kRounds>())) << "BF16 " << kN;
  ASSERT_NO_FATAL_FAILURE((check_whole_sectors<kN, kSiluMul, kWarpsN, kRowTiles, kRounds>())) << kN;
}

template <i64 kN, int kSiluMul>
void check_rows() {
  ASSERT_NO_FATAL_FAILURE((check_geometry<kN, kSiluMul, 1, 1, 1>()));
  ASSERT_NO_FATAL_FAILURE((check_geometry<kN, kSiluMul, 2, 1, 3>()));
  ASSERT_NO_FATAL_FAILURE((check_geometry<kN, kSiluMul, 3, 2, 2>()));
  ASSERT_NO_FATAL_FAILURE((check_geometry<kN, kSiluMul, 4, 2, 5>()));
  ASSERT_NO_FATAL_FAILURE((check_geometry<kN, kSiluMul, 1, 4, 7>()));
  ASSERT_NO_FATAL_FAILURE((check_geometry<kN, kSiluMul, 8, 4, 2>()));
  ASSERT_NO_FATAL_FAILURE((check_geometry<kN, kSiluMul, 2, 4, 63>()));
}

template <i64... kNs>
void check_plain() {
  (check_rows<kNs, 0>(), ...);
}
template <i64... kNs>
void check_silu() {
  (check_rows<kNs, 1>(), ...);
}

// With tails of half a tile and of several tiles, in bands (128 divides the rows) and plain, in whole row groups and
// not.
TEST(RowMap, EveryRowBelongsToOneLaneOnce) {
  check_plain<8, 16, 24, 128, 160, 184, 192, 320, 640, 1024, 1344, 1960, 2176, 8192, 32064>();
}
TEST(RowMap, EveryGateAndUpRowBelongsToOneLaneOnce) {
  check_silu<16, 48, 144, 256, 384, 640, 768, 2048, 2880, 3840, 8192>();
}

}  // namespace
}  // namespace gemvjit
