// The tuner's candidates: the rules that drop configurations, the model's order, the choice of different kinds.
#include "tools/gemvjit_tune/candidates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "kernels/shared/gemv_geometry.h"
#include "tools/gemvjit_tune/case_plan.h"

namespace gemvjit::tools {
namespace {

const Machine kH200 = {{90, 'a'}, 132};
const std::vector<TuneCase> kCases = {
    {Family::nvfp4_gemv, 1024, 8192, false, 1}, {Family::nvfp4_gemv, 57344, 8192, false, 4},
    {Family::bf16_gemv, 4096, 4096, false, 2},  {Family::bf16_gemv, 28672, 4096, true, 1},
    {Family::nvfp4_gemv, 8, 64, false, 1},      {Family::bf16_gemv, 200, 40, false, 4}};

std::vector<Configuration> seeds_of(const TuneCase& c, bool quick, std::size_t count) {
  return make_seeds(c, kH200, quick, count, **SampleBook::open(""), {});
}

TEST(Candidates, EveryShapeHasSomeThatAreValidAndDifferent) {
  for (const TuneCase& c : kCases) {
    const auto picked = pick_diverse(c, kH200, enumerate_candidates(c, kH200), 40);
    EXPECT_FALSE(picked.empty()) << c.text();
    std::set<std::string> texts;
    for (const Configuration& one : picked) {
      EXPECT_TRUE(is_valid(c, kH200, one)) << one.text();
      EXPECT_TRUE(texts.insert(one.text()).second) << one.text();
    }
  }
}

TEST(Candidates, AreRankedByTheModel) {
  const auto ranked = enumerate_candidates(kCases[2], kH200);
  ASSERT_GT(ranked.size(), 100u);
  EXPECT_TRUE(std::is_sorted(ranked.begin(), ranked.end(),
                             [](const Candidate& a, const Candidate& b) { return a.model_us < b.model_us; }));
  EXPECT_DOUBLE_EQ(ranked[7].model_us, model_us(kCases[2], kH200, ranked[7].configuration.tile));
}

TEST(Candidates, KeepToTheRules) {
  for (const TuneCase& c : kCases) {
    for (const Candidate& one : enumerate_candidates(c, kH200)) {
      const TileConfig& tile = one.configuration.tile;
      EXPECT_GE(tile.warps_k * tile.warps_n, 2u);
      EXPECT_LE(tile.warps_k * tile.warps_n, 16u);
      // A large N needs no cluster to give every SM something to do.
      if (c.n == 57344 && tile.warps_n * tile.row_tiles == 1) {
        EXPECT_EQ(tile.cluster_k, 1u);
      }
      // 8 rows are one row group: no larger ones.
      if (c.n == 8) {
        EXPECT_EQ(tile.warps_n * tile.row_tiles, 1u);
      }
    }
  }
}

TEST(Candidates, AFewAreOfSeveralKinds) {
  const TuneCase c{Family::nvfp4_gemv, 4096, 4096, false, 1};
  std::set<std::pair<unsigned, unsigned>> kinds;
  for (const Configuration& one : seeds_of(c, true, 8)) kinds.insert({one.tile.warps_k, one.tile.row_tiles});
  EXPECT_GE(kinds.size(), 3u);
}

// wgmma where the target has it, with four warps side by side and x in shared memory; dealt x where a kernel serves two
// tokens; each takes part in what is tried.
TEST(Candidates, WgmmaAndDealtXWhereTheyCanBe) {
  const auto count = [](const TuneCase& c, const Machine& machine, auto is_one) {
    const auto picked = pick_diverse(c, machine, enumerate_candidates(c, machine), 60);
    return std::count_if(picked.begin(), picked.end(), [&](const Configuration& one) { return is_one(one.tile); });
  };
  const auto is_wgmma = [](const TileConfig& tile) { return tile.variant == kWgmmaVariant; };
  const auto is_dealt = [](const TileConfig& tile) { return tile.x_path == kXDealt; };
  const TuneCase many = {Family::nvfp4_gemv, 10240, 8192, false, 4}, few = {Family::nvfp4_gemv, 28672, 4096, false, 1};
  EXPECT_GT(count(many, kH200, is_wgmma), 0);
  EXPECT_EQ(count(many, {{100, 'a'}, 148}, is_wgmma), 0);
  EXPECT_EQ(count(many, kH200, is_dealt), 0);
  EXPECT_GT(count(few, kH200, is_dealt), 0);
  EXPECT_GT(count(few, {{120, 'a'}, 188}, is_dealt), 0);
  for (const Candidate& one : enumerate_candidates(many, kH200)) {
    const TileConfig& tile = one.configuration.tile;
    if (!is_wgmma(tile)) continue;
    EXPECT_EQ(tile.warps_n % 4, 0u);
    EXPECT_TRUE(tile.x_path >= 1 && tile.x_path <= 4);
  }
}

TEST(Candidates, SeedsKeepRoomForNeighboursInAThoroughSearch) {
  const TuneCase c{Family::nvfp4_gemv, 4096, 4096, false, 1};
  EXPECT_EQ(seeds_of(c, false, 64).size(), 38u);
  EXPECT_EQ(seeds_of(c, true, 8).size(), 8u);
  EXPECT_EQ(seeds_of(c, true, 1).size(), 1u);
}

TEST(Candidates, NeighboursAreOneStepAway) {
  Configuration middle{default_tile(), true};
  middle.tile.warps_k = 8, middle.tile.stages = 4, middle.tile.row_tiles = 2;
  const auto around = neighbours(middle);
  const auto has = [&](auto change) {
    Configuration wanted = middle;
    change(wanted.tile);
    return std::find(around.begin(), around.end(), wanted) != around.end();
  };
  EXPECT_TRUE(has([](TileConfig& tile) { tile.stages = 3; }));
  EXPECT_TRUE(has([](TileConfig& tile) { tile.stages = 6; }));
  EXPECT_TRUE(has([](TileConfig& tile) { tile.warps_k = 16; }));
  EXPECT_TRUE(has([](TileConfig& tile) { tile.row_tiles = 1; }));
  EXPECT_TRUE(has([](TileConfig& tile) { tile.release = 1; }));
  EXPECT_TRUE(has([](TileConfig& tile) { tile.warps_k = 4, tile.warps_n = 2; }));
  EXPECT_FALSE(has([](TileConfig& tile) { tile.stages = 8; }));
  EXPECT_EQ(std::find(around.begin(), around.end(), middle), around.end());
}

TEST(Candidates, RoundsFollowN) {
  Configuration one{default_tile(), true};
  one.tile.rounds = 8;
  EXPECT_EQ(rescale_rounds(one, 8192, 16384).tile.rounds, 16u);
  EXPECT_EQ(rescale_rounds(one, 8192, 1024).tile.rounds, 1u);
  EXPECT_EQ(rescale_rounds(one, 1024, 1 << 20).tile.rounds, 63u);
  one.tile.rounds = 1;
  EXPECT_EQ(rescale_rounds(one, 1024, 65536), one);
}

}  // namespace
}  // namespace gemvjit::tools
