// Shapes without a measured entry: predicted ones, the nearest measured one, the defaults; and large tables.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "src/tuning/entry_index.h"
#include "src/tuning/tuning_table.h"

namespace gemvjit {
namespace {

constexpr Arch kHopper{90, 'a'};

Problem nvfp4(std::int64_t n, std::int64_t k, bool silu_mul = false) {
  return {Family::nvfp4_gemv, n, k, silu_mul, true};
}

// `tile` marks the entry, so that a choice shows where it comes from.
std::string entry(std::int64_t n, std::int64_t k, const std::string& tile, const std::string& more = "") {
  return fmt::format(
      R"({{"family": "nvfp4_gemv", "n": {}, "k": {}, "nt": 1, "tile": {}, "time_us": 2.5, "measurement": "m"{}}})", n,
      k, tile, more);
}

std::string predicted(std::int64_t n, std::int64_t k, const std::string& tile) {
  return fmt::format(R"({{"family": "nvfp4_gemv", "n": {}, "k": {}, "nt": 1, "tile": {}, "predicted": true}})", n, k,
                     tile);
}

TuningTables table_of(const std::vector<std::string>& entries, const std::string& archs = R"("sm_90a")") {
  const std::string text = fmt::format(
      R"({{"schema": 1, "archs": [{}],
           "measurements": {{"m": {{"gpu": "G", "driver": "1", "compiler": "C", "date": "2026-01-02"}}}},
           "entries": [{}],
           "defaults": [{{"family": "nvfp4_gemv", "tile": {{"warps_k": 15, "stages": 1}}}},
                        {{"family": "bf16_gemv", "tile": {{"stages": 2}}}}]}})",
      archs, fmt::join(entries, ",\n"));
  auto parsed = TuningTables::parse({{"test.json", text}});
  EXPECT_TRUE(parsed) << parsed.status().message();
  return *parsed;
}

TEST(NearestShape, IsTheOneNearestInLogSpace) {
  const TuningTables t = table_of({entry(1024, 4096, R"({"warps_k": 1})"), entry(4096, 1024, R"({"warps_k": 2})"),
                                   entry(4096, 4096, R"({"warps_k": 3})", R"(, "pdl": false)")});
  const auto choice = t.lookup(kHopper, nvfp4(6144, 4096), 1, true);
  ASSERT_TRUE(choice) << choice.status().message();
  EXPECT_EQ(choice->match, Match::nearest_shape);
  EXPECT_EQ(choice->tile.warps_k, 3u);
  EXPECT_FALSE(choice->pdl_wins);
  EXPECT_FALSE(choice->tuned());
  EXPECT_EQ(choice->time_us, 0) << "nothing was measured of this shape";
  EXPECT_EQ(choice->provenance, "G, driver 1, C, 2026-01-02");
  ASSERT_TRUE(choice->neighbour);
  EXPECT_EQ(choice->neighbour->n, 4096);
  EXPECT_EQ(choice->neighbour->k, 4096);
  EXPECT_FALSE(choice->neighbour->silu_mul);
  EXPECT_NEAR(choice->neighbour->distance, std::log(1.5), 1e-9);
  EXPECT_EQ(choice->neighbour->time_us, 2.5);
  // 1024x4096 is a factor of 2 away, 4096x4096 one of 2 and a bit: in plain space the latter is nearer by far for N.
  EXPECT_EQ(t.lookup(kHopper, nvfp4(2040, 4096), 1, true)->tile.warps_k, 1u);
  EXPECT_EQ(t.lookup(kHopper, nvfp4(2056, 4096), 1, true)->tile.warps_k, 3u);
  EXPECT_EQ(t.lookup(kHopper, nvfp4(3072, 1536), 1, true)->tile.warps_k, 2u);
}

TEST(NearestShape, OnlyWhereUntunedShapesAreAllowed) {
  const TuningTables t = table_of({entry(4096, 4096, "{}"), predicted(64, 128, "{}")});
  EXPECT_EQ(t.lookup(kHopper, nvfp4(4104, 4096), 1, false).status().code(), StatusCode::untuned);
  EXPECT_EQ(t.lookup(kHopper, nvfp4(64, 128), 1, false).status().code(), StatusCode::untuned);
  EXPECT_EQ(t.pick_nt(kHopper, nvfp4(4104, 4096), 1, false), 0);
  EXPECT_EQ(t.pick_nt(kHopper, nvfp4(64, 128), 1, false), 0);
  EXPECT_EQ(t.pick_nt(kHopper, nvfp4(4104, 4096), 1, true), 1);
  EXPECT_EQ(t.pick_nt(kHopper, nvfp4(64, 128), 1, true), 1);
  EXPECT_TRUE(t.tuned(kHopper, nvfp4(4096, 4096)));
  EXPECT_FALSE(t.tuned(kHopper, nvfp4(4104, 4096)));
  EXPECT_FALSE(t.tuned(kHopper, nvfp4(64, 128))) << "a predicted entry is never tuned";
}

