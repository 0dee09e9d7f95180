// Both tools on a cache folder of the test's own, with nothing of this machine's environment in the way.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/temp_dir.h"
#include "tests/tools/subprocess.h"

namespace gemvjit::test {

inline std::vector<std::filesystem::path> entry_files(const std::string& folder) {
  std::vector<std::filesystem::path> files;
  if (!std::filesystem::exists(folder)) return files;
  for (const auto& item : std::filesystem::recursive_directory_iterator(folder)) {
    if (item.path().extension() == ".entry") files.push_back(item.path());
  }
  return files;
}

// Changes one byte in the middle of a file.
inline void damage(const std::filesystem::path& file) {
  std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
  const auto middle = static_cast<std::streamoff>(std::filesystem::file_size(file) / 2);
  stream.seekg(middle);
  const int byte = stream.get();
  stream.seekp(middle);
  stream.put(static_cast<char>(byte ^ 1));
}

class CliTest : public testing::Test {
 protected:
  // One kernel: nothing compiles faster.
  static std::vector<std::string> one_kernel() { return {"--shape", "64x64:dequant", "--arch", "sm_90a"}; }

  ProgramOutput warmup(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), GEMVJIT_WARMUP_BINARY);
    return run_program(arguments, environment_);
  }
  ProgramOutput cache(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), GEMVJIT_CACHE_BINARY);
    return run_program(arguments, environment_);
  }
  // The message of {"error": {"message", "exit_code"}} on stdout, which must be all that is there and fit the exit
  // code.
  static std::string error_message(const ProgramOutput& output) {
    const nlohmann::json json = document(output);
    EXPECT_EQ(json.size(), 1u) << output.out;
    if (!json.contains("error")) return "no error";
    EXPECT_EQ(json["error"]["exit_code"], output.exit_code) << output.out;
    return json["error"]["message"];
  }
  ProgramOutput warm_one_kernel(std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments = one_kernel();
    arguments.insert(arguments.end(), more.begin(), more.end());
    return warmup(arguments);
  }
  // The document on stdout; a failure, and null, if that is not just one.
  static nlohmann::json document(const ProgramOutput& output) {
    nlohmann::json json = nlohmann::json::parse(output.out, nullptr, false);
    EXPECT_FALSE(json.is_discarded()) << "stdout is no JSON document:\n" << output.out << output.err;
    return json.is_discarded() ? nlohmann::json() : json;
  }

  TempDir folder_;
  std::string cache_dir_ = folder_.path("cache");
  Environment environment_{{"GEMVJIT_CACHE_DIR", cache_dir_},
                           {"GEMVJIT_CONFIG", "none"},
                           {"GEMVJIT_CACHE_RO", ""},
                           {"GEMVJIT_CACHE_SIGNATURES", ""},
                           {"GEMVJIT_CACHE_TRUST_DIR", ""},
                           {"GEMVJIT_CACHE_SIGNING_KEY", ""},
                           {"GEMVJIT_TUNING_DIR", ""},
                           {"GEMVJIT_LOG", ""},
                           {"GEMVJIT_COMPILE_THREADS", "1"},
                           {"GEMVJIT_DUMP_DIR", ""}};
};

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace gemvjit::test
