#include "cache/build_records.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "cache/layout.h"
#include "tests/support/temp_dir.h"

namespace gemvjit::test {
namespace {

Digest digest_of(std::uint32_t number) { return Sha256::of(&number, sizeof number); }

class BuildRecordsTest : public testing::Test {
 protected:
  BuildRecordsTest() { std::filesystem::create_directories(version_directory(root_)); }
  TempDir dir_;
  const std::string root_ = dir_.path("cache");
};

TEST_F(BuildRecordsTest, WhatWasNotedIsFound) {
  EXPECT_FALSE(BuildRecords::read(root_).find(digest_of(1)));
  note_build(root_, digest_of(1), {1700000000, 251});
  note_build(root_, digest_of(2), {1700000001, 252});
  note_build(root_, digest_of(1), {1700000009, 259});  // built again
  const BuildRecords records = BuildRecords::read(root_);
  ASSERT_TRUE(records.find(digest_of(1)));
  EXPECT_EQ(records.find(digest_of(1))->when, 1700000009);
  EXPECT_EQ(records.find(digest_of(1))->milliseconds, 259u);
  EXPECT_EQ(records.find(digest_of(2))->milliseconds, 252u);
  EXPECT_FALSE(records.find(digest_of(3)));
}

TEST_F(BuildRecordsTest, ManyWritersAtOnceLoseLittleAndTheFileStaysSmall) {
  std::vector<std::jthread> writers;
  for (std::uint32_t writer = 0; writer < 8; ++writer) {
    writers.emplace_back([this, writer] {
      for (std::uint32_t i = 0; i < 250; ++i) note_build(root_, digest_of(1000 * writer + i), {i, i});
    });
  }
  writers.clear();
  const BuildRecords records = BuildRecords::read(root_);
  int found = 0;
  for (std::uint32_t writer = 0; writer < 8; ++writer) {
    for (std::uint32_t i = 0; i < 250; ++i) {
      const auto record = records.find(digest_of(1000 * writer + i));
      if (!record) continue;
      ++found;
      EXPECT_EQ(record->milliseconds, i);
    }
  }
  EXPECT_GT(found, 1900);  // of 2000
  for (std::uint32_t i = 0; i < 30'000; ++i) note_build(root_, digest_of(100'000 + i), {i, i});
  EXPECT_LE(std::filesystem::file_size(build_records_path(root_)), (384u << 10) + 8);
}

TEST_F(BuildRecordsTest, WhatIsNoneIsNotKnownAndDoesNoHarm) {
  const std::string path = build_records_path(root_);
  std::ofstream(path) << std::string(384 << 10, 'x');
  EXPECT_FALSE(BuildRecords::read(root_).find(digest_of(1)));
  note_build(root_, digest_of(1), {1, 2});
  EXPECT_FALSE(BuildRecords::read(root_).find(digest_of(1)));
  EXPECT_EQ(test::read_text(path), std::string(384 << 10, 'x')) << "it may be somebody's own";
  // Nothing is written where a link leads, by either kind, or where there is no folder.
  const std::string canary = dir_.path("canary");
  std::ofstream(canary) << "canary";
  for (const bool symbolic : {true, false}) {
    std::filesystem::remove(path);
    symbolic ? std::filesystem::create_symlink(canary, path) : std::filesystem::create_hard_link(canary, path);
    note_build(root_, digest_of(1), {1, 2});
    EXPECT_EQ(std::filesystem::file_size(canary), 6u);
  }
  std::filesystem::remove(path);
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  note_build(root_, digest_of(1), {1, 2});
  EXPECT_FALSE(BuildRecords::read(root_).find(digest_of(1)));
  note_build(dir_.path("nowhere"), digest_of(1), {1, 2});
  EXPECT_FALSE(std::filesystem::exists(dir_.path("nowhere")));
  note_build("", digest_of(1), {1, 2});
}

TEST_F(BuildRecordsTest, OthersOfASharedCacheMayWriteWhateverTheUmask) {
  const mode_t before = ::umask(0077);
  note_build(root_, digest_of(1), {1, 2}, CacheTrust::shared);
  ::umask(before);
  struct stat info {};
  ASSERT_EQ(::stat(build_records_path(root_).c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0660u);
}

}  // namespace
}  // namespace gemvjit::test
