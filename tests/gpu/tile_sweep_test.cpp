// Random problems over tile configurations: splits over warps and clusters, several rows and groups of rows, pipeline
// depths, and both moments of releasing dependents; for each both families, silu_mul, every nt, PDL on and off.
#include <gtest/gtest.h>

#include <ostream>

#include "tests/support/gpu_fixture.h"

namespace gemvjit {

// How a test's parameter is shown.
void PrintTo(const TileConfig& tile, std::ostream* out) {
  for (const TileField& field : tile_fields()) *out << field.name << "=" << tile.*field.member << " ";
}

}  // namespace gemvjit

namespace gemvjit::test {
namespace {

TileConfig tile(unsigned warps_k, unsigned warps_n, unsigned cluster_k, unsigned row_tiles, unsigned stages,
                unsigned release) {
  TileConfig config;
  config.warps_k = warps_k;
  config.warps_n = warps_n;
  config.cluster_k = cluster_k;
  config.row_tiles = row_tiles;
  config.stages = stages;
  config.release = release;
  return config;
}

// Neither N nor K fits any tile; the BF16 K is a multiple of 8 only.
ProblemShape sweep_shape(gemvjit_family family, bool silu_mul) {
  return {family, 32, silu_mul ? 144 : 184, family == GEMVJIT_NVFP4_GEMV ? 1520 : 1512, silu_mul};
}

class TileSweepTest : public GpuTest, public testing::WithParamInterface<TileConfig> {
 protected:
  // Compiles everything at once, on many threads; the contexts of one nt then find it in the cache.
  static void compile_all() {
    GpuContext context(&GetParam());
    for (const gemvjit_family family : {GEMVJIT_NVFP4_GEMV, GEMVJIT_BF16_GEMV}) {
      for (const bool silu_mul : {false, true}) {
        for (const bool pdl : {false, true}) context.add(sweep_shape(family, silu_mul), 0, pdl);
      }
    }
    ASSERT_TRUE(context.warm());
  }
};

TEST_P(TileSweepTest, FamiliesFlagsNtAndPdl) {
  ASSERT_NO_FATAL_FAILURE(compile_all());
  std::uint64_t seed = 1;
  for (const gemvjit_family family : {GEMVJIT_NVFP4_GEMV, GEMVJIT_BF16_GEMV}) {
    for (const bool silu_mul : {false, true}) {
      const ProblemShape shape = sweep_shape(family, silu_mul);
      const HostProblem full = random_problem(shape, seed++, 0xFF);
      const reference::Expected expected = full.expected();
      for (const int nt : {1, 2, 4}) {
        GpuContext context(&GetParam());
        context.add(shape, nt, true);
        context.add(shape, nt, false);
        ASSERT_TRUE(context.warm());
        for (const int m : {1, 8 * nt - 1, 8 * nt}) {
          const HostProblem problem = first_tokens(full, m);
          const reference::Expected part = first_tokens(expected, m);
          const std::string what = "nt " + std::to_string(nt);
          const auto plain = run_checked(context, problem, part, kPlain, what);
          EXPECT_EQ(plain, run_checked(context, problem, part, kPdl, what)) << what << ": PDL changes bits";
          EXPECT_EQ(plain, run_checked(context, problem, part, kPlain, what)) << what << ": two runs differ";
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Tiles, TileSweepTest,
                         testing::Values(tile(1, 1, 1, 1, 1, 0), tile(8, 1, 1, 1, 4, 0), tile(16, 1, 1, 1, 4, 0),
                                         tile(4, 4, 1, 1, 2, 1), tile(2, 8, 1, 1, 8, 0), tile(8, 1, 2, 1, 4, 0),
                                         tile(4, 2, 4, 1, 2, 1), tile(8, 1, 8, 1, 1, 0), tile(4, 2, 1, 2, 4, 0),
                                         tile(4, 1, 2, 4, 2, 0), tile(3, 5, 1, 1, 3, 1), tile(16, 1, 8, 2, 4, 1)),
                         [](const auto& p) { return tile_text(p.param); });

}  // namespace
}  // namespace gemvjit::test
