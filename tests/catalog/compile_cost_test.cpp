// The order in which kernels are compiled: a model of the cost, so only the order is held to anything.
#include "src/catalog/compile_cost.h"

#include <gtest/gtest.h>

namespace gemvjit {
namespace {

double cost(Family family, int nt, unsigned row_tiles) {
  KernelSpec spec;
  spec.family = family;
  spec.key.nt = nt;
  spec.tile.row_tiles = row_tiles;
  return compile_cost_ms(spec);
}

TEST(CompileCost, MoreTilesCostMore) {
  for (const Family family : {Family::nvfp4_gemv, Family::bf16_gemv}) {
    EXPECT_LT(cost(family, 1, 1), cost(family, 2, 1));
    EXPECT_LT(cost(family, 2, 2), cost(family, 4, 4));
  }
}

TEST(CompileCost, FamiliesDiffer) {
  EXPECT_LT(cost(Family::dequantize_rows, 0, 0), cost(Family::bf16_gemv, 1, 1));
  EXPECT_LT(cost(Family::bf16_gemv, 4, 4), cost(Family::nvfp4_gemv, 4, 4));
}

TEST(CompileCost, AKeyThatIsNotMadeCostsNothing) {
  KernelKey key = *KernelKey::parse("n64-k4096-nt1-f0000410208848021-sm_90a");
  EXPECT_GT(compile_cost_ms(key), 0);
  key.flags |= std::uint64_t{1} << 63;
  EXPECT_EQ(compile_cost_ms(key), 0);
}

}  // namespace
}  // namespace gemvjit
