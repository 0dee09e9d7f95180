// gemvjit-tune --predict: the rules that derive configurations, the way back from spills, and the table that is made.
#include "tools/gemvjit_tune/prediction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <mutex>

#include "src/catalog/kernel_flags.h"
#include "src/tuning/table_data.h"
#include "tests/support/temp_dir.h"
#include "tests/tools/subprocess.h"
#include "tools/gemvjit_tune/candidates.h"

namespace gemvjit::tools {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const Chip kH200{{{90, 'a'}}, 132, 4800};
const Chip kB200{{{100, 'a'}, {103, 'a'}}, 148, 8000};
const Chip kSm120{{{120, 'a'}}, 188, 1792, false};
const TuneCase kLarge{Family::nvfp4_gemv, 28672, 8192, false, 1};

Configuration with(std::function<void(TileConfig&)> set) {
  Configuration made{default_tile(), true};
  set(made.tile);
  return made;
}

// Spills where the test says so.
class FakeCompiler final : public Compiler {
 public:
  std::function<bool(const KernelSpec&)> spills = [](const KernelSpec&) { return false; };
  std::vector<std::string> keys;

  Result<Cubin> compile(const Recipe& recipe) override {
    const std::lock_guard lock(mutex_);
    keys.push_back(recipe.key.text());
    GEMVJIT_TRY_ASSIGN(const KernelSpec spec, describe_key(recipe.key));
    Cubin cubin;
    cubin.resources.spill_store_bytes = spills(spec) ? 8 : 0;
    return cubin;
  }
  std::string version() const override { return "Fake 1.0"; }
  std::string path() const override { return ""; }
  bool supports(const Arch&) const override { return true; }
  std::vector<int> supported_sms() const override { return {90, 100, 120}; }

