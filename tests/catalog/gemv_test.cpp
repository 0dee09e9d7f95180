// Shape rules, keys and geometry.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/shared/gemv_geometry.h"
#include "kernels/shared/nvfp4_layout.h"
#include "src/catalog/catalog.h"
#include "src/catalog/kernel_flags.h"

namespace gemvjit {
namespace {

using testing::HasSubstr;

constexpr Arch kHopper{90, 'a'};
constexpr Arch kAmpere{80, 0};

Problem problem(Family family, std::int64_t n, std::int64_t k, bool silu_mul = false) {
  return {family, n, k, silu_mul, true};
}

TEST(CheckProblem, AcceptsEveryPermittedMultiple) {
  for (const std::int64_t k : {16, 48, 464, 1504, 2880, 5376}) {
    for (const std::int64_t n : {8, 24, 144, 1960, 2880}) {
      EXPECT_TRUE(check_problem(problem(Family::nvfp4_gemv, n, k))) << n << "x" << k;
      EXPECT_TRUE(check_problem(problem(Family::bf16_gemv, n, k))) << n << "x" << k;
    }
  }
  EXPECT_TRUE(check_problem(problem(Family::bf16_gemv, 8, 8)));
  EXPECT_TRUE(check_problem(problem(Family::dequantize_rows, 1, 16)));
}

TEST(CheckProblem, NamesTheRuleThatIsBroken) {
  struct Case {
    Problem problem;
    StatusCode code;
    const char* rule;
  };
  const Case cases[] = {
      {problem(Family::nvfp4_gemv, 0, 16), StatusCode::invalid_shape, "positive"},
      {problem(Family::nvfp4_gemv, -8, 16), StatusCode::invalid_shape, "positive"},
      {problem(Family::nvfp4_gemv, 8, 0), StatusCode::invalid_shape, "positive"},
      {problem(Family::nvfp4_gemv, 12, 16), StatusCode::invalid_shape, "N must be a multiple of 8"},
      {problem(Family::nvfp4_gemv, 8, 24), StatusCode::invalid_shape, "K must be a multiple of 16"},
      {problem(Family::bf16_gemv, 8, 12), StatusCode::invalid_shape, "K must be a multiple of 8"},
      {problem(Family::nvfp4_gemv, 24, 16, true), StatusCode::invalid_shape, "N must be a multiple of 16"},
      {problem(Family::dequantize_rows, 16, 16, true), StatusCode::unsupported, "silu_mul"},
      {problem(Family::bf16_gemv, std::int64_t{1} << 40, 8), StatusCode::invalid_shape, "N must be at most"},
      {problem(Family::bf16_gemv, 8, std::int64_t{1} << 40), StatusCode::invalid_shape, "K must be at most"},
  };
  for (const Case& one : cases) {
    const Status status = check_problem(one.problem);
    EXPECT_EQ(status.code(), one.code) << status.message();
    EXPECT_THAT(status.message(), HasSubstr(one.rule));
  }
}

TEST(MakeKey, DescribeIsItsInverse) {
  TileConfig tile;
  tile.warps_k = 16;
  tile.cluster_k = 4;
  tile.row_tiles = 2;
  tile.stages = 2;
  tile.release = 1;
  const auto key = make_key(problem(Family::bf16_gemv, 4096, 4096, true), 2, tile, true, kHopper);
  ASSERT_TRUE(key) << key.status().message();
  const auto spec = describe_key(*key);
  ASSERT_TRUE(spec) << spec.status().message();
  EXPECT_EQ(spec->family, Family::bf16_gemv);
  EXPECT_TRUE(spec->silu_mul);
  EXPECT_TRUE(spec->pdl);
  EXPECT_EQ(spec->tile, tile);
  EXPECT_EQ(spec->key, *key);
}

TEST(MakeKey, EveryFieldChangesTheKey) {
  const Problem base = problem(Family::nvfp4_gemv, 256, 256);
  const KernelKey key = *make_key(base, 1, TileConfig{}, true, kHopper);
  for (const TileField& field : tile_fields()) {
    TileConfig tile;
    tile.*field.member = tile.*field.member == 2 ? 1 : 2;
    const auto other = make_key(base, 1, tile, true, kHopper);
    // variant, x_path and release have no value 2 yet; they must be refused, not ignored.
    if (other) {
      EXPECT_NE(*other, key) << field.name;
    } else {
      EXPECT_THAT(other.status().message(), HasSubstr(field.name));
    }
  }
  EXPECT_NE(*make_key(base, 2, TileConfig{}, true, kHopper), key);
  EXPECT_NE(*make_key(base, 1, TileConfig{}, false, kHopper), key);
  EXPECT_NE(*make_key(base, 1, TileConfig{}, true, (Arch{100, 'a'})), key);
  EXPECT_NE(*make_key(problem(Family::bf16_gemv, 256, 256), 1, TileConfig{}, true, kHopper), key);
  EXPECT_NE(*make_key(problem(Family::nvfp4_gemv, 256, 256, true), 1, TileConfig{}, true, kHopper), key);
}

TEST(MakeKey, PdlIsNormalizedToOneKeyWhereTheTargetHasNone) {
  Problem allowed = problem(Family::nvfp4_gemv, 256, 256), forbidden = allowed;
  forbidden.pdl = false;
  EXPECT_EQ(*make_key(allowed, 1, TileConfig{}, true, kAmpere), *make_key(forbidden, 1, TileConfig{}, true, kAmpere));
  EXPECT_NE(*make_key(allowed, 1, TileConfig{}, true, kHopper), *make_key(forbidden, 1, TileConfig{}, true, kHopper));
  // A table that says PDL loses gives the same kernel as a caller who forbids it.
  EXPECT_EQ(*make_key(allowed, 1, TileConfig{}, false, kHopper), *make_key(forbidden, 1, TileConfig{}, true, kHopper));
}

TEST(MakeKey, RefusesWhatTheTargetCannotDo) {
  TileConfig cluster;
  cluster.cluster_k = 2;
  const Problem p = problem(Family::nvfp4_gemv, 256, 256);
  const auto refused = make_key(p, 1, cluster, true, kAmpere);
  EXPECT_EQ(refused.status().code(), StatusCode::unsupported);
  EXPECT_THAT(refused.status().message(), HasSubstr("no thread block clusters"));
  EXPECT_TRUE(make_key(p, 1, cluster, true, kHopper));

  TileConfig large;  // 16 warps, 4 tiles of rows, 16 tokens: 16 * 16 * 68 * 4 bytes of partial sums
  large.warps_k = 16;
  large.row_tiles = 4;
  large.stages = 2;
  EXPECT_TRUE(make_key(p, 2, large, true, kHopper));
  large.rounds = 2;  // twice as much: two buffers in turn
  EXPECT_TRUE(make_key(p, 2, large, true, kHopper));
  EXPECT_THAT(make_key(p, 2, large, true, {120, 'a'}).status().message(), HasSubstr("shared memory"));
  large.rounds = 1;
  large.cluster_k = 8;
  large.row_tiles = 1;
  EXPECT_TRUE(make_key(p, 4, large, true, kHopper));
  large.cluster_k = 3;
  EXPECT_EQ(make_key(p, 4, large, true, kHopper).status().code(), StatusCode::unsupported);
  EXPECT_EQ(make_key(p, 3, TileConfig{}, true, kHopper).status().code(), StatusCode::invalid_argument);
  EXPECT_EQ(make_key(p, 0, TileConfig{}, true, kHopper).status().code(), StatusCode::invalid_argument);
  EXPECT_EQ(make_key(p, 1, TileConfig{}, true, (Arch{75, 0})).status().code(), StatusCode::unsupported);
}

TEST(DescribeKey, RefusesUnknownBitsFamiliesAndTiles) {
  KernelKey key = *make_key(problem(Family::nvfp4_gemv, 256, 256), 1, TileConfig{}, true, kHopper);
  KernelKey unknown_bit = key;
  unknown_bit.flags |= std::uint64_t{1} << 63;
  EXPECT_EQ(describe_key(unknown_bit).status().code(), StatusCode::invalid_argument);
  KernelKey unknown_family = key;
  unknown_family.flags = set_flag(key.flags, flag_field::family, 15);
  EXPECT_EQ(describe_key(unknown_family).status().code(), StatusCode::invalid_argument);
  KernelKey no_family = key;
  no_family.flags = set_flag(key.flags, flag_field::family, 0);
  EXPECT_EQ(describe_key(no_family).status().code(), StatusCode::invalid_argument);
  KernelKey no_warps = key;
  no_warps.flags = set_flag(key.flags, flag_field::warps_k, 0);
  EXPECT_EQ(describe_key(no_warps).status().code(), StatusCode::unsupported);
  KernelKey bad_shape = key;
  bad_shape.k = 24;
  EXPECT_EQ(describe_key(bad_shape).status().code(), StatusCode::invalid_shape);
}

TEST(LaunchConfig, GridCoversNAndIsAMultipleOfTheCluster) {
  for (const unsigned cluster : {1u, 2u, 4u, 8u}) {
    for (const std::int64_t n : {8, 16, 24, 144, 1960, 2880, 57344}) {
      for (const unsigned row_tiles : {1u, 2u, 4u}) {
        TileConfig tile;
        tile.cluster_k = cluster;
        tile.row_tiles = row_tiles;
        tile.stages = 2;
        const auto key = make_key(problem(Family::bf16_gemv, n, 256), 1, tile, true, kHopper);
        ASSERT_TRUE(key) << key.status().message();
        const LaunchConfig config = launch_config(*describe_key(*key));
        EXPECT_EQ(config.cluster_x, cluster);
        EXPECT_EQ(config.grid_x % cluster, 0u);
        const std::int64_t rows = std::int64_t{config.grid_x / cluster} * 16 * row_tiles;
        EXPECT_GE(rows, n);
        EXPECT_LT(rows - 16 * row_tiles, n) << "a CTA without work";
        EXPECT_EQ(config.block_x, 256u);
      }
    }
  }
}

TEST(LaunchConfig, DequantizeStridesOverVeryLargeWeights) {
  const auto key =
      make_key(problem(Family::dequantize_rows, std::int64_t{1} << 20, 65536), 0, no_tile(), true, kHopper);
  ASSERT_TRUE(key) << key.status().message();
  EXPECT_EQ(launch_config(*describe_key(*key)).grid_x, static_cast<unsigned>(kElementwiseMaxCtas));
}

TEST(Nt, CoversM) {
  EXPECT_EQ(nt_for_m(0), 0);
  EXPECT_EQ(nt_for_m(1), 1);
  EXPECT_EQ(nt_for_m(8), 1);
  EXPECT_EQ(nt_for_m(9), 2);
  EXPECT_EQ(nt_for_m(16), 2);
  EXPECT_EQ(nt_for_m(17), 4);
  EXPECT_EQ(nt_for_m(32), 4);
  EXPECT_EQ(nt_for_m(33), 0);
  for (std::int64_t m = 1; m <= 32; ++m) EXPECT_EQ(kNtWithTokens[token_class(m)], nt_for_m(m)) << m;
  EXPECT_EQ(token_class(33), kNtWithTokens.size() - 1);
}

TEST(FlagFields, TileFieldsAreFlagFieldsWithTheSameDefaults) {
  for (const TileField& tile_field : tile_fields()) {
    bool found = false;
    for (const FlagField& field : flag_fields()) {
      if (std::string_view(field.name) != tile_field.name) continue;
      found = true;
      EXPECT_EQ(TileConfig{}.*tile_field.member, field.default_value) << field.name;
    }
    EXPECT_TRUE(found) << tile_field.name;
  }
}

TEST(ScaleLayout, BytesAndOffsetsStayInsideThePaddedMatrix) {
  for (const auto& [n, k] : {std::pair{1, 16}, {129, 80}, {2112, 7168}, {464, 2688}, {2880, 464}, {128, 64}}) {
    std::vector<bool> seen(static_cast<std::size_t>(swizzled_scale_bytes(n, k)));
    for (long long row = 0; row < padded_scale_rows(n); ++row) {
      for (long long column = 0; column < padded_scale_columns(k); ++column) {
        const long long offset = swizzled_scale_offset(row, column, padded_scale_columns(k));
        ASSERT_GE(offset, 0);
        ASSERT_LT(offset, swizzled_scale_bytes(n, k));
        ASSERT_FALSE(seen[static_cast<std::size_t>(offset)]) << "two scales at one place";
        seen[static_cast<std::size_t>(offset)] = true;
      }
    }
  }
}

// B104: no PDL but where the list of targets has it.
TEST(Archs, PdlIsOfTheTargetsThatAreListedWithIt) {
  for (const int sm : known_sms()) {
    EXPECT_EQ(arch_facts({sm, 0})->has_pdl, sm >= 90) << sm;
    const auto key = make_key(problem(Family::nvfp4_gemv, 256, 256), 1, TileConfig{}, true, {sm, 0});
    ASSERT_TRUE(key) << key.status().message();
    EXPECT_EQ(launch_config(*describe_key(*key)).pdl, sm >= 90) << sm;
  }
  for (const int unlisted : {107, 130}) EXPECT_FALSE(arch_facts({unlisted, 0})->has_pdl) << unlisted;
}

TEST(Archs, FactsFollowTheTarget) {
  EXPECT_FALSE(arch_facts({89, 0})->has_clusters);
  EXPECT_FALSE(arch_facts({89, 0})->has_pdl);
  EXPECT_TRUE(arch_facts({90, 'a'})->has_pdl);
  EXPECT_TRUE(arch_facts({90, 'a'})->verified_on_device);
  EXPECT_FALSE(arch_facts({100, 'a'})->verified_on_device);
  EXPECT_EQ(arch_facts({120, 'a'})->max_smem_bytes_per_cta, 99 * 1024);
  // A number without a row takes the nearest lower row of its major version, or the newest row.
  EXPECT_EQ(arch_facts({107, 'a'})->max_smem_bytes_per_cta, 227 * 1024);
  EXPECT_FALSE(arch_facts({107, 'a'})->verified_on_device);
  EXPECT_EQ(arch_facts({130, 'a'})->max_smem_bytes_per_cta, 99 * 1024);
  EXPECT_THAT(arch_facts({75, 0}).status().message(), HasSubstr("sm_80"));
  EXPECT_THAT(targets_for_device(12, 1), testing::ElementsAre(Arch{121, 'a'}, Arch{121, 'f'}, Arch{121, 0}));
}

}  // namespace
}  // namespace gemvjit
