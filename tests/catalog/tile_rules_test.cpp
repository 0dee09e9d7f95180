// make_key's rules for tile fields: each is refused one step past what is allowed and allowed up to it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "kernels/shared/gemv_geometry.h"
#include "src/catalog/catalog.h"

namespace gemvjit {
namespace {

using testing::HasSubstr;

constexpr Arch kHopper{90, 'a'};
using Change = std::function<void(TileConfig&)>;

struct Rule {
  Family family;
  std::int64_t k;
  int nt;
  Change allowed, refused;
  const char* reason;
};

const Rule kRules[] = {
    {Family::nvfp4_gemv, 4096, 1, [](TileConfig& t) { t.variant = 1; }, [](TileConfig& t) { t.variant = 3; },
     "variant must be 0, 1 or 2"},
    {Family::nvfp4_gemv, 4096, 4, [](TileConfig& t) { t.variant = 2, t.warps_k = 2, t.warps_n = 4, t.x_path = 3; },
     [](TileConfig& t) { t.variant = 2, t.warps_k = 2, t.warps_n = 6, t.x_path = 3; }, "warps_n in multiples of 4"},
    {Family::bf16_gemv, 4096, 2,
     [](TileConfig& t) { t.variant = 2, t.warps_k = 1, t.warps_n = 16, t.stages = 3, t.x_path = 1; },
     [](TileConfig& t) { t.variant = 2, t.warps_k = 1, t.warps_n = 16, t.stages = 3; }, "variant 2 needs staged x"},
    {Family::bf16_gemv, 4096, 1, [](TileConfig& t) { t.warps_k = 1, t.warps_n = 16; },
     [](TileConfig& t) { t.warps_k = 1, t.warps_n = 17; }, "warps_n must be 1..16"},
    {Family::bf16_gemv, 4096, 1, [](TileConfig& t) { t.release = 2; }, [](TileConfig& t) { t.release = 3; },
     "release must be 0, 1 or 2"},
    {Family::nvfp4_gemv, 4096, 1, [](TileConfig& t) { t.rounds = 63; }, [](TileConfig& t) { t.rounds = 0; },
     "rounds must be"},
    {Family::nvfp4_gemv, 4096, 1, [](TileConfig& t) { t.rounds = 1; }, [](TileConfig& t) { t.rounds = 64; },
     "rounds 64 does not fit"},
    {Family::bf16_gemv, 4096, 1, [](TileConfig& t) { t.min_ctas = 6; }, [](TileConfig& t) { t.min_ctas = 0; },
     "min_ctas must be 1..8"},
    {Family::bf16_gemv, 4096, 1, [](TileConfig& t) { t.warps_k = 2, t.min_ctas = 8; },
     [](TileConfig& t) { t.warps_k = 2, t.min_ctas = 9; }, "min_ctas must be 1..8"},
    {Family::bf16_gemv, 4096, 1, [](TileConfig& t) { t.warps_k = 16, t.min_ctas = 3; },
     [](TileConfig& t) { t.warps_k = 16, t.min_ctas = 4; }, "at most 48"},
    // 8 warps x 1 step x 128 k x 2 bytes x 8 tokens are 16 KiB a turn.
    {Family::nvfp4_gemv, 4096, 1, [](TileConfig& t) { t.stages = 1, t.x_path = 1; },
     [](TileConfig& t) { t.stages = 2, t.x_path = 1; }, "x_path 1 holds 16 KiB"},
    {Family::nvfp4_gemv, 4096, 4, [](TileConfig& t) { t.stages = 1, t.x_path = 3; },
     [](TileConfig& t) { t.stages = 1, t.x_path = 2; }, "x_path 2 holds 32 KiB"},
    {Family::bf16_gemv, 4096, 1, [](TileConfig& t) { t.stages = 2, t.x_path = 1; },
     [](TileConfig& t) { t.stages = 4, t.x_path = 1; }, "x_path 1 holds 16 KiB"},
    // A turn of variant 1 is one step a warp, whatever its stages.
    {Family::nvfp4_gemv, 4096, 1, [](TileConfig& t) { t.variant = 1, t.stages = 3, t.x_path = 1; },
     [](TileConfig& t) { t.variant = 1, t.warps_k = 16, t.stages = 3, t.x_path = 1; }, "x_path 1 holds 16 KiB"},
    {Family::nvfp4_gemv, 4096, 1, [](TileConfig& t) { t.variant = 1, t.stages = 1, t.x_path = 5; },
     [](TileConfig& t) { t.variant = 1, t.stages = 1, t.x_path = 7; }, "x_path must be 0..6"},
    // Two tokens of 8192 k at a time: 16 warps x 4 stages x 128 k are one turn of it.
    {Family::nvfp4_gemv, 65536, 1, [](TileConfig& t) { t.warps_k = 16, t.stages = 4, t.x_path = 6; },
     [](TileConfig& t) { t.warps_k = 16, t.stages = 5, t.x_path = 6; }, "x_path 6 holds 8192 k"},
    {Family::nvfp4_gemv, 4096, 1, [](TileConfig& t) { t.stages = 1, t.x_path = 4; },
     [](TileConfig& t) { t.stages = 1, t.x_path = 5; }, "x_path 5 goes through the ring of variant 1"},
    {Family::nvfp4_gemv, 4096, 1, [](TileConfig& t) { t.stages = 8; }, [](TileConfig& t) { t.stages = 9; },
     "stages must be 1..8 for variant 0"},
    {Family::nvfp4_gemv, 4096, 1, [](TileConfig& t) { t.variant = 1, t.stages = 15; },
     [](TileConfig& t) { t.variant = 1, t.stages = 0; }, "stages must be 1..15 for variant 1"},
    {Family::nvfp4_gemv, 4096, 1, [](TileConfig& t) { t.variant = 1, t.row_tiles = 2, t.stages = 5; },
     [](TileConfig& t) { t.row_tiles = 2, t.stages = 5; }, "stages * row_tiles must be at most 8"},
};

TEST(TileRules, EachIsRefusedJustPastWhatIsAllowed) {
  for (const Rule& rule : kRules) {
    const Problem problem{rule.family, 4096, rule.k, false, true};
    TileConfig allowed, refused;
    rule.allowed(allowed);
    rule.refused(refused);
    const auto key = make_key(problem, rule.nt, allowed, true, kHopper);
    EXPECT_TRUE(key) << rule.reason << ": " << key.status().message();
    const Status status = make_key(problem, rule.nt, refused, true, kHopper).status();
    EXPECT_EQ(status.code(), StatusCode::unsupported) << rule.reason;
    EXPECT_THAT(status.message(), HasSubstr(rule.reason));
  }
}

TEST(TileRules, DealtXIsForNvfp4AndOneTokenTile) {
  TileConfig tile;
  tile.x_path = kXDealt;
  EXPECT_TRUE(make_key({Family::nvfp4_gemv, 64, 4096, false, true}, 1, tile, true, kHopper));
  EXPECT_TRUE(make_key({Family::nvfp4_gemv, 64, 4096, false, false}, 1, tile, true, {80, 0}));
  for (const auto& [family, nt] : {std::pair{Family::bf16_gemv, 1}, {Family::nvfp4_gemv, 2}, {Family::nvfp4_gemv, 4}}) {
    const Status refused = make_key({family, 64, 4096, false, true}, nt, tile, true, kHopper).status();
    EXPECT_EQ(refused.code(), StatusCode::unsupported);
    EXPECT_THAT(refused.message(), HasSubstr("x_path 6 is for nvfp4_gemv with nt 1"));
  }
}

TEST(TileRules, WgmmaIsOfSm90aAlone) {
  TileConfig tile;
  tile.variant = kWgmmaVariant;
  tile.warps_k = 2, tile.warps_n = 4, tile.x_path = 1, tile.stages = 2;
  const Problem problem{Family::nvfp4_gemv, 4096, 512, false, true};
  EXPECT_TRUE(make_key(problem, 1, tile, true, kHopper));
  for (const Arch& arch : {Arch{80, 0}, Arch{89, 0}, Arch{90, 0}, Arch{100, 'a'}, Arch{103, 'a'}, Arch{120, 'a'}}) {
    const Status refused = make_key(problem, 1, tile, true, arch).status();
    EXPECT_EQ(refused.code(), StatusCode::unsupported) << arch.text();
    EXPECT_THAT(refused.message(), HasSubstr("has no wgmma")) << arch.text();
  }
}

TEST(TileRules, Nvfp4ByAsynchronousCopiesNeedsWholeRowsOf16Bytes) {
  TileConfig tile;
  tile.variant = 1;
  tile.stages = 2;
  EXPECT_TRUE(make_key({Family::nvfp4_gemv, 64, 1504, false, true}, 1, tile, true, kHopper));
  const auto refused = make_key({Family::nvfp4_gemv, 64, 1520, false, true}, 1, tile, true, kHopper);
  EXPECT_EQ(refused.status().code(), StatusCode::unsupported);
  EXPECT_THAT(refused.status().message(), HasSubstr("multiples of 32"));
  EXPECT_TRUE(make_key({Family::bf16_gemv, 64, 1512, false, true}, 1, tile, true, kHopper))
      << "only NVFP4 has the rule";
  tile.variant = 0;
  EXPECT_TRUE(make_key({Family::nvfp4_gemv, 64, 1520, false, true}, 1, tile, true, kHopper));
}

// The same tile has room on one target and none on the next.
TEST(TileRules, SharedMemoryIsThatOfTheTarget) {
  TileConfig ring;  // 16 warps x 8 stages x 1280 bytes of NVFP4 are 160 KiB, and the partial sums
  ring.variant = 1;
  ring.warps_k = 16;
  ring.stages = 8;
  const Problem problem{Family::nvfp4_gemv, 4096, 4096, false, true};
  EXPECT_TRUE(make_key(problem, 1, ring, true, kHopper));
  EXPECT_TRUE(make_key(problem, 1, ring, true, {100, 'a'}));
  for (const Arch& arch : {Arch{80, 0}, Arch{86, 0}, Arch{89, 0}, Arch{120, 'a'}}) {
    EXPECT_THAT(make_key(problem, 1, ring, true, arch).status().message(), HasSubstr("shared memory")) << arch.text();
  }
  TileConfig staged;  // 128 KiB of x
  staged.x_path = 4;
  staged.stages = 2;
  EXPECT_TRUE(make_key(problem, 4, staged, true, kHopper));
  EXPECT_THAT(make_key(problem, 4, staged, true, {120, 'a'}).status().message(), HasSubstr("shared memory"));
  staged.x_path = 3;
  staged.stages = 1;
  EXPECT_TRUE(make_key(problem, 1, staged, true, {120, 'a'}));
}

}  // namespace
}  // namespace gemvjit
