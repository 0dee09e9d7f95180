// B77, B82: a warmup split over ranks, and one that ends when its time is over and goes on when it is run again.
#include <gtest/gtest.h>

#include <set>

#include "tests/tools/cli_fixture.h"
#include "tools/gemvjit_warmup/budget.h"

namespace gemvjit::test {
namespace {

class WarmupShards : public CliTest {
 protected:
  // Keys of `arguments` with --dry-run.
  std::vector<std::string> planned(std::vector<std::string> arguments) const {
    arguments.insert(arguments.end(), {"--dry-run", "--json", "-q"});
    const ProgramOutput output = warmup(arguments);
    EXPECT_EQ(output.exit_code, 0) << output.err;
    std::vector<std::string> keys;
    const nlohmann::json plan = document(output);
    for (const auto& result : plan["results"]) keys.push_back(result["key"]);
    return keys;
  }
  static std::vector<std::string> with(std::vector<std::string> arguments, const std::vector<std::string>& more) {
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  const std::vector<std::string> many_{"--shape",         "4096x4096", "--shape",      "6144x4096:bf16", "--shape",
                                       "28672x4096:silu", "--arch",    "sm_90a,sm_80", "--pdl",          "both"};
};

TEST_F(WarmupShards, AreDisjointAndCoverAll) {
  const std::vector<std::string> all = planned(many_);
  const std::set<std::string> expected(all.begin(), all.end());
  ASSERT_EQ(expected.size(), all.size());
  ASSERT_GT(all.size(), 20u);
  for (const int count : {2, 3, 7}) {
    std::set<std::string> together;
    std::size_t least = all.size(), most = 0, sum = 0;
    for (int index = 0; index < count; ++index) {
      const std::string shard = std::to_string(index) + "/" + std::to_string(count);
      const auto keys = planned(with(many_, {"--shard", shard}));
      together.insert(keys.begin(), keys.end());
      sum += keys.size();
      least = std::min(least, keys.size());
      most = std::max(most, keys.size());
    }
    EXPECT_EQ(together, expected) << count;
    EXPECT_EQ(sum, all.size()) << count << ": none twice";
    EXPECT_LE(most - least, 1u) << count;
  }
}

// Each rank is told the same shapes, in whatever order.
TEST_F(WarmupShards, DoNotDependOnTheOrderOfTheShapes) {
  const auto sorted = [](std::vector<std::string> keys) {
    std::sort(keys.begin(), keys.end());
    return keys;
  };
  const std::vector<std::string> other{"--arch",          "sm_80,sm_90a", "--pdl",          "both",    "--shape",
                                       "28672x4096:silu", "--shape",      "6144x4096:bf16", "--shape", "4096x4096"};
  for (const char* shard : {"0/3", "2/3"}) {
    EXPECT_EQ(sorted(planned(with(many_, {"--shard", shard}))), sorted(planned(with(other, {"--shard", shard}))));
  }
}

TEST_F(WarmupShards, WhatIsNoShardIsWrongUse) {
  for (const char* shard : {"1", "/", "1/", "/2", "2/2", "3/2", "-1/2", "0/0", "0/-1", "a/2", "0/2x", "0/5000", "0 /2",
                            "99999999999/999999999999"}) {
    const ProgramOutput output = warm_one_kernel({"--shard", shard, "--dry-run"});
    EXPECT_EQ(output.exit_code, 2) << shard;
    EXPECT_TRUE(contains(output.err, "0 <= I < N")) << output.err;
  }
}

// Ranks of a node fill one cache: each kernel is compiled by one of them, and together it is warm.
TEST_F(WarmupShards, TogetherFillTheCache) {
  const std::vector<std::string> shapes{"--shape", "64x64:dequant", "--shape", "128x64:dequant", "--arch", "sm_90a"};
  EXPECT_EQ(warmup(with(shapes, {"--shard", "0/2"})).exit_code, 0);
  EXPECT_EQ(entry_files(cache_dir_).size(), 1u);
  EXPECT_EQ(warmup(with(shapes, {"--check"})).exit_code, 9);
  EXPECT_EQ(warmup(with(shapes, {"--check", "--shard", "0/2"})).exit_code, 0);
  const auto second = document(warmup(with(shapes, {"--shard", "1/2", "--json"})));
  EXPECT_EQ(second["summary"]["compiled"], 1);
  EXPECT_EQ(warmup(with(shapes, {"--check"})).exit_code, 0);
  EXPECT_EQ(warmup(with(shapes, {"--shard", "5/8"})).exit_code, 0) << "a rank without a kernel is done";
}

// B82: no compile takes as little as a millisecond, so that one is finished and the other never begun.
TEST_F(WarmupShards, TimeThatIsOverLeavesTheRestForTheNextRun) {
  const std::vector<std::string> shapes{
      "--shape", "64x64:dequant", "--shape", "128x64:dequant", "--arch", "sm_90a", "-j", "1", "--json"};
  const ProgramOutput first = warmup(with(shapes, {"--max-seconds", "0.001"}));
  EXPECT_EQ(first.exit_code, 9) << first.err;
  EXPECT_TRUE(contains(first.err, "1 kernels are left: run again")) << first.err;
  const auto summary = document(first)["summary"];
  EXPECT_EQ(summary["total"], 2);
  EXPECT_EQ(summary["compiled"], 1);
  EXPECT_EQ(summary["left"], 1);
  EXPECT_EQ(entry_files(cache_dir_).size(), 1u) << "what was begun is kept";
  const ProgramOutput second = warmup(with(shapes, {"--max-seconds", "3600"}));
  EXPECT_EQ(second.exit_code, 0) << second.err;
  const auto rest = document(second)["summary"];
  EXPECT_EQ(rest["compiled"], 1);
  EXPECT_EQ(rest["cached"], 1);
  EXPECT_EQ(rest["left"], 0);
}

TEST_F(WarmupShards, ATimeThatIsNoneIsWrongUse) {
  for (const char* seconds : {"0", "-1", "soon", "nan", ""}) {
    EXPECT_EQ(warm_one_kernel({"--max-seconds", seconds}).exit_code, 2) << seconds;
  }
}

TEST(WarmupBudget, IsSpentAfterItsTimeByItsClock) {
  double now = 1000;
  const tools::Budget budget(5, [&] { return now; });
  EXPECT_FALSE(budget.is_spent());
  now = 1004.9;
  EXPECT_FALSE(budget.is_spent());
  now = 1005;
  EXPECT_TRUE(budget.is_spent());
  const tools::Budget unlimited(0, [&] { return now; });
  now = 1e12;
  EXPECT_FALSE(unlimited.is_spent());
}

}  // namespace
}  // namespace gemvjit::test