 private:
  std::mutex mutex_;
};

TEST(Predict, ForTheSameChipNothingChanges) {
  for (const unsigned rounds : {1u, 7u, 13u}) {
    for (const unsigned stages : {1u, 2u, 4u, 8u}) {
      const Configuration measured = with([&](TileConfig& t) { t.rounds = rounds, t.stages = stages; });
      EXPECT_EQ(predict(kLarge, measured, kH200, kH200), measured) << measured.text();
    }
  }
}

TEST(Predict, RoundsKeepTheCtasOfAnSm) {
  const auto rounds = [&](unsigned measured, const Chip& to) {
    return predict(kLarge, with([&](TileConfig& t) { t.rounds = measured; }), kH200, to)->tile.rounds;
  };
  EXPECT_EQ(rounds(1, kB200), 1u);
  EXPECT_EQ(rounds(14, kB200), 13u);  // 12.49: with 12 an SM would get a second CTA
  EXPECT_EQ(rounds(14, kSm120), 10u);
  EXPECT_EQ(rounds(14, {{{121, 'a'}}, 48, 273}), 39u);
  EXPECT_EQ(rounds(40, {{{121, 'a'}}, 48, 273}), 63u);  // as many as there are
}

TEST(Predict, StagesFollowTheBandwidthOfAnSm) {
  const TuneCase one_cta_an_sm{Family::nvfp4_gemv, 2048, 16384, false, 1};
  const Configuration measured = with([](TileConfig& t) { t.stages = 4; });
  EXPECT_EQ(predict(one_cta_an_sm, measured, kH200, kB200)->tile.stages, 6u);
  // With several CTAs an SM, more stages cost registers and with them a CTA: nothing is gained.
  EXPECT_EQ(predict(kLarge, measured, kH200, kB200)->tile.stages, 4u);
  EXPECT_EQ(predict(kLarge, measured, kH200, kSm120)->tile.stages, 2u);  // 1.05, but a warp is to overlap
  const Configuration one = with([](TileConfig& t) { t.stages = 1; });
  EXPECT_EQ(predict(kLarge, one, kH200, kSm120)->tile.stages, 1u);
  Chip unknown = kB200;
  unknown.gb_per_s = 0;
  EXPECT_EQ(predict(one_cta_an_sm, measured, kH200, unknown)->tile.stages, 4u);
}

TEST(Predict, WhatDoesNotFitIntoSharedMemoryIsMadeSmaller) {
  const Configuration staged = with([](TileConfig& t) { t.warps_k = 4, t.x_path = 4, t.stages = 2; });
  ASSERT_TRUE(is_valid({Family::nvfp4_gemv, 28672, 8192, false, 4}, {{90, 'a'}, 132}, staged));
  const auto smaller = predict({Family::nvfp4_gemv, 28672, 8192, false, 4}, staged, kH200, kSm120);
  ASSERT_TRUE(smaller);
  EXPECT_LT(smaller->tile.x_path, 4u);
  EXPECT_GT(smaller->tile.x_path, 0u);
  EXPECT_EQ(smaller->tile.warps_k, staged.tile.warps_k);
  // A ring that is too large with one stage, too: another candidate.
  const TuneCase wide{Family::bf16_gemv, 28672, 8192, false, 4};
  const Configuration ring = with([](TileConfig& t) { t.variant = 1, t.warps_k = 16, t.row_tiles = 4, t.stages = 1; });
  const Chip roomy{{{100, 'a'}}, 148, 8000};
  if (is_valid(wide, {{100, 'a'}, 148}, ring)) {
    EXPECT_EQ(predict(wide, ring, kH200, roomy)->tile.row_tiles, 4u);
  }
  const auto other = predict(wide, ring, kH200, kSm120);
  ASSERT_TRUE(other);
  EXPECT_TRUE(is_valid(wide, {{120, 'a'}, 188}, *other)) << other->text();
}

TEST(Predict, ClustersOnlyWhereTheyMayBe) {
  const Configuration measured = with([](TileConfig& t) { t.cluster_k = 2; });
  const TuneCase small{Family::nvfp4_gemv, 1024, 8192, false, 1};
  EXPECT_EQ(predict(small, measured, kH200, kB200)->tile.cluster_k, 2u);
  EXPECT_EQ(predict(small, measured, kH200, kSm120)->tile.cluster_k, 1u);
}

TEST(Predict, StepsBackInOrder) {
  const auto steps = step_backs(with([](TileConfig& t) { t.min_ctas = 3, t.stages = 2, t.row_tiles = 2; }));
  std::vector<std::string> texts;
  for (const Configuration& one : steps) {
    texts.push_back(std::to_string(one.tile.min_ctas) + std::to_string(one.tile.stages) +
                    std::to_string(one.tile.row_tiles));
  }
  EXPECT_THAT(texts, ElementsAre("222", "122", "112", "121", "111"));
  EXPECT_THAT(step_backs(with([](TileConfig& t) { t.stages = 1; })), IsEmpty());
}

TEST(Predict, SettlesOnTheFirstWithoutSpillsOnAllTargets) {
  FakeCompiler compiler;
  const Configuration start = with([](TileConfig& t) { t.min_ctas = 2, t.stages = 4; });
  Settled settled = settle(kLarge, start, kB200.archs, compiler);
  EXPECT_EQ(settled.configuration, start);
  EXPECT_EQ(settled.steps, 0);
  EXPECT_EQ(settled.compiled, 2);
  compiler.spills = [](const KernelSpec& spec) {
    return spec.tile.min_ctas > 1 || (spec.key.arch.sm == 103 && spec.tile.stages > 3);
  };
  settled = settle(kLarge, start, kB200.archs, compiler);
  ASSERT_TRUE(settled.configuration);
  EXPECT_EQ(settled.configuration->tile.min_ctas, 1u);
  EXPECT_EQ(settled.configuration->tile.stages, 3u);
  EXPECT_EQ(settled.compiled, 1 + 2 + 2);
  compiler.spills = [](const KernelSpec&) { return true; };
  settled = settle(kLarge, start, kB200.archs, compiler);
  EXPECT_FALSE(settled.configuration);
  EXPECT_THAT(settled.failure, HasSubstr("spills"));
}

TEST(Predict, SamplesAreSpread) {
  EXPECT_THAT(spread_sample(10, 4), ElementsAre(0u, 2u, 5u, 7u));
  EXPECT_THAT(spread_sample(3, 100), ElementsAre(0u, 1u, 2u));
  EXPECT_THAT(spread_sample(3, 0), IsEmpty());
}

TEST(Predict, DefaultRowsKeepTheirMeaning) {
  const auto row = nlohmann::ordered_json::parse(
      R"({"family": "bf16_gemv", "nt": 2, "min_n": 1024, "max_n": 2048, "tile": {"warps_k": 8}, "pdl": false})");
  const auto one = default_case(row);
  ASSERT_TRUE(one) << one.status().text();
  EXPECT_EQ(one->tune_case.n, 2048);
  EXPECT_EQ(one->tune_case.nt, 2);
  EXPECT_FALSE(one->configuration.pdl);
  const auto made = predicted_row(row, with([](TileConfig& t) { t.stages = 2; }), 132, 148);
  EXPECT_EQ(made["min_n"], 1152);
  EXPECT_EQ(made["max_n"], 2304);
  EXPECT_EQ(made["pdl"], false);
  EXPECT_EQ(made["tile"]["stages"], 2);
  EXPECT_FALSE(default_case(nlohmann::ordered_json::parse(R"({"family": "bf16_gemv", "tile": {"warps": 8}})")));
}

// Two measured entries, a predicted one, and defaults.
const std::string kSource = R"({"schema": 1, "archs": ["sm_90a"],
  "measurements": {"a": {"gpu": "g", "driver": "d", "compiler": "c", "date": "2026-01-01", "sm_count": 132}},
  "entries": [
    {"family": "nvfp4_gemv", "n": 28672, "k": 8192, "nt": 1, "tile": {"warps_k": 8, "rounds": 14}, "pdl": false,
     "time_us": 30.0, "measurement": "a"},
    {"family": "nvfp4_gemv", "n": 28672, "k": 16384, "nt": 1, "tile": {"warps_k": 8, "rounds": 14}, "pdl": false,
     "time_us": 20.0, "measurement": "a"},
    {"family": "bf16_gemv", "n": 4096, "k": 4096, "nt": 1, "tile": {"warps_k": 8}, "predicted": true}],
  "defaults": [{"family": "nvfp4_gemv", "max_n": 1024, "tile": {"warps_k": 16, "stages": 2}},
               {"family": "nvfp4_gemv", "tile": {"warps_k": 8}}, {"family": "bf16_gemv", "tile": {"warps_k": 8}}]})";

