// gemvjit-warmup --check where an entry is there that cannot be read, or that others may write: a kernel that a context
// would build again, so it is missing, with the reason; what is damaged has an exit code of its own.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "cache/store.h"
#include "src/compile/specialize.h"
#include "tests/support/entries.h"
#include "tests/tools/cli_fixture.h"

namespace gemvjit::test {
namespace {

class UnreadableCli : public CliTest {
 protected:
  // A kernel's entry, made up; its file.
  std::string put_entry() {
    const nlohmann::json named = document(warmup(check_));
    Entry made = sample_entry();
    made.id = specialize(*KernelKey::parse(named["results"][0]["key"].get<std::string>()))->id();
    const auto store = make_dir_store(cache_dir_, Log::silent());
    EXPECT_TRUE(store->put(made));
    EXPECT_EQ(document(warmup(check_))["results"][0]["status"], "cached");
    return store->path_of(made.id);
  }
  void expect_unreadable(const std::string& reason) {
    const ProgramOutput output = warmup(check_);
    EXPECT_EQ(output.exit_code, 9) << output.err;
    const nlohmann::json result = document(output)["results"][0];
    EXPECT_EQ(result["status"], "missing");
    EXPECT_TRUE(contains(result["error"], "unreadable: ")) << result;
    EXPECT_TRUE(contains(result["error"], reason)) << result;
    EXPECT_EQ(result["nearest"], nullptr);
    std::vector<std::string> for_people = check_;
    for_people.pop_back();
    EXPECT_TRUE(contains(warmup(for_people).out, reason));
  }

  std::vector<std::string> check_ = {"--shape", "64x64:dequant", "--arch", "sm_90a", "--check", "--json"};
};

TEST_F(UnreadableCli, AFolderInItsPlaceIsDamage) {
  const std::string file = put_entry();
  std::filesystem::remove(file);
  std::filesystem::create_directory(file);
  EXPECT_EQ(warmup(check_).exit_code, 7) << "damaged: nobody can use it";
}

TEST_F(UnreadableCli, WhatOthersMayWriteIsAMissWithTheReason) {
  const std::string file = put_entry();
  ASSERT_EQ(::chmod(file.c_str(), 0666), 0);
  expect_unreadable("all users may write it");
  ASSERT_EQ(::chmod(file.c_str(), 0600), 0);
  std::filesystem::resize_file(file, 60);
  EXPECT_EQ(warmup(check_).exit_code, 7) << "damaged";
}

}  // namespace
}  // namespace gemvjit::test
