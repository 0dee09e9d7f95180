#include "src/tuning/tuning_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/files.h"
#include "tests/support/temp_dir.h"

namespace gemvjit {
namespace {

using testing::HasSubstr;
constexpr Arch kHopper{90, 'a'};

Problem nvfp4(std::int64_t n, std::int64_t k, bool silu_mul = false) {
  return {Family::nvfp4_gemv, n, k, silu_mul, true};
}

// One shape that wins with nt 1, loses with nt 2 and has no entry for nt 4; a default for the family.
constexpr const char* kTable = R"({
  "schema": 1, "archs": ["sm_90a"],
  "measurements": {"m": {"gpu": "G", "driver": "1", "compiler": "C", "date": "2026-01-02"}},
  "entries": [
    {"family": "nvfp4_gemv", "n": 64, "k": 128, "nt": 1, "tile": {"warps_k": 4}, "pdl": false,
     "time_us": 1.0, "alternative_us": 2.0, "measurement": "m"},
    {"family": "nvfp4_gemv", "n": 64, "k": 128, "nt": 2, "tile": {"warps_k": 4},
     "time_us": 3.0, "alternative_us": 2.0, "measurement": "m"}
  ],
  "defaults": [
    {"family": "nvfp4_gemv", "nt": 4, "max_n": 512, "tile": {"warps_k": 2}},
    {"family": "nvfp4_gemv", "tile": {"stages": 2}},
    {"family": "bf16_gemv", "tile": {"stages": 2}}
  ]
})";

TuningTables tables(const std::string& text = kTable) {
  auto parsed = TuningTables::parse({{"test.json", text}});
  EXPECT_TRUE(parsed) << parsed.status().message();
  return *parsed;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Lookup, MeasuredEntryIsExactAndSaysWhereItComesFrom) {
  const auto choice = tables().lookup(kHopper, nvfp4(64, 128), 1, false);
  ASSERT_TRUE(choice) << choice.status().message();
  EXPECT_EQ(choice->match, Match::exact);
  EXPECT_EQ(choice->tile.warps_k, 4u);
  EXPECT_EQ(choice->tile.stages, TileConfig{}.stages) << "fields left out have their defaults";
  EXPECT_FALSE(choice->pdl_wins);
  EXPECT_TRUE(choice->tuned());
  EXPECT_EQ(choice->provenance, "G, driver 1, C, 2026-01-02");
}

TEST(Lookup, UntunedShapesOnlyWhereAllowed) {
  const TuningTables t = tables();
  EXPECT_EQ(t.lookup(kHopper, nvfp4(72, 128), 1, false).status().code(), StatusCode::untuned);
  EXPECT_EQ(t.lookup(kHopper, nvfp4(64, 128, true), 1, false).status().code(), StatusCode::untuned);
  const auto choice = t.lookup(kHopper, nvfp4(72, 128), 4, true);
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->match, Match::family_default);
  EXPECT_EQ(choice->tile.warps_k, 2u);
  EXPECT_FALSE(choice->tuned());
  EXPECT_EQ(t.lookup(kHopper, nvfp4(1024, 128), 4, true)->tile.stages, 2u) << "max_n sends it to the next row";
  EXPECT_EQ(t.lookup({80, 0}, nvfp4(72, 128), 1, true).status().code(), StatusCode::untuned);
}

TEST(PickNt, SmallestThatCoversAndWins) {
  const TuningTables t = tables();
  EXPECT_EQ(t.pick_nt(kHopper, nvfp4(64, 128), 1, false), 1);
  EXPECT_EQ(t.pick_nt(kHopper, nvfp4(64, 128), 8, false), 1);
  EXPECT_EQ(t.pick_nt(kHopper, nvfp4(64, 128), 9, false), 0) << "nt 2 was measured to lose, nt 4 was not measured";
  EXPECT_EQ(t.pick_nt(kHopper, nvfp4(64, 128), 9, true), 4) << "a measured loser stays one where untuned is allowed";
  EXPECT_EQ(t.pick_nt(kHopper, nvfp4(64, 128), 0, true), 0);
  EXPECT_EQ(t.pick_nt(kHopper, nvfp4(64, 128), 33, true), 0);
  EXPECT_EQ(t.pick_nt(kHopper, nvfp4(72, 128), 3, false), 0);
  EXPECT_EQ(t.pick_nt(kHopper, nvfp4(72, 128), 3, true), 1);
  EXPECT_TRUE(t.tuned(kHopper, nvfp4(64, 128)));
  EXPECT_FALSE(t.tuned(kHopper, nvfp4(72, 128)));
}