TEST(Predict, MakesATableThatTheLibraryReads) {
  const auto source = TableFile::parse("source", kSource);
  ASSERT_TRUE(source) << source.status().text();
  FakeCompiler compiler;
  compiler.spills = [](const KernelSpec& spec) { return spec.tile.stages > 5; };
  WorkPool pool(2);
  const Chip from{{{90, 'a'}}, 0, 4800};  // the measurement has the SM count
  const auto report = predict_table(*source, from, kB200, 1, &compiler, pool);
  ASSERT_TRUE(report) << report.status().text();
  EXPECT_THAT(report->failures, IsEmpty());
  const std::string text = TableFile::predicted({"sm_100a", "sm_103a"}, report->entries, report->defaults).text();
  const auto table = parse_table("made", text);
  ASSERT_TRUE(table) << table.status().text();
  ASSERT_EQ(table->entries.size(), 2u);  // what was predicted itself is no source
  EXPECT_EQ(table->entries[0].k, 8192);
  for (const TunedEntry& entry : table->entries) {
    EXPECT_TRUE(entry.predicted);
    EXPECT_EQ(entry.time_us, 0);
    EXPECT_FALSE(entry.pdl);
    EXPECT_EQ(entry.tile.rounds, 13u);
    EXPECT_EQ(entry.tile.stages, 5u);  // 6, and a step back, which the one that was not compiled follows
  }
  ASSERT_EQ(table->defaults.size(), 3u);
  EXPECT_EQ(table->defaults[0].max_n, 1152);
  EXPECT_THAT(text, HasSubstr("\"measurements\": {}"));
  const auto entries_compiled = [](const std::vector<std::string>& keys) {
    return std::count_if(keys.begin(), keys.end(),
                         [](const std::string& key) { return key.find("28672") != std::string::npos; });
  };
  EXPECT_EQ(entries_compiled(compiler.keys), 1 + 2);  // of one entry: 6 stages on the first target, 5 on both
}

TEST(Predict, NeedsTheSmCountOfTheSource) {
  const auto source =
      TableFile::parse("source", R"({"schema": 1, "archs": ["sm_90a"], "entries": [], "defaults": []})");
  ASSERT_TRUE(source);
  WorkPool pool(1);
  EXPECT_FALSE(predict_table(*source, {{{90, 'a'}}, 0, 0}, kB200, 0, nullptr, pool));
  EXPECT_TRUE(predict_table(*source, kH200, kB200, 0, nullptr, pool));
}

test::ProgramOutput run(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), GEMVJIT_TUNE_BINARY);
  return test::Program(arguments, {}).wait();
}

