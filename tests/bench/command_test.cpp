// gemvjit-bench as a command, where there is no device: an error with the documented exit code, and wrong use refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/subprocess.h"
#include "tools/verification/gpu_harness.h"

namespace gemvjit {
namespace {

using testing::HasSubstr;

test::ProgramOutput run(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), GEMVJIT_BENCH_BINARY);
  return test::Program(arguments, {}).wait();
}

TEST(BenchCommand, WithoutADeviceItSaysWhatIsMissing) {
  if (GpuHarness::open()) GTEST_SKIP() << "about machines without a CUDA device; this one has one";
  const auto output = run({"--shape", "64x128"});
  EXPECT_EQ(output.exit_code, 5);
  EXPECT_TRUE(output.out.empty());
  EXPECT_THAT(output.err, HasSubstr("libcuda"));
}

TEST(BenchCommand, RefusesWrongUse) {
  EXPECT_EQ(run({"--help"}).exit_code, 0);
  EXPECT_EQ(run({"--m", "33"}).exit_code, 2);
  EXPECT_EQ(run({"--family", "fp8"}).exit_code, 2);
  EXPECT_EQ(run({"--replays", "0"}).exit_code, 2);
  for (const char* shape : {"64", "x", "0x64", "64x-1", "64x64:gelu", "64x64 "}) {
    const auto output = run({"--shape", shape});
    EXPECT_EQ(output.exit_code, 2) << shape;
    EXPECT_THAT(output.err, HasSubstr("NxK or NxK:silu")) << shape;
  }
}

}  // namespace
}  // namespace gemvjit
