// gemvjit-tune from end to end on a libcuda that computes on the host (computing_libcuda.cpp): kernels are
// really compiled, checked and chosen; only their times are made up.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "src/cuda/nvrtc_api.h"
#include "tests/support/temp_dir.h"
#include "tests/tools/subprocess.h"

namespace gemvjit {
namespace {

using testing::HasSubstr;

class TuneRun : public testing::Test {
 protected:
  void SetUp() override {
    const auto nvrtc = cuda::load_nvrtc(cuda::nvrtc_search_from_environment(), 90, "compile kernels");
    if (!nvrtc) GTEST_SKIP() << nvrtc.status().text();
  }
  test::ProgramOutput run(std::vector<std::string> more, test::Environment environment = {}) {
    std::vector<std::string> arguments = {GEMVJIT_TUNE_BINARY,
                                          "--shape",
                                          "64x1024",
                                          "--family",
                                          "bf16",
                                          "--nt",
                                          "2",
                                          "--search",
                                          "quick",
                                          "--max-candidates",
                                          "4",
                                          "--output",
                                          table(),
                                          "--samples",
                                          dir_.path("samples.jsonl"),
                                          "-j2",
                                          "--cache-dir",
                                          dir_.path("cache")};
    if (std::find(more.begin(), more.end(), "--cublaslt") == more.end()) arguments.push_back("--no-alternative");
    arguments.insert(arguments.end(), more.begin(), more.end());
    environment["LD_LIBRARY_PATH"] = COMPUTING_LIBCUDA_FOLDER;
    environment["FAKE_N"] = "64";
    return test::Program(arguments, environment).wait();
  }
  // A run that has to end with this exit code; what it said is in the test's output if not.
  void run_to(int exit_code, std::vector<std::string> more, test::Environment environment = {}) {
    const auto output = run(std::move(more), std::move(environment));
    ASSERT_EQ(output.exit_code, exit_code) << output.err << output.out;
  }
  std::string table() const { return dir_.path("table.json"); }
  nlohmann::json entry(std::size_t index = 0) const {
    return nlohmann::json::parse(test::read_text(table()))["entries"][index];
  }
  std::size_t sample_lines() const {
    const std::string text = test::read_text(dir_.path("samples.jsonl"));
    return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  }
  static unsigned threads(const nlohmann::json& tile) {
    return 32 * tile.value("warps_k", 8u) * tile.value("warps_n", 1u);
  }
  test::TempDir dir_;
};

TEST_F(TuneRun, ChoosesTheFastestAndWritesATable) {
  const auto output = run({"--commit", "abc"});
  ASSERT_EQ(output.exit_code, 0) << output.err << output.out;
  EXPECT_THAT(output.out, HasSubstr("1 cases finished, 0 left"));
  const auto json = nlohmann::json::parse(test::read_text(table()));
  ASSERT_EQ(json["entries"].size(), 1u);
  EXPECT_EQ(json["entries"][0]["samples"], 15);
  EXPECT_GE(json["entries"][0]["candidates"], 4);
  const auto& measurement = json["measurements"][json["entries"][0]["measurement"].get<std::string>()];
  EXPECT_EQ(measurement["gpu"], "Fake GPU");
  EXPECT_EQ(measurement["commit"], "abc");
  EXPECT_EQ(measurement["sm_clock_mhz"], 1980);
  // What was timed is what was chosen from: none of the samples is faster.
  const double us = json["entries"][0]["time_us"].get<double>();
  EXPECT_NEAR(us, 2 + std::abs(threads(json["entries"][0]["tile"]) - 256.0) / 64, 1e-3);
  const std::string samples = test::read_text(dir_.path("samples.jsonl"));
  std::istringstream lines(samples);
  for (std::string line; std::getline(lines, line);) {
    const auto sample = nlohmann::json::parse(line);
    for (const double one : sample["samples_us"][0]) EXPECT_GE(one, us - 1e-3);
  }
}

TEST_F(TuneRun, TheNextRunMeasuresNothingAgain) {
  ASSERT_NO_FATAL_FAILURE(run_to(0, {}));
  const std::size_t lines = sample_lines();
  const auto first = entry();
  // A device on which every launch would be fatal: nothing is launched.
  const auto output = run({}, {{"FAKE_FATAL", std::to_string(threads(first["tile"]))}});
  EXPECT_EQ(output.exit_code, 0) << output.err;
  EXPECT_EQ(sample_lines(), lines);
  EXPECT_EQ(entry(), first);
}

TEST_F(TuneRun, WrongNumbersAreExcludedAndReported) {
  ASSERT_NO_FATAL_FAILURE(run_to(0, {}));
  const unsigned fastest = threads(entry()["tile"]);
  std::remove(dir_.path("samples.jsonl").c_str());
  std::remove(table().c_str());
  const auto output = run({"--json"}, {{"FAKE_WRONG", std::to_string(fastest)}});
  ASSERT_EQ(output.exit_code, 0) << output.err;
  EXPECT_NE(threads(entry()["tile"]), fastest);
  const auto json = nlohmann::json::parse(output.out);
  EXPECT_GE(json["cases"][0]["excluded"], 1);
  EXPECT_THAT(json["cases"][0]["first_failure"].get<std::string>(), HasSubstr("wrong numbers at M = 16"));
}

TEST_F(TuneRun, AKernelThatKillsTheDeviceIsLeftAloneByTheNextRun) {
  ASSERT_NO_FATAL_FAILURE(run_to(0, {}));
  const std::string fatal = std::to_string(threads(entry()["tile"]));
  std::remove(dir_.path("samples.jsonl").c_str());
  std::remove(table().c_str());
  const auto output = run({}, {{"FAKE_FATAL", fatal}});
  EXPECT_EQ(output.exit_code, 3);
  EXPECT_THAT(output.err, HasSubstr("Run again"));
  // As many runs as there are such kernels; each gets farther.
  int runs = 0;
  for (int exit_code = 3; exit_code == 3 && runs < 8; ++runs) exit_code = run({}, {{"FAKE_FATAL", fatal}}).exit_code;
  EXPECT_LT(runs, 8);
  EXPECT_NE(std::to_string(threads(entry()["tile"])), fatal);
}

TEST_F(TuneRun, AKernelThatNeverEndsIsLeftAloneByTheNextRun) {
  const std::vector<std::string> soon = {"--kernel-timeout", "0.2"};
  int runs = 0, exit_code = 3;
  for (; exit_code == 3 && runs < 8; ++runs) exit_code = run(soon, {{"FAKE_HANG", "128"}}).exit_code;
  EXPECT_EQ(exit_code, 0);
  EXPECT_GT(runs, 1);
  EXPECT_NE(threads(entry()["tile"]), 128u);
}

TEST_F(TuneRun, ABudgetStopsCleanly) {
  const auto output = run({"--budget", "0.000001"});
  EXPECT_EQ(output.exit_code, 0) << output.err;
  EXPECT_THAT(output.err, HasSubstr("1 cases are left"));
}

TEST_F(TuneRun, SeveralDevicesShareTheCases) {
  const auto output = run({"--devices", "0,1", "--shape", "64x512", "--shape", "64x2048"}, {{"FAKE_DEVICES", "2"}});
  ASSERT_EQ(output.exit_code, 0) << output.err;
  EXPECT_EQ(nlohmann::json::parse(test::read_text(table()))["entries"].size(), 3u);
  run_to(5, {"--devices", "5"});
}

TEST_F(TuneRun, WithoutCublasLtItSaysSoOnceAndGoesOn) {
  const std::string missing = dir_.path("libcublasLt.so.13");
  const auto output = run({"--cublaslt", missing, "--devices", "0,1"}, {{"FAKE_DEVICES", "2"}});
  EXPECT_EQ(output.exit_code, 0);
  const std::size_t first = output.err.find("cuBLASLt is not timed");
  ASSERT_NE(first, std::string::npos) << output.err;
  EXPECT_THAT(output.err, HasSubstr(missing));
  EXPECT_EQ(output.err.find("cuBLASLt is not timed", first + 1), std::string::npos);
  EXPECT_FALSE(entry().contains("alternative_us"));
}

TEST_F(TuneRun, ABaselineIsTheAlternative) {
  const std::string baseline = dir_.write(
      "baseline.json", R"([{"family": "bf16", "n": 64, "k": 1024, "m": 16, "us": 1.25, "name": "another"}])");
  ASSERT_NO_FATAL_FAILURE(run_to(0, {"--baseline", baseline}));
  EXPECT_EQ(entry()["alternative"], "another");
  EXPECT_DOUBLE_EQ(entry()["alternative_us"], 1.25);
}

}  // namespace
}  // namespace gemvjit
