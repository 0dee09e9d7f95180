// The tuner's search with a timer of the test's own: how rounds follow each other, and what is chosen.
#include "tools/gemvjit_tune/search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace gemvjit::tools {
namespace {

using testing::HasSubstr;

Configuration configuration(unsigned warps_k, unsigned stages, bool pdl = true) {
  Configuration made{default_tile(), pdl};
  made.tile.warps_k = warps_k, made.tile.stages = stages;
  return made;
}

// Microseconds of a configuration; negative: it fails.
using Timer = std::function<double(const Configuration&)>;

struct Ran {
  std::vector<std::size_t> rounds;
  Choice choice;
};

Ran run(CaseSearch& search, const Timer& timer, double spread = 0.01) {
  Ran ran;
  for (auto round = search.next_round(); !round.empty(); round = search.next_round()) {
    ran.rounds.push_back(round.size());
    for (const Configuration& one : round) {
      Outcome outcome;
      outcome.configuration = one;
      outcome.us = timer(one), outcome.spread_us = spread, outcome.samples = 15;
      if (outcome.us < 0) outcome.failure = "wrong numbers";
      search.report(outcome);
    }
  }
  ran.choice = search.choose();
  return ran;
}

bool any(const Configuration&) { return true; }
bool up_to_16(const Configuration& one) {
  return one.tile.warps_k <= 16 && one.tile.warps_k * one.tile.warps_n <= 16 && one.tile.stages <= 8;
}

// Best at warps_k 16 and 6 stages; pdl helps.
double valley(const Configuration& one) {
  const double warps = one.tile.warps_k, stages = one.tile.stages;
  return 5 + std::abs(warps - 16) / 8 + std::abs(stages - 6) / 4 + one.tile.release + one.tile.row_tiles +
         one.tile.cluster_k + one.tile.warps_n + one.tile.x_path + (one.pdl ? 0 : 1);
}

TEST(Search, QuickTakesTheBestSeed) {
  CaseSearch search({configuration(2, 1), configuration(8, 3), configuration(4, 4)}, nullptr, any, quick_limits(3));
  const Ran ran = run(search, valley);
  EXPECT_THAT(ran.rounds, testing::ElementsAre(3u, 4u));  // the final: three, and the best without pdl
  EXPECT_EQ(ran.choice.best.configuration, configuration(8, 3));
  EXPECT_EQ(ran.choice.candidates, 4);
  EXPECT_FALSE(ran.choice.kept);
}

TEST(Search, HopelessIsThreeTimesAsSlowAsTheBest) {
  CaseSearch search({configuration(8, 4), configuration(4, 2)}, nullptr, any, quick_limits(4));
  search.next_round();
  Outcome slow, failed, best;
  slow.configuration = configuration(2, 1), slow.us = 31;
  EXPECT_FALSE(search.is_hopeless(slow));  // nothing to compare with
  failed.configuration = configuration(4, 2), failed.failure = "wrong numbers";
  search.report(failed);
  EXPECT_FALSE(search.is_hopeless(slow));
  best.configuration = configuration(8, 4), best.us = 10;
  search.report(best);
  EXPECT_TRUE(search.is_hopeless(slow));
  slow.us = 29;
  EXPECT_FALSE(search.is_hopeless(slow));
}

TEST(Search, ThoroughFindsWhatNoSeedWas) {
  CaseSearch search({configuration(8, 4), configuration(4, 2)}, nullptr, up_to_16, thorough_limits(30));
  const Ran ran = run(search, valley);
  ASSERT_EQ(ran.rounds.size(), 3u);
  EXPECT_LE(ran.rounds[0] + ran.rounds[1], 30u);
  EXPECT_LT(ran.choice.best.us, valley(configuration(8, 4)));
}

TEST(Search, RefiningKeepsToTheLimit) {
  CaseSearch search({configuration(8, 4), configuration(4, 2)}, nullptr, up_to_16, thorough_limits(5));
  const Ran ran = run(search, valley);
  EXPECT_EQ(ran.rounds[0] + ran.rounds[1], 5u);
}

// B107.
TEST(Search, PdlOffIsChosenWhereItWins) {
  CaseSearch search({configuration(8, 4)}, nullptr, any, quick_limits(8));
  const Ran ran = run(search, [](const Configuration& one) { return one.pdl ? 6.0 : 5.0; });
  EXPECT_EQ(ran.choice.best.configuration, configuration(8, 4, false));
}

TEST(Search, PdlStaysOnWithinTheNoise) {
  CaseSearch search({configuration(8, 4)}, nullptr, any, quick_limits(8));
  const Ran ran = run(
      search, [](const Configuration& one) { return one.pdl ? 5.15 : 5.0; }, 0.1);
  EXPECT_TRUE(ran.choice.best.configuration.pdl);
}

TEST(Search, FailuresAreCountedAndNeverChosen) {
  CaseSearch search({configuration(1, 1), configuration(2, 1), configuration(4, 1)}, nullptr, any, quick_limits(3));
  const Ran ran = run(search, [](const Configuration& one) { return one.tile.warps_k == 4 && one.pdl ? 9.0 : -1.0; });
  EXPECT_TRUE(ran.choice.found);
  EXPECT_EQ(ran.choice.best.configuration, configuration(4, 1));
  EXPECT_EQ(ran.choice.failed, 3);  // two seeds, and the third without pdl
  EXPECT_THAT(ran.choice.first_failure, HasSubstr("wrong numbers"));
  EXPECT_EQ(ran.choice.candidates, 1);
}

TEST(Search, NothingWorks) {
  CaseSearch search({configuration(1, 1)}, nullptr, any, quick_limits(3));
  const Ran ran = run(search, [](const Configuration&) { return -1.0; });
  EXPECT_FALSE(ran.choice.found);
  EXPECT_EQ(ran.choice.failed, 1);
}

// One that was right in the first round and fails in the final does not count as timed.
TEST(Search, AFailureInTheFinalExcludes) {
  CaseSearch search({configuration(1, 1), configuration(2, 1)}, nullptr, any, quick_limits(3));
  const Ran ran = run(search, [&](const Configuration& one) {
    if (search.in_final() && one.tile.warps_k == 1) return -1.0;
    return static_cast<double>(one.tile.warps_k);
  });
  EXPECT_EQ(ran.choice.best.configuration.tile.warps_k, 2u);
  EXPECT_EQ(ran.choice.failed, 2);  // with and without pdl
}

TEST(Search, ThePresentChoiceStaysWithinTheNoise) {
  const Configuration present = configuration(16, 8);
  const auto timer = [&](double present_us) {
    return [=](const Configuration& one) { return one == present ? present_us : one.tile.warps_k == 8 ? 5.0 : 7.0; };
  };
  {
    CaseSearch search({configuration(8, 4), configuration(4, 4)}, &present, any, quick_limits(2));
    const Ran ran = run(search, timer(5.19), 0.1);
    EXPECT_TRUE(ran.choice.kept);
    EXPECT_EQ(ran.choice.best.configuration, present);
    EXPECT_DOUBLE_EQ(ran.choice.best.us, 5.19);  // as it was measured now
  }
  CaseSearch search({configuration(8, 4), configuration(4, 4)}, &present, any, quick_limits(2));
  const Ran ran = run(search, timer(5.21), 0.1);
  EXPECT_FALSE(ran.choice.kept);
  EXPECT_EQ(ran.choice.best.configuration.tile.warps_k, 8u);
}

// It takes part even if it does badly, so that its time is from the same final.
TEST(Search, ThePresentChoiceIsAlwaysInTheFinal) {
  const Configuration present = configuration(1, 8);
  std::vector<Configuration> seeds;
  for (const unsigned stages : {1u, 2u, 3u, 4u, 6u, 8u}) seeds.push_back(configuration(16, stages));
  CaseSearch search(seeds, &present, any, quick_limits(6));
  bool seen = false;
  run(search, [&](const Configuration& one) {
    seen = seen || (search.in_final() && one == present);
    return valley(one);
  });
  EXPECT_TRUE(seen);
}

TEST(Search, APresentChoiceThatIsNoneAnyMoreIsReplaced) {
  const Configuration present = configuration(16, 8);
  CaseSearch search(
      {configuration(8, 4)}, &present, [&](const Configuration& one) { return !(one == present); }, quick_limits(2));
  const Ran ran = run(search, valley);
  EXPECT_EQ(ran.choice.best.configuration, configuration(8, 4));
  EXPECT_EQ(ran.choice.failed, 0);
}

}  // namespace
}  // namespace gemvjit::tools