TEST(Parse, ErrorsNameFileAndPlace) {
  const std::pair<std::string, std::string> cases[] = {
      {replaced(kTable, "\"schema\": 1", "\"schema\": 2"), "schema"},
      {replaced(kTable, "\"sm_90a\"", "\"sm90\""), "archs"},
      {replaced(kTable, "\"time_us\": 1.0, ", ""), "entries[0]"},
      {replaced(kTable, "\"time_us\": 1.0", "\"time_us\": 0"), "measured time"},
      {replaced(kTable, "\"measurement\": \"m\"", "\"measurement\": \"x\""), "not in \"measurements\""},
      {replaced(kTable, "{\"warps_k\": 2}", "{\"warp_k\": 2}"), "warp_k"},
      {replaced(kTable, "{\"warps_k\": 2}", "{\"warps_k\": -2}"), "warps_k"},
      {replaced(kTable, "\"max_n\"", "\"maxn\""), "maxn"},
      {replaced(kTable, "{\"warps_k\": 2}", "{\"warps_k\": 4294967304}"),
       "defaults[0].tile: \"warps_k\" is 4294967304"},
      {replaced(kTable, "{\"warps_k\": 2}", "{\"warps_k\": 18446744073709551615}"), "warps_k"},
      {replaced(kTable, "{\"warps_k\": 2}", "{\"warps_k\": 64}"), "from 0 to 63"},
      {replaced(kTable, "{\"warps_k\": 2}", "{\"warps_k\": 2.5}"), "whole number"},
      {replaced(kTable, "{\"warps_k\": 2}", "{\"warps_k\": 17}"), "defaults[0].tile"},
      {replaced(kTable, "\"nt\": 1", "\"nt\": 4294967297"), "entries[0]: \"nt\""},
      {replaced(kTable, "\"nt\": 4", "\"nt\": 3"), "defaults[0]: \"nt\""},
      {replaced(kTable, "\"n\": 64", "\"n\": 18446744073709551615"), "entries[0]: \"n\""},
      {replaced(kTable, "\"n\": 64", "\"n\": 64.5"), "entries[0]: \"n\""},
      {replaced(kTable, "\"n\": 64", "\"n\": 60"), "multiple of 8"},
      {replaced(kTable, "\"max_n\": 512", "\"max_n\": -1"), "defaults[0]: \"max_n\""},
      {replaced(kTable, "\"schema\": 1", "\"schema\": 1.5"), "schema"},
      {replaced(kTable, "\"alternative_us\": 2.0", "\"alternative_us\": -2.0"), "alternative_us"},
      {replaced(kTable, "\"warps_k\": 4}, \"pdl\"", "\"warps_k\": 4, \"row_tiles\": 3}, \"pdl\""), "entries[0]"},
      {replaced(kTable, "\"bf16_gemv\", \"tile\"", "\"bf16_gemv\", \"max_k\": 8192, \"tile\""), "every bf16_gemv"},
      {replaced(kTable, "\"bf16_gemv\", \"tile\"", "\"nvfp4_gemv\", \"tile\""), "every bf16_gemv"},
      {replaced(kTable, "\"family\": \"nvfp4_gemv\", \"n\"", "\"family\": \"fp8\", \"n\""), "fp8"},
      {"{", "parse error"},
      {"[]", "must be an object"},
  };
  for (const auto& [text, expected] : cases) {
    const auto parsed = TuningTables::parse({{"my.json", text}});
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.status().code(), StatusCode::invalid_argument);
    EXPECT_THAT(parsed.status().message(), HasSubstr("my.json"));
    EXPECT_THAT(parsed.status().message(), HasSubstr(expected));
  }
}

TEST(Parse, AConfigurationMustBePossibleOnEveryListedTarget) {
  const std::string clusters = replaced(kTable, "{\"stages\": 2}", "{\"stages\": 2, \"cluster_k\": 4}");
  EXPECT_TRUE(TuningTables::parse({{"my.json", clusters}}));
  const auto refused = TuningTables::parse({{"my.json", replaced(clusters, "\"sm_90a\"", "\"sm_90a\", \"sm_86\"")}});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.status().message(), HasSubstr("my.json: defaults[1].tile"));
  EXPECT_THAT(refused.status().message(), HasSubstr("sm_86"));
}

TEST(Parse, ARowIsHeldOnlyAgainstWhatComesToIt) {
  // These sums do not fit into shared memory for nt 4, which the first row takes away once it has no bounds.
  const std::string bounded =
      replaced(kTable, "{\"stages\": 2}", "{\"stages\": 2, \"row_tiles\": 4, \"warps_k\": 16, \"rounds\": 2}");
  EXPECT_FALSE(TuningTables::parse({{"my.json", bounded}}));
  EXPECT_TRUE(TuningTables::parse({{"my.json", replaced(bounded, "\"max_n\": 512, ", "")}}));
}

TEST(Load, EmbeddedTablesServeEveryTestedTargetUntuned) {
  const auto loaded = TuningTables::load("");
  ASSERT_TRUE(loaded) << loaded.status().message();
  EXPECT_EQ(loaded->digest().size(), 64u);
  for (const Arch& arch : tested_archs()) {
    for (const FamilyRow& family : families()) {
      for (const int nt : nt_values(family.family)) {
        for (const std::int64_t n : {16, 1024, 57344}) {
          for (const std::int64_t k : {16, 8192}) {
            const Problem p{family.family, n, k, false, true};
            const auto choice = loaded->lookup(arch, p, nt, true);
            ASSERT_TRUE(choice) << choice.status().message();
            const auto key = make_key(p, nt, choice->tile, choice->pdl_wins, arch);
            EXPECT_TRUE(key) << key.status().message();
          }
        }
      }
    }
  }
}

TEST(Load, OverlayReplacesTheEmbeddedTableOfAnArch) {
  const test::TempDir dir;
  const std::string text = kTable;
  ASSERT_TRUE(publish_file(dir.path(), "mine.json", text.data(), text.size()));
  const auto loaded = TuningTables::load(dir.path());
  ASSERT_TRUE(loaded) << loaded.status().message();
  EXPECT_TRUE(loaded->tuned(kHopper, nvfp4(64, 128)));
  EXPECT_NE(loaded->digest(), TuningTables::load("")->digest());
  EXPECT_FALSE(TuningTables::load(dir.path() + "/missing"));
}

}  // namespace
}  // namespace gemvjit
