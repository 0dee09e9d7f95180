// B139: which kernel a shape gets, and the reason for each that it does not get.
#include "src/tuning/selection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gemvjit {
namespace {

using testing::HasSubstr;

constexpr Arch kHopper{90, 'a'};

// N=64 K=128 wins with nt 1 and loses with nt 2; N=64 K=256 is measured with a cluster.
constexpr const char* kTable = R"({
  "schema": 1, "archs": ["sm_90a"],
  "measurements": {"m": {"gpu": "G", "driver": "1", "compiler": "C", "date": "2026-01-02"}},
  "entries": [
    {"family": "nvfp4_gemv", "n": 64, "k": 128, "nt": 1, "tile": {"warps_k": 4}, "pdl": false,
     "time_us": 1.0, "alternative_us": 2.0, "alternative": "cublasLt", "measurement": "m"},
    {"family": "nvfp4_gemv", "n": 64, "k": 128, "nt": 2, "tile": {"warps_k": 4},
     "time_us": 3.0, "alternative_us": 2.0, "alternative": "cublasLt", "measurement": "m"}
  ],
  "defaults": [
    {"family": "nvfp4_gemv", "nt": 4, "tile": {"variant": 1, "stages": 2}},
    {"family": "nvfp4_gemv", "tile": {"stages": 2}},
    {"family": "bf16_gemv", "tile": {"stages": 2}}
  ]
})";

Selection select(std::int64_t n, std::int64_t k, std::int64_t m, bool allow_untuned = true,
                 const Arch& arch = kHopper) {
  auto tables = TuningTables::parse({{"test.json", kTable}});
  EXPECT_TRUE(tables) << tables.status().message();
  return select_kernel(*tables, arch, {Family::nvfp4_gemv, n, k, false, true}, m, allow_untuned);
}

bool rejects(const NtSelection& one, Reason reason, const std::string& detail = "") {
  for (const Rejected& r : one.rejected) {
    if (r.reason == reason && r.detail.find(detail) != std::string::npos) return true;
  }
  return false;
}

TEST(Selection, AMeasuredWinnerIsChosenAndTheOthersSayWhyNot) {
  const Selection s = select(64, 128, 8);
  EXPECT_TRUE(s.is_served);
  EXPECT_EQ(s.nt, 1);
  EXPECT_EQ(s.reason, Reason::exact);
  ASSERT_EQ(s.kernels.size(), 3u);
  EXPECT_TRUE(s.kernels[0].is_chosen);
  EXPECT_EQ(s.kernels[0].without_pdl, Reason::pdl_slower);
  EXPECT_TRUE(s.kernels[0].rejected.empty());
  EXPECT_EQ(s.kernels[1].not_chosen, Reason::alternative_faster);
  EXPECT_THAT(s.kernels[1].detail, HasSubstr("3.00 us, cublasLt 2.00 us"));
  EXPECT_EQ(s.kernels[2].not_chosen, Reason::nt_larger_than_needed);
}

TEST(Selection, ALargerMSkipsWhatIsTooSmallAndWhatLoses) {
  const Selection s = select(64, 128, 12);
  EXPECT_EQ(s.nt, 4) << "nt 2 loses to the alternative";
  EXPECT_EQ(s.reason, Reason::family_default);
  EXPECT_EQ(s.kernels[0].not_chosen, Reason::nt_too_small);
  EXPECT_EQ(s.kernels[1].not_chosen, Reason::alternative_faster);
  EXPECT_TRUE(s.kernels[2].is_chosen);
  EXPECT_TRUE(rejects(s.kernels[2], Reason::no_measured_entry));
  EXPECT_TRUE(rejects(s.kernels[2], Reason::no_predicted_entry));
  EXPECT_TRUE(rejects(s.kernels[2], Reason::no_neighbour));
}

TEST(Selection, ANeighbourIsNamedAndAnImpossibleTileHasTheRuleItBreaks) {
  const Selection near = select(128, 128, 1);
  EXPECT_EQ(near.reason, Reason::nearest_shape);
  EXPECT_TRUE(rejects(near.kernels[0], Reason::no_measured_entry));
  EXPECT_FALSE(rejects(near.kernels[0], Reason::no_neighbour));
  const Selection odd = select(8192, 48, 32);  // variant 1 wants K in multiples of 32
  EXPECT_EQ(odd.nt, 4);
  EXPECT_TRUE(rejects(odd.kernels[2], Reason::tile_not_possible, "multiples of 32"));
}

TEST(Selection, NoneHasAReason) {
  EXPECT_EQ(select(64, 128, 33).reason, Reason::m_out_of_range);
  EXPECT_EQ(select(64, 128, 0).reason, Reason::m_out_of_range);
  EXPECT_EQ(select(63, 128, 1).reason, Reason::shape_not_served);
  const Selection tuned_only = select(128, 128, 1, false);
  EXPECT_FALSE(tuned_only.is_served);
  EXPECT_EQ(tuned_only.reason, Reason::none);
  EXPECT_TRUE(rejects(tuned_only.kernels[0], Reason::untuned_not_allowed));
  EXPECT_TRUE(rejects(select(64, 128, 1, true, {80, 0}).kernels[0], Reason::no_table));
}

TEST(Selection, IsWhatTheLibraryPicks) {
  const auto tables = *TuningTables::load("");
  for (const Arch& arch : {Arch{90, 'a'}, Arch{120, 'a'}, Arch{89, 0}}) {
    for (const std::int64_t n : {1024, 4096, 28672}) {
      for (const std::int64_t m : {1, 9, 32}) {
        const Problem problem{Family::nvfp4_gemv, n, 4096, false, true};
        const Selection s = select_kernel(tables, arch, problem, m, true);
        EXPECT_EQ(s.nt, tables.pick_nt(arch, problem, m, true));
        EXPECT_EQ(s.is_served, s.nt != 0);
      }
    }
  }
}

TEST(Selection, ClassesHaveTheNamesOfMatches) {
  for (const Match match : {Match::exact, Match::predicted, Match::nearest_shape, Match::family_default}) {
    EXPECT_EQ(reason_token(reason_of(match)), match_name(match));
  }
}

}  // namespace
}  // namespace gemvjit