TEST(NearestShape, EndsAtAFactorOfFourInEitherDimension) {
  const TuningTables t = table_of({entry(4096, 4096, "{}")});
  const auto match = [&](std::int64_t n, std::int64_t k) { return t.lookup(kHopper, nvfp4(n, k), 1, true)->match; };
  EXPECT_EQ(match(1024, 4096), Match::nearest_shape);
  EXPECT_EQ(match(16384, 1024), Match::nearest_shape);
  EXPECT_EQ(match(1016, 4096), Match::family_default);
  EXPECT_EQ(match(16392, 4096), Match::family_default);
  EXPECT_EQ(match(4096, 1008), Match::family_default);
  EXPECT_EQ(match(4096, 16400), Match::family_default);
  const auto far = t.lookup(kHopper, nvfp4(4096, 16400), 1, true);
  EXPECT_EQ(far->tile.warps_k, 15u);
  EXPECT_FALSE(far->neighbour);
  EXPECT_EQ(far->provenance, "untuned");
}

TEST(NearestShape, OfEquallyNearOnesTheOneWithTheSmallerN) {
  const TuningTables t = table_of({entry(8192, 4096, R"({"warps_k": 2})"), entry(2048, 4096, R"({"warps_k": 1})"),
                                   entry(4096, 8192, R"({"warps_k": 4})"), entry(4096, 2048, R"({"warps_k": 3})")});
  EXPECT_EQ(t.lookup(kHopper, nvfp4(4096, 4096), 1, true)->tile.warps_k, 1u);
}

TEST(NearestShape, IsOfTheSameFamilyAndNt) {
  const TuningTables t = table_of({entry(4096, 4096, "{}")});
  EXPECT_EQ(t.lookup(kHopper, nvfp4(4104, 4096), 2, true)->match, Match::family_default);
  const Problem bf16{Family::bf16_gemv, 4104, 4096, false, true};
  EXPECT_EQ(t.lookup(kHopper, bf16, 1, true)->match, Match::family_default);
}

TEST(NearestShape, SiluMulTakesItsOwnKindAndElseThePlainOne) {
  const TuningTables t = table_of(
      {entry(4096, 4096, R"({"warps_k": 1})"), entry(8192, 4096, R"({"warps_k": 2})", R"(, "silu_mul": true)")});
  const auto own = t.lookup(kHopper, nvfp4(4096, 4096, true), 1, true);
  EXPECT_EQ(own->tile.warps_k, 2u) << "though the plain one is nearer";
  EXPECT_TRUE(own->neighbour->silu_mul);
  const auto plain = t.lookup(kHopper, nvfp4(1536, 4096, true), 1, true);
  EXPECT_EQ(plain->match, Match::nearest_shape);
  EXPECT_EQ(plain->tile.warps_k, 1u) << "the one with silu_mul is too far away";
  EXPECT_FALSE(plain->neighbour->silu_mul);
  const auto not_silu = t.lookup(kHopper, nvfp4(20480, 4096), 1, true);
  EXPECT_EQ(not_silu->match, Match::family_default) << "what was measured with silu_mul serves nothing else";
}

TEST(NearestShape, WhatTheTargetCannotHaveIsPassedOver) {
  const std::vector<std::string> entries = {entry(4096, 4096, R"({"warps_k": 1, "cluster_k": 4})"),
                                            entry(2048, 4096, R"({"warps_k": 2})"),
                                            predicted(5120, 4096, R"({"warps_k": 3, "cluster_k": 2})")};
  const TuningTables t = table_of(entries, R"("*")");
  EXPECT_EQ(t.lookup(kHopper, nvfp4(4104, 4096), 1, true)->tile.warps_k, 1u);
  const Arch ampere{80, 0};
  EXPECT_EQ(t.lookup(ampere, nvfp4(4104, 4096), 1, true)->tile.warps_k, 2u) << "sm_80 has no clusters";
  EXPECT_EQ(t.lookup(kHopper, nvfp4(5120, 4096), 1, true)->match, Match::predicted);
  EXPECT_EQ(t.lookup(ampere, nvfp4(5120, 4096), 1, true)->match, Match::nearest_shape);
  EXPECT_EQ(t.lookup(ampere, nvfp4(4096, 4096), 1, true)->tile.warps_k, 2u) << "nor can it have the measured one";
  EXPECT_EQ(t.lookup(ampere, nvfp4(4096, 4096), 1, false).status().code(), StatusCode::untuned);
  EXPECT_EQ(t.lookup(ampere, nvfp4(16384, 4096), 1, true)->match, Match::family_default) << "none is left";
}

TEST(NearestShape, AnImpossibleProblemHasNone) {
  const TuningTables t = table_of({entry(4096, 4096, "{}")});
  EXPECT_EQ(t.lookup(kHopper, nvfp4(4097, 4096), 1, true)->match, Match::family_default);
  EXPECT_EQ(t.lookup(kHopper, nvfp4(std::int64_t{1} << 62, 4096), 1, true)->match, Match::family_default);
}