TEST(PredictCommand, WritesATableAndKeepsWhatWasMeasured) {
  const test::TempDir folder;
  const std::string source = folder.path() + "/source.json", made = folder.path() + "/made.json";
  ASSERT_TRUE(publish_file(folder.path(), "source.json", kSource.data(), kSource.size()));
  const std::vector<std::string> all = {
      "--predict", "sm_100a,sm_103a",  "--sm-count", "148",   "--from", source, "--bandwidth",
      "8000",      "--from-bandwidth", "4800",       "--json"};
  const auto run_with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = all;
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments);
  };
  const auto output = run_with({"--output", made, "--sample-compile", "0"});
  ASSERT_EQ(output.exit_code, 0) << output.err;
  EXPECT_EQ(nlohmann::json::parse(output.out)["entries"], 2);
  const auto bytes = read_file(made, 1 << 20);
  ASSERT_TRUE(bytes);
  const auto table = parse_table(made, std::string(bytes->begin(), bytes->end()));
  ASSERT_TRUE(table) << table.status().text();
  EXPECT_THAT(table->archs, ElementsAre("sm_100a", "sm_103a"));
  EXPECT_EQ(run_with({"--output", made, "--sample-compile", "0"}).exit_code, 0);  // again
  const auto refused = run_with({"--output", source, "--sample-compile", "0"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("measured"));
  EXPECT_EQ(run_with({}).exit_code, 2);  // no --output
  EXPECT_EQ(run_with({"--output", made, "--shape", "64x128"}).exit_code, 2);
}

TEST(PredictCommand, RefusesTheTablesThatTheLibraryRefuses) {
  const test::TempDir folder;
  const std::string made = folder.path("made.json");
  const auto changed = [](const std::function<void(nlohmann::ordered_json&)>& change) {
    auto table = nlohmann::ordered_json::parse(kSource);
    change(table);
    return table.dump();
  };
  const auto run_from = [&](const std::string& source, const std::string& output) {
    return run(
        {"--predict", "sm_100a", "--sm-count", "148", "--from", source, "--output", output, "--sample-compile", "0"});
  };
  const std::pair<std::string, const char*> cases[] = {
      {std::string(200000, '['), "nested"},
      {changed([](auto& table) { table["entries"][0]["tile"]["warps_k"] = 0; }), "warps_k"},
      {changed([](auto& table) { table["entries"][0]["tile"]["cluster_k"] = 0; }), "cluster_k"},
      {changed([](auto& table) { table["defaults"][1]["tile"]["warps_k"] = 0; }), "warps_k"},
      {changed([](auto& table) { table["defaults"] = nlohmann::json::array(); }), "defaults"},
      {changed([](auto& table) { table["entries"][0]["pdl"] = "x"; }), "entries[0]: \"pdl\""},
  };
  for (const auto& [text, message] : cases) {
    const std::string bad = folder.write("bad.json", text);
    const auto output = run_from(bad, made);
    EXPECT_EQ(output.exit_code, 2) << message;
    EXPECT_THAT(output.err, testing::AllOf(HasSubstr(bad), HasSubstr(message)));
    EXPECT_FALSE(read_file(made, 1 << 20)) << message;
    // Nor is it overwritten.
    const auto over = run_from(folder.write("good.json", kSource), bad);
    EXPECT_EQ(over.exit_code, 2) << message;
    EXPECT_THAT(over.err, testing::AllOf(HasSubstr(bad), HasSubstr(message)));
  }
}

TEST(PredictCommand, BoundsOfAnySizeStayBounds) {
  const test::TempDir folder;
  const std::string made = folder.path("made.json");
  auto source = nlohmann::ordered_json::parse(kSource);
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  source["defaults"][0]["max_n"] = most;
  source["defaults"][0]["min_n"] = most;
  source["defaults"][0]["min_k"] = most;
  source["defaults"][1]["min_n"] = 1;  // no bound: scaled, it would be one
  const auto output = run({"--predict", "sm_100a", "--sm-count", "4096", "--from",
                           folder.write("source.json", source.dump()), "--output", made, "--sample-compile", "0"});
  ASSERT_EQ(output.exit_code, 0) << output.err;
  const auto table = parse_table(made, test::read_text(made));
  ASSERT_TRUE(table) << table.status().text();
  EXPECT_GT(table->defaults[0].max_n, std::int64_t{1} << 31);
  EXPECT_EQ(table->defaults[1].min_n, 1);
}

}  // namespace
}  // namespace gemvjit::tools
