// Grids and shared memory of tiles with rounds, clusters and staged x.
#include <gtest/gtest.h>

#include "kernels/shared/gemv_geometry.h"
#include "src/catalog/catalog.h"

namespace gemvjit {
namespace {

constexpr Arch kHopper{90, 'a'};

TileConfig tile(unsigned variant, unsigned warps_k, unsigned warps_n, unsigned cluster_k, unsigned row_tiles,
                unsigned stages, unsigned rounds, unsigned x_path) {
  TileConfig t;
  t.variant = variant, t.warps_k = warps_k, t.warps_n = warps_n, t.cluster_k = cluster_k;
  t.row_tiles = row_tiles, t.stages = stages, t.rounds = rounds, t.x_path = x_path;
  return t;
}

LaunchConfig config_of(Family family, std::int64_t n, std::int64_t k, int nt, const TileConfig& t) {
  const auto key = make_key({family, n, k, false, true}, nt, t, true, kHopper);
  EXPECT_TRUE(key) << key.status().message();
  return key ? launch_config(*describe_key(*key)) : LaunchConfig{};
}

TEST(LaunchConfig, RoundsAndClustersDivideTheGridRoundingUp) {
  for (const unsigned rounds : {1u, 2u, 3u, 5u, 63u}) {
    for (const unsigned cluster : {1u, 2u, 8u}) {
      for (const std::int64_t n : {8, 16, 184, 1968, 2880, 57344}) {
        const LaunchConfig config = config_of(Family::bf16_gemv, n, 2880, 1, tile(0, 4, 2, cluster, 1, 2, rounds, 0));
        const auto groups = static_cast<unsigned>((n + 31) / 32);  // 2 tiles of 16 rows
        EXPECT_EQ(config.grid_x, (groups + rounds - 1) / rounds * cluster) << n << " " << rounds;
        EXPECT_EQ(config.cluster_x, cluster);
      }
    }
  }
}

// The kernel's areas one after another: ring, partial sums, then x, a row for each token that there is.
TEST(LaunchConfig, StagedXTakesWhatItsTokensNeed) {
  struct Case {
    Family family;
    TileConfig tile;
    unsigned before_x;  // bytes, for nt 1; computed by hand
    unsigned token;
  };
  const Case cases[] = {
      // 4 warps x 8 tokens x 20 floats; a turn is 4 steps of 256 bytes, of which 16 KiB hold two for 8 tokens.
      {Family::nvfp4_gemv, tile(0, 4, 1, 1, 1, 1, 1, 1), 4 * 8 * 20 * 4, 2 * 4 * 256 + 16},
      // All 2880 k are 45 steps of 64, in 6 turns of 8: 6 x 8 x 128 bytes and 64.
      {Family::bf16_gemv, tile(0, 4, 1, 1, 1, 2, 1, 4), 4 * 8 * 20 * 4, 6 * 8 * 128 + 64},
      // Ring: 4 warps x 3 stages x 1280. Rounds: two buffers. 2880 k are 23 steps in 6 turns of 4.
      {Family::nvfp4_gemv, tile(1, 4, 1, 1, 1, 3, 2, 4), 4 * 3 * 1280 + 2 * 4 * 8 * 20 * 4, 6 * 4 * 256 + 16},
      // Cluster: a share of 23 BF16 steps in 3 turns of 8; one more buffer for the CTA's total.
      {Family::bf16_gemv, tile(0, 4, 1, 2, 1, 2, 1, 3), 5 * 8 * 20 * 4, 3 * 8 * 128 + 64},
  };
  for (const Case& one : cases) {
    const LaunchConfig config = config_of(one.family, 256, 2880, 1, one.tile);
    EXPECT_EQ(config.max_tokens, 8u);
    EXPECT_EQ(config.smem_token_bytes, one.token);
    for (unsigned m = 1; m <= 8; ++m) EXPECT_EQ(config.smem_bytes_for(m), one.before_x + m * one.token) << m;
    EXPECT_EQ(config.smem_bytes_for(8), config.smem_bytes);
  }
}

TEST(LaunchConfig, SharedMemoryGrowsByOneRowATokenForEveryNt) {
  for (const int nt : {1, 2, 4}) {
    const LaunchConfig config = config_of(Family::nvfp4_gemv, 2880, 2880, nt, tile(0, 2, 2, 1, 1, 1, 3, 3));
    ASSERT_EQ(config.max_tokens, static_cast<unsigned>(8 * nt));
    ASSERT_GT(config.smem_token_bytes, 0u);
    for (unsigned m = 2; m <= config.max_tokens; ++m) {
      EXPECT_EQ(config.smem_bytes_for(m) - config.smem_bytes_for(m - 1), config.smem_token_bytes);
    }
  }
}

// The shared-memory operand of wgmma has a place for every token, whatever M.
TEST(LaunchConfig, WgmmaTakesTheSharedMemoryOfAllTokens) {
  const LaunchConfig config = config_of(Family::nvfp4_gemv, 2880, 2880, 2, tile(2, 1, 4, 1, 1, 2, 1, 3));
  EXPECT_EQ(config.smem_token_bytes, 0u);
  EXPECT_EQ(config.smem_bytes, 4u * 2 * 1280 + 16 * 68 * 4 + 16 * 16 * 256);  // of 23 steps 64 KiB hold 16 turns
}

TEST(LaunchConfig, WithoutStagedXSharedMemoryIsTheSameForEveryM) {
  const LaunchConfig config = config_of(Family::nvfp4_gemv, 2880, 2880, 2, tile(1, 4, 1, 1, 1, 4, 1, 0));
  EXPECT_EQ(config.smem_token_bytes, 0u);
  for (unsigned m = 1; m <= 16; ++m) EXPECT_EQ(config.smem_bytes_for(m), config.smem_bytes);
}

}  // namespace
}  // namespace gemvjit
