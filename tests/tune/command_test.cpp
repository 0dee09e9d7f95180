// gemvjit-tune as a command: wrong use, machines without a device, --list.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/tools/subprocess.h"
#include "tools/verification/gpu_harness.h"

namespace gemvjit {
namespace {

using testing::HasSubstr;

test::ProgramOutput run(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), GEMVJIT_TUNE_BINARY);
  return test::Program(arguments, {}).wait();
}

TEST(TuneCommand, WithoutADeviceItSaysWhatIsMissing) {
  if (GpuHarness::open()) GTEST_SKIP() << "about machines without a CUDA device; this one has one";
  const auto output = run({"--shape", "64x128"});
  EXPECT_EQ(output.exit_code, 5);
  EXPECT_TRUE(output.out.empty());
  EXPECT_THAT(output.err, HasSubstr("libcuda"));
}

TEST(TuneCommand, RefusesWrongUse) {
  EXPECT_EQ(run({"--help"}).exit_code, 0);
  EXPECT_EQ(run({}).exit_code, 2);
  EXPECT_EQ(run({"--shape", "64"}).exit_code, 2);
  EXPECT_EQ(run({"--shape", "63x128"}).exit_code, 2);
  EXPECT_EQ(run({"--shape", "64x128", "--nt", "3"}).exit_code, 2);
  EXPECT_EQ(run({"--shape", "64x128", "--search", "lazy"}).exit_code, 2);
  EXPECT_EQ(run({"--shape", "64x128", "--list"}).exit_code, 2);
  EXPECT_EQ(run({"--shape", "64x128", "--list", "--arch", "sm_70", "--sm-count", "80"}).exit_code, 2);
  EXPECT_EQ(run({"--shapes-file", "/no/such/file.json"}).exit_code, 4);
}

TEST(TuneCommand, RefusesWhatIsNoQuantity) {
  for (const char* option : {"--bandwidth", "--from-bandwidth", "--budget", "--kernel-timeout"}) {
    for (const char* value : {"nan", "inf", "-1", "0", "1e300", "x"}) {
      const auto output = run({"--shape", "64x128", "--list", "--arch", "sm_90a", "--sm-count", "132", option, value});
      EXPECT_EQ(output.exit_code, 2) << option << " " << value;
      EXPECT_THAT(output.err, HasSubstr(option));
      EXPECT_LT(output.err.size(), 200u) << output.err;
    }
    EXPECT_EQ(run({"--shape", "64x128", "--list", "--arch", "sm_90a", "--sm-count", "132", option, "2.5"}).exit_code,
              0);
  }
}

TEST(TuneCommand, TakesTargetsInAnySpelling) {
  const auto list = [](const char* arch) {
    return run({"--shape", "4096x4096", "--nt", "1", "--family", "nvfp4", "--list", "--arch", arch, "--sm-count", "132",
                "--search", "quick", "--json"});
  };
  const std::string plain = list("sm_90a").out;
  for (const char* arch : {"hopper", "9.0a", "90a", "Compute_90a"}) EXPECT_EQ(list(arch).out, plain) << arch;
  EXPECT_THAT(list("blackwell").err, HasSubstr("a search is for one of them"));
  EXPECT_THAT(list("hoper").err, HasSubstr("did you mean hopper?"));
  EXPECT_THAT(list("sm_90f").err, HasSubstr("no NVRTC builds for sm_90f"));
  EXPECT_EQ(list("native").exit_code, 2) << "a list asks no GPU";
  for (const char* targets : {"hoper", "native"}) {
    const auto predicted = run({"--predict", targets, "--sm-count", "148", "--from", "/no/table", "--output", "/no/x"});
    EXPECT_EQ(predicted.exit_code, 2);
    EXPECT_THAT(predicted.err, HasSubstr("--predict"));
  }
  const auto known = run({"--predict", "blackwell", "--sm-count", "148", "--from", "/no/table", "--output", "/no/x"});
  EXPECT_THAT(known.err, HasSubstr("/no/table")) << "its targets are understood";
}

TEST(TuneCommand, ListsCandidatesWithoutADevice) {
  const auto output = run({"--shape", "4096x4096", "--nt", "1,4", "--family", "nvfp4", "--list", "--arch", "sm_90a",
                           "--sm-count", "132", "--search", "quick", "--json"});
  ASSERT_EQ(output.exit_code, 0) << output.err;
  const auto json = nlohmann::json::parse(output.out);
  ASSERT_EQ(json["cases"].size(), 2u);
  EXPECT_EQ(json["cases"][0]["candidates"].size(), 8u);
  EXPECT_GT(json["cases"][1]["candidates"][0]["model_us"].get<double>(), 0);
  EXPECT_TRUE(json["cases"][1]["candidates"][0]["tile"].contains("warps_k"));
}

}  // namespace
}  // namespace gemvjit
