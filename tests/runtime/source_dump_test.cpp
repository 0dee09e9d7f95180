// GEMVJIT_DUMP_DIR: sources are written for people, and nothing that others planted is followed.
#include "src/runtime/source_dump.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "tests/support/acl.h"
#include "tests/support/temp_dir.h"

namespace gemvjit {
namespace {

using test::read_text;
using testing::HasSubstr;

constexpr unsigned kStranger = 61234;

class SourceDump : public testing::Test {
 protected:
  SourceDump() {
    recipe_.key = {1024, 4096, 1, 0x2022, {90, 'a'}};
    recipe_.options = {"-O3", "-w"};
    recipe_.sources = {{"kernels/gemv.cu", "gemv"}, {"kernels/device/ptx.cuh", "ptx"}, {"config.h", "config"}};
    std::filesystem::create_directories(dir_.path("victim"));
    dir_.write("victim/options.txt", "precious");
    dir_.write("victim/gemv.cu", "precious");
  }
  void expect_written() const {
    const auto folder = dump_sources(dump_dir_, recipe_);
    ASSERT_TRUE(folder) << folder.status().message();
    EXPECT_EQ(*folder, folder_);
    EXPECT_EQ(read_text(folder_ + "/options.txt"), "-O3\n-w\n");
    EXPECT_EQ(read_text(folder_ + "/kernels/gemv.cu"), "gemv");
    EXPECT_EQ(read_text(folder_ + "/kernels/device/ptx.cuh"), "ptx");
    EXPECT_EQ(read_text(folder_ + "/config.h"), "config");
  }
  void expect_refused(const std::string& reason) const {
    const auto folder = dump_sources(dump_dir_, recipe_);
    ASSERT_FALSE(folder);
    EXPECT_THAT(folder.status().message(), HasSubstr(reason));
  }
  void expect_untouched() const {
    const std::filesystem::directory_iterator files(dir_.path("victim"));
    EXPECT_EQ(std::distance(begin(files), end(files)), 2);
    EXPECT_EQ(read_text(dir_.path("victim/options.txt")), "precious");
    EXPECT_EQ(read_text(dir_.path("victim/gemv.cu")), "precious");
  }

  test::TempDir dir_;
  Recipe recipe_;
  std::string dump_dir_ = dir_.path("made/dump");
  std::string folder_ = dump_dir_ + "/" + recipe_text();
  std::string recipe_text() const { return "n1024-k4096-nt1-f0000000000002022-sm_90a"; }
};

TEST_F(SourceDump, IsWrittenAndWrittenAgain) {
  expect_written();
  recipe_.sources[0].text = "gemv";
  expect_written();
  const std::filesystem::directory_iterator files(folder_);
  EXPECT_EQ(std::distance(begin(files), end(files)), 3) << "no temporary file stays";
}

TEST_F(SourceDump, ALinkInThePlaceOfAFolderIsNotFollowed) {
  std::filesystem::create_directories(dump_dir_);
  std::filesystem::create_directory_symlink(dir_.path("victim"), folder_);
  expect_refused("it is a link");
  std::filesystem::remove(folder_);
  std::filesystem::create_directories(folder_);
  std::filesystem::create_directory_symlink(dir_.path("victim"), folder_ + "/kernels");
  expect_refused("it is a link");
  expect_untouched();
  EXPECT_FALSE(std::filesystem::exists(dir_.path("victim/device")));
}

TEST_F(SourceDump, ALinkInThePlaceOfAFileIsReplaced) {
  std::filesystem::create_directories(folder_ + "/kernels");
  std::filesystem::create_symlink(dir_.path("victim/options.txt"), folder_ + "/options.txt");
  std::filesystem::create_symlink(dir_.path("victim/gemv.cu"), folder_ + "/kernels/gemv.cu");
  std::filesystem::create_hard_link(dir_.path("victim/gemv.cu"), folder_ + "/config.h");
  expect_written();
  expect_untouched();
}

TEST_F(SourceDump, AFolderThatOthersMayWriteInIsRefused) {
  std::filesystem::create_directories(dump_dir_);
  for (const mode_t mode : {0777, 01777}) {
    ASSERT_EQ(::chmod(dump_dir_.c_str(), mode), 0);
    expect_refused("all users may write it");
    EXPECT_TRUE(std::filesystem::is_empty(dump_dir_));
  }
  ASSERT_EQ(::chmod(dump_dir_.c_str(), 0700), 0);
  ASSERT_EQ(::chmod(dir_.path("made").c_str(), 0777), 0);
  expect_refused("all users may write it");
  std::filesystem::remove(dump_dir_);
  expect_refused("all users may write it");
  EXPECT_FALSE(std::filesystem::exists(dump_dir_)) << "nothing is made there either";
  ASSERT_EQ(::chmod(dir_.path("made").c_str(), 01777), 0);
  expect_written();
  ASSERT_EQ(::chmod(folder_.c_str(), 0777), 0);
  expect_refused(folder_ + " is not used: all users may write it");
}

TEST_F(SourceDump, AnAclOrAStrangersFolderOrLinkIsRefused) {
  std::filesystem::create_directories(dump_dir_);
  const int error = test::set_acl(dump_dir_, {{false, kStranger, 7}}, 5, 7);
  if (error != ENOTSUP) expect_refused("its ACL lets user 61234 write it");
  ASSERT_EQ(::chmod(dump_dir_.c_str(), 0700), 0);
  expect_written();
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  ASSERT_EQ(::chown(folder_.c_str(), kStranger, kStranger), 0);
  expect_refused("it belongs to user 61234");
  const std::string link = dir_.path("link");
  std::filesystem::create_directory_symlink(dir_.path("victim"), link);
  dump_dir_ = link;
  folder_ = link + "/" + recipe_text();
  expect_written();  // a link of one's own
  ASSERT_EQ(::lchown(link.c_str(), kStranger, kStranger), 0);
  expect_refused("is a link of user 61234");
}

}  // namespace
}  // namespace gemvjit
