// gemvjit-verify as a command, where there is no device: it says so and succeeds, and still refuses wrong use.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "tools/verification/gpu_harness.h"

namespace gemvjit {
namespace {

struct Output {
  int exit_code = -1;
  std::string text;  // stdout and stderr
};

Output run(const std::string& arguments) {
  Output output;
  FILE* pipe = popen(("exec 2>&1; " GEMVJIT_VERIFY_BINARY " " + arguments).c_str(), "r");
  if (pipe == nullptr) return output;
  std::array<char, 4096> part;
  for (std::size_t size; (size = fread(part.data(), 1, part.size(), pipe)) > 0;) output.text.append(part.data(), size);
  const int status = pclose(pipe);
  output.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return output;
}

class NoDeviceTest : public testing::Test {
 protected:
  void SetUp() override {
    if (GpuHarness::open()) GTEST_SKIP() << "about machines without a CUDA device; this one has one";
  }
};

TEST_F(NoDeviceTest, SaysSoInOneLineAndSucceeds) {
  const Output output = run("--nvfp4 no-such-folder --bf16 no-such-folder");
  EXPECT_EQ(output.exit_code, 0);
  EXPECT_EQ(std::count(output.text.begin(), output.text.end(), '\n'), 1) << output.text;
  EXPECT_NE(output.text.find("no supported GPU, nothing was run"), std::string::npos) << output.text;
}

TEST_F(NoDeviceTest, JsonSaysItToo) {
  const Output output = run("--launch-overhead --json");
  EXPECT_EQ(output.exit_code, 0);
  const auto document = nlohmann::json::parse(output.text, nullptr, false);
  ASSERT_FALSE(document.is_discarded()) << output.text;
  EXPECT_TRUE(document.at("device").is_null());
  EXPECT_TRUE(document.at("results").empty());
  EXPECT_FALSE(document.at("skipped").get<std::string>().empty());
}

TEST(VerifyCommand, RefusesWrongUse) {
  EXPECT_EQ(run("").exit_code, 2);
  EXPECT_EQ(run("--m 0 --bf16 x").exit_code, 2);
  EXPECT_EQ(run("--m 33 --bf16 x").exit_code, 2);
  EXPECT_EQ(run("--no-such-option").exit_code, 2);
  EXPECT_EQ(run("--bf16 x --cache-dir ''").exit_code, 2);
  EXPECT_EQ(run("--help").exit_code, 0);
}

TEST(VerifyCommand, WithJsonAnErrorIsADocumentToo) {
  const Output output = run("--json --m 33 --bf16 x 2>/dev/null");
  EXPECT_EQ(output.exit_code, 2);
  const auto document = nlohmann::json::parse(output.text, nullptr, false);
  ASSERT_FALSE(document.is_discarded()) << output.text;
  EXPECT_EQ(document.at("error").at("exit_code"), 2);
  EXPECT_NE(document.at("error").at("message").get<std::string>().find("--m"), std::string::npos);
}

TEST(VerifyCommand, AResultThatCannotBeWrittenIsFive) {
  if (access("/dev/full", W_OK) != 0) GTEST_SKIP() << "there is no /dev/full here";
  EXPECT_EQ(run("--help 2>/dev/null >/dev/full").exit_code, 5);
}

}  // namespace
}  // namespace gemvjit