TEST(Predicted, ServesItsShapeBeforeAnyNeighbour) {
  const TuningTables t = table_of({entry(4096, 4096, R"({"warps_k": 1})"), predicted(4104, 4096, R"({"warps_k": 2})"),
                                   predicted(4096, 4096, R"({"warps_k": 3})")});
  const auto choice = t.lookup(kHopper, nvfp4(4104, 4096), 1, true);
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->match, Match::predicted);
  EXPECT_EQ(choice->tile.warps_k, 2u);
  EXPECT_EQ(choice->provenance, "predicted, not measured");
  EXPECT_FALSE(choice->neighbour);
  EXPECT_EQ(t.lookup(kHopper, nvfp4(4096, 4096), 1, true)->tile.warps_k, 1u) << "measured before predicted";
  const auto beside = t.lookup(kHopper, nvfp4(4112, 4096), 1, true);
  EXPECT_EQ(beside->match, Match::nearest_shape);
  EXPECT_EQ(beside->tile.warps_k, 1u) << "a predicted one is nobody's neighbour";
}

TEST(AdaptTile, KeepsTheGridOfAKernelThatWorksInRounds) {
  TileConfig tile;
  const auto rounds = [&](unsigned from, std::int64_t from_n, std::int64_t to_n) {
    tile.rounds = from;
    return adapt_tile(tile, from_n, to_n).rounds;
  };
  EXPECT_EQ(rounds(4, 4096, 8192), 8u);
  EXPECT_EQ(rounds(4, 4096, 5120), 5u);
  EXPECT_EQ(rounds(4, 4096, 4600), 4u);
  EXPECT_EQ(rounds(4, 4096, 1024), 1u);
  EXPECT_EQ(rounds(2, 4096, 64), 1u) << "never less than one";
  EXPECT_EQ(rounds(40, 4096, 16384), 63u) << "never more than the field holds";
  EXPECT_EQ(rounds(1, 4096, 16384), 1u) << "one round stays one: its grid follows N";
  tile = TileConfig{.warps_k = 4, .stages = 2, .rounds = 2};
  EXPECT_EQ(adapt_tile(tile, 64, 128), (TileConfig{.warps_k = 4, .stages = 2, .rounds = 4}));
}

TEST(NearestShape, RoundsAreScaledToTheProblem) {
  const TuningTables t = table_of({entry(4096, 4096, R"({"warps_k": 1, "rounds": 4})")});
  EXPECT_EQ(t.lookup(kHopper, nvfp4(4096, 4096), 1, true)->tile.rounds, 4u);
  EXPECT_EQ(t.lookup(kHopper, nvfp4(8192, 4096), 1, true)->tile.rounds, 8u);
}

// Against a plain search over all entries.
TEST(EntryIndex, FindsInATableOfThousandsWhatALinearSearchFinds) {
  std::vector<TunedEntry> entries;
  std::uint64_t state = 1;
  const auto random_size = [&] {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::int64_t>(64 * std::exp2(static_cast<double>(state >> 40) / (1 << 24) * 10)) / 16 * 16;
  };
  for (int i = 0; i < 10000; ++i) {
    TunedEntry& one = entries.emplace_back();
    one.n = random_size(), one.k = random_size(), one.nt = 1 << (i % 3), one.silu_mul = i % 4 == 0;
    one.predicted = i % 5 == 0;
  }
  const EntryIndex index(entries);
  const auto log_ratio = [](std::int64_t a, std::int64_t b) {
    return std::log(static_cast<double>(a) / static_cast<double>(b));
  };
  const auto distance = [&](const TunedEntry& e, const Problem& p) {
    return std::hypot(log_ratio(e.n, p.n), log_ratio(e.k, p.k));
  };
  for (int i = 0; i < 200; ++i) {
    const Problem problem = nvfp4(random_size(), random_size());
    double best = 1e9;
    for (const TunedEntry& e : entries) {
      const bool close = e.n <= 4 * problem.n && problem.n <= 4 * e.n && e.k <= 4 * problem.k && problem.k <= 4 * e.k;
      if (close && e.nt == 2 && !e.silu_mul && !e.predicted) best = std::min(best, distance(e, problem));
    }
    const Neighbour found = index.nearest(problem, 2, false, [](const TunedEntry&) { return true; });
    ASSERT_EQ(found.entry != nullptr, best < 1e9);
    if (found.entry == nullptr) continue;
    EXPECT_NEAR(found.distance, best, 1e-9);
  }
  for (const TunedEntry& e : entries) {
    const Problem problem{e.family, e.n, e.k, e.silu_mul, true};
    const TunedEntry* found = e.predicted ? index.predicted(problem, e.nt) : index.measured(problem, e.nt);
    ASSERT_NE(found, nullptr);
    EXPECT_TRUE(found->n == e.n && found->k == e.k && found->nt == e.nt && found->silu_mul == e.silu_mul);
    EXPECT_EQ(found->predicted, e.predicted);
  }
}

}  // namespace
}  // namespace gemvjit
