// Small problems in buffers that end exactly where their tensor ends, so that a memory checker sees an access past it;
// tools/device_check.sh runs these under compute-sanitizer. Without one they are ordinary tests.
#include <gtest/gtest.h>

#include "tests/support/gpu_fixture.h"

namespace gemvjit::test {
namespace {

class ExactBuffersTest : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    DeviceBuffer::use_guards(false);
  }
  void TearDown() override { DeviceBuffer::use_guards(true); }

  void check(const TileConfig* tile, const std::vector<ProblemShape>& shapes, Placement placement) {
    GpuContext context(tile);
    for (const ProblemShape& shape : shapes) context.add(shape, nt_of(shape.m), true);
    ASSERT_TRUE(context.warm());
    for (const ProblemShape& shape : shapes) {
      const HostProblem problem = random_problem(shape, 80, 0xFF);
      (void)run_checked(context, problem, problem.expected(), {true, placement}, "exact");
    }
  }

  static std::vector<ProblemShape> shapes() {
    std::vector<ProblemShape> all;
    for (const std::int64_t k : {16, 48, 464, 1040}) {
      all.push_back({GEMVJIT_NVFP4_GEMV, 1, 24, k, false});
      all.push_back({GEMVJIT_NVFP4_GEMV, 11, 136, k, false});
      all.push_back({GEMVJIT_NVFP4_GEMV, 29, 48, k, true});
    }
    for (const std::int64_t k : {8, 24, 136, 200, 1040}) {
      all.push_back({GEMVJIT_BF16_GEMV, 1, 24, k, false});
      all.push_back({GEMVJIT_BF16_GEMV, 11, 136, k, false});
      all.push_back({GEMVJIT_BF16_GEMV, 29, 48, k, true});
    }
    return all;
  }
};

TEST_F(ExactBuffersTest, BuiltInTiles) { check(nullptr, shapes(), {}); }

TEST_F(ExactBuffersTest, OddBases) { check(nullptr, shapes(), {6, 2}); }

TEST_F(ExactBuffersTest, ClusterAndRowTiles) {
  TileConfig tile;
  tile.warps_k = 4;
  tile.warps_n = 2;
  tile.cluster_k = 4;
  tile.row_tiles = 2;
  tile.stages = 3;
  check(&tile, shapes(), {});
}

TEST_F(ExactBuffersTest, LargestCluster) {
  TileConfig tile;
  tile.warps_k = 2;
  tile.cluster_k = 8;
  tile.stages = 1;
  tile.release = 1;
  check(&tile, shapes(), {});
}

// The chunks of staged x are whole turns: that of the second CTA begins half a turn in, so that it ends past K although
// K is a multiple of turn and share.
TEST_F(ExactBuffersTest, StagedXOfAClusterEndsWithK) {
  for (const unsigned variant : {0u, 1u}) {
    TileConfig tile;
    tile.variant = variant;
    tile.warps_k = 8;
    tile.cluster_k = 2;
    tile.stages = 1;
    tile.x_path = 3;
    check(&tile, {{GEMVJIT_NVFP4_GEMV, 11, 136, 1024, false}, {GEMVJIT_BF16_GEMV, 11, 136, 512, false}}, {});
  }
}

// B118: scales of exactly the documented size, where the rows end in the middle of a band of 128 and row groups of 64
// or 128 rows reach past it (12448), and where they fill the last band (12544). K / 16 is no multiple of 4.
TEST_F(ExactBuffersTest, RowsThatEndInsideABandOfScales) {
  TileConfig wide;
  wide.warps_k = 2, wide.warps_n = 4, wide.row_tiles = 2, wide.stages = 2;
  TileConfig async = wide;
  async.variant = 1;
  TileConfig rounds = wide;
  rounds.row_tiles = 1, rounds.rounds = 7;
  const TileConfig* const tiles[] = {nullptr, &wide, &async, &rounds};
  for (const TileConfig* tile : tiles) {
    check(tile, {{GEMVJIT_NVFP4_GEMV, 1, 12448, 288, false}, {GEMVJIT_NVFP4_GEMV, 11, 12544, 288, false}}, {});
  }
  for (const std::int64_t n : {12448, 12544}) {
    const HostProblem problem = random_problem({GEMVJIT_NVFP4_GEMV, 0, n, 288, false}, 82, 0xFF);
    EXPECT_EQ(problem.scales.size(), gemvjit_swizzled_scale_bytes(n, 288));
    EXPECT_EQ(dequantize(problem, true), reference::dequantize(problem.nvfp4_weight())) << n;
  }
}

TEST_F(ExactBuffersTest, Dequantize) {
  for (const std::int64_t k : {16, 48, 464}) {
    for (const std::int64_t n : {1, 24, 129}) {
      const HostProblem problem = random_problem({GEMVJIT_NVFP4_GEMV, 0, n, k, false}, 81, 0xFF);
      EXPECT_EQ(dequantize(problem, true), reference::dequantize(problem.nvfp4_weight())) << n << "x" << k;
    }
  }
}

}  // namespace
}  // namespace gemvjit::test
