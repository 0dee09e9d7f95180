// B109, B110. The driver wants a grid in CTAs that is a multiple of the cluster; callers never see either. Over random
// shapes and tiles: every CTA of the grid is played as the kernel deals out its work, and each row of the weight and
// each share of K belongs to one CTA just once.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "kernels/shared/gemv_geometry.h"
#include "src/catalog/catalog.h"

namespace gemvjit {
namespace {

struct Drawn {
  KernelSpec spec;
  GemvGeometry geometry;
  std::string text;
};

class Draw {
 public:
  // A problem and a tile that make a key; `cluster` 0 draws it as well.
  Drawn next(unsigned cluster) {
    for (;;) {
      const Family family = one_of({1, 2}) == 1 ? Family::nvfp4_gemv : Family::bf16_gemv;
      const bool silu_mul = one_of({0, 0, 1}) == 1;
      const std::int64_t n = (silu_mul ? 16 : 8) * std::uniform_int_distribution<std::int64_t>(1, 700)(engine_);
      const std::int64_t k = 16 * std::uniform_int_distribution<std::int64_t>(1, 500)(engine_);
      const int nt = static_cast<int>(one_of({1, 2, 4}));
      TileConfig tile;
      tile.variant = one_of({0, 0, 1});
      tile.warps_k = one_of({1, 2, 3, 4, 8});
      tile.warps_n = one_of({1, 1, 2, 3, 4});
      tile.cluster_k = cluster != 0 ? cluster : one_of({1, 2, 4, 8});
      tile.row_tiles = one_of({1, 1, 2, 4});
      tile.stages = one_of({1, 2});
      tile.rounds = one_of({1, 1, 2, 3, 7, 63});
      const auto key = make_key({family, n, k, silu_mul, true}, nt, tile, true, {90, 'a'});
      if (!key) continue;  // too many accumulators or too much shared memory
      return {*describe_key(*key),
              {static_cast<int>(tile.warps_k), static_cast<int>(tile.warps_n), static_cast<int>(tile.cluster_k),
               static_cast<int>(tile.row_tiles), nt, static_cast<int>(tile.stages), static_cast<int>(tile.rounds), 0,
               static_cast<int>(tile.variant)},
              key->text()};
    }
  }

 private:
  unsigned one_of(std::initializer_list<unsigned> values) {
    return values.begin()[std::uniform_int_distribution<std::size_t>(0, values.size() - 1)(engine_)];
  }
  std::mt19937_64 engine_{109};
};

// What is wrong with a launch; "" if nothing. CTA b is rank b % cluster of its cluster, and works on the row groups c,
// c + C, c + 2 C, ... of cluster c = b / cluster, where C is what the kernel was compiled with.
std::string fault_of(const LaunchConfig& config, const Drawn& drawn) {
  const GemvGeometry& g = drawn.geometry;
  if (config.cluster_x != static_cast<unsigned>(g.cluster_k)) return "another cluster";
  if (config.grid_x == 0 || config.grid_x % config.cluster_x != 0) return "the grid is no multiple of the cluster";
  const std::int64_t n = drawn.spec.key.n;
  const std::int64_t group_rows = std::int64_t{gemv_tiles_per_cta(g)} * kRowsPerTile;
  const std::int64_t groups = (n + group_rows - 1) / group_rows, stride = gemv_ctas_over_n(n, g);
  std::vector<int> seen(static_cast<std::size_t>(n * g.cluster_k));  // by row and rank
  for (unsigned cta = 0; cta < config.grid_x; ++cta) {
    const std::int64_t cluster = cta / config.cluster_x, rank = cta % config.cluster_x;
    if (cluster >= groups) return "a CTA without a row";
    for (int round = 0; round < g.rounds && cluster + round * stride < groups; ++round) {
      const std::int64_t first = (cluster + round * stride) * group_rows;
      for (std::int64_t row = first; row < std::min(first + group_rows, n); ++row) {
        ++seen[static_cast<std::size_t>(row * g.cluster_k + rank)];
      }
    }
  }
  if (std::count(seen.begin(), seen.end(), 0) != 0) return "a row without a CTA";
  if (std::count(seen.begin(), seen.end(), 1) != static_cast<std::ptrdiff_t>(seen.size())) return "a row twice";
  return "";
}

TEST(LaunchGrid, CoversEveryRowOnceInWholeClusters) {
  Draw draw;
  int in_clusters = 0, in_rounds = 0;
  for (int i = 0; i < 4000; ++i) {
    const Drawn drawn = draw.next(0);
    const LaunchConfig config = launch_config(drawn.spec);
    ASSERT_EQ(fault_of(config, drawn), "") << drawn.text;
    // The grid is the same for every M: tokens are columns of the tiles, and max_tokens covers what nt is for.
    ASSERT_EQ(config.max_tokens, static_cast<unsigned>(drawn.geometry.nt * kTokensPerTile));
    for (std::int64_t m = 1; m <= config.max_tokens; ++m) ASSERT_LE(nt_for_m(m), drawn.geometry.nt);
    in_clusters += config.cluster_x > 1;
    in_rounds += drawn.geometry.rounds > 1;
  }
  EXPECT_GT(in_clusters, 1000);
  EXPECT_GT(in_rounds, 1000);
}

// Negative control: each way to mistake clusters for CTAs is seen.
TEST(LaunchGrid, ConfusedUnitsWouldBeSeen) {
  Draw draw;
  for (const unsigned cluster : {2u, 4u, 8u}) {
    for (int i = 0; i < 50; ++i) {
      const Drawn drawn = draw.next(cluster);
      const LaunchConfig right = launch_config(drawn.spec);
      for (const unsigned grid : {right.grid_x / cluster, right.grid_x * cluster, right.grid_x + 1, right.grid_x - 1,
                                  right.grid_x + cluster, right.grid_x - cluster}) {
        LaunchConfig wrong = right;
        wrong.grid_x = grid;
        EXPECT_NE(fault_of(wrong, drawn), "") << drawn.text << ", grid " << grid << " instead of " << right.grid_x;
      }
      LaunchConfig none = right;
      none.cluster_x = 1;
      EXPECT_NE(fault_of(none, drawn), "");
    }
  }
}

}  // namespace
}  // namespace gemvjit
