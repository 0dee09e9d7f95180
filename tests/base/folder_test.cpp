// What a Folder does where somebody else puts links and other folders in the place of what it works on.
#include "src/base/folder.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <thread>

#include "tests/support/temp_dir.h"

namespace gemvjit {
namespace {

using test::TempDir;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr uid_t kStranger = 61234;

struct stat info_of(const std::string& path) {
  struct stat info {};
  EXPECT_EQ(::lstat(path.c_str(), &info), 0) << path;
  return info;
}

Folder open(const std::string& path) {
  Result<Folder> folder = Folder::open(path);
  EXPECT_TRUE(folder) << folder.status().message();
  return std::move(folder).value();
}

TEST(Folder, FollowsNoLinkInIt) {
  const TempDir dir;
  const std::string canary = dir.write("elsewhere/file", "x");
  std::filesystem::create_directory(dir.path("in"));
  std::filesystem::create_directory_symlink(dir.path("elsewhere"), dir.path("in/folder"));
  std::filesystem::create_symlink(canary, dir.path("in/file"));
  const Folder in = open(dir.path("in"));
  EXPECT_THAT(in.open_folder("folder").status().message(), HasSubstr("it is a link"));
  EXPECT_THAT(in.make_folder("folder", 02770).status().message(), HasSubstr("it is a link"));
  EXPECT_EQ(in.read_file("file", 10).status().code(), StatusCode::io_error);
  EXPECT_FALSE(in.open_file("file", O_RDWR).is_open());
  EXPECT_TRUE(in.open_folder_through_link("folder")) << "where the caller asks for it";
  for (const char* name : {"", ".", "..", "a/b", "/"}) EXPECT_FALSE(in.open_folder(name)) << name;
  EXPECT_TRUE(in.remove("file"));
  EXPECT_TRUE(std::filesystem::exists(canary));
}

TEST(Folder, IsWhatWasOpenedWhateverItsNameLeadsToNow) {
  const TempDir dir;
  std::filesystem::create_directory(dir.path("mine"));
  std::filesystem::create_directory(dir.path("canary"));
  (void)dir.write("canary/file", "x");
  const Folder mine = open(dir.path("mine"));
  ASSERT_EQ(std::rename(dir.path("mine").c_str(), dir.path("moved").c_str()), 0);
  std::filesystem::create_directory_symlink(dir.path("canary"), dir.path("mine"));
  EXPECT_TRUE(mine.remove("file"));
  ASSERT_TRUE(mine.publish("new", "y", 1, {}));
  ASSERT_TRUE(mine.make_folder("below", 02770));
  EXPECT_THAT(*open(dir.path("canary")).list(), ElementsAre("file"));
  EXPECT_THAT(*open(dir.path("moved")).list(), ElementsAre("below", "new"));
}

TEST(Folder, MakesFoldersWithJustTheModeAndTheGroupOfTheirParent) {
  const TempDir dir;
  std::filesystem::create_directory(dir.path("in"));
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(dir.path("in").c_str(), 0, 61235), 0);
  }
  const Folder in = open(dir.path("in"));
  for (const mode_t mask : {0022, 0077, 0777, 0}) {
    for (const mode_t mode : {0700, 02770, 0755}) {
      const std::string name = std::to_string(mask) + "-" + std::to_string(mode);
      const mode_t before = ::umask(mask);
      const auto made = in.make_folder(name, mode);
      ::umask(before);
      ASSERT_TRUE(made) << made.status().message();
      const struct stat info = info_of(in.path_of(name));
      EXPECT_EQ(info.st_mode & 07777, mode) << name;
      if (mode != 0700) {
        EXPECT_EQ(info.st_gid, info_of(dir.path("in")).st_gid) << name;
      }
    }
  }
  EXPECT_EQ(in.list()->size(), 12u) << "no temporary is left";
}

TEST(Folder, ThreadsMayRaceForOneForOthers) {
  const TempDir dir;
  const Folder in = open(dir.path());
  std::atomic<int> failures = 0;
  for (int round = 0; round < 20; ++round) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        if (!in.make_folder(std::to_string(round), 02770)) ++failures;
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(info_of(in.path_of(std::to_string(round))).st_mode & 07777, 02770u);
  }
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(in.list()->size(), 20u) << "no temporary is left";
}

// Who may rename beside it puts another private folder of this user in the place of the one that is being made.
TEST(Folder, ChangesNoOtherFolderThatCameInItsPlace) {
  const TempDir dir;
  std::filesystem::create_directories(dir.path("team"));
  const std::string alice = dir.path("team/alice");
  ASSERT_TRUE(make_directories(alice + "/cache"));
  (void)dir.write("team/alice/cache/diary", "x");
  const ino_t diary = info_of(alice + "/cache/diary").st_ino;
  const Folder team = open(dir.path("team"));
  std::atomic<bool> ends = false;
  std::atomic<int> swaps = 0;
  std::thread attacker([&] {
    while (!ends) {
      const auto names = team.list();
      for (const std::string& name : *names) {
        if (!name.starts_with(temporary_file_prefix)) continue;
        if (::renameat2(team.descriptor(), "alice", team.descriptor(), name.c_str(), RENAME_EXCHANGE) != 0) continue;
        ++swaps;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        (void)::renameat2(team.descriptor(), "alice", team.descriptor(), name.c_str(), RENAME_EXCHANGE);
      }
    }
  });
  for (int round = 0; round < 300; ++round) {
    (void)team.make_folder("cache", 02770);
    (void)::unlinkat(team.descriptor(), "cache", AT_REMOVEDIR);
  }
  ends = true;
  attacker.join();
  int found = 0;
  for (const auto& item : std::filesystem::recursive_directory_iterator(dir.path("team"))) {
    if (info_of(item.path()).st_ino != diary) continue;
    ++found;
    EXPECT_EQ(info_of(item.path().parent_path()).st_mode & 07777, mode_t{0700}) << item.path();
    EXPECT_NE(item.path(), dir.path("team/cache/diary"));
  }
  EXPECT_EQ(found, 1);
  EXPECT_GT(swaps, 0) << "the test saw nothing";
}

TEST(Folder, MakeFollowsLinksOfThisUserAndRootOnly) {
  const TempDir dir;
  std::filesystem::create_directories(dir.path("far/away"));
  std::filesystem::create_directory_symlink("far/away", dir.path("relative"));
  std::filesystem::create_directory_symlink(dir.path("relative"), dir.path("absolute"));
  EXPECT_TRUE(Folder::make(dir.path("relative/a/../b"), 0700).is_ok()) << "a is made on the way";
  EXPECT_TRUE(Folder::make(dir.path("absolute/c/d/"), 0700));
  EXPECT_THAT(*open(dir.path("far/away")).list(), ElementsAre("a", "b", "c"));
  EXPECT_TRUE(Folder::open_checked(dir.path("absolute/c")));
  EXPECT_EQ(Folder::open_checked(dir.path("absolute/none")).status().code(), StatusCode::not_found);
  std::filesystem::create_directory_symlink("loop", dir.path("loop"));
  EXPECT_THAT(Folder::make(dir.path("loop/a"), 0700).status().message(), HasSubstr("cannot be followed"));
  std::filesystem::create_directory_symlink("far/nowhere", dir.path("dangling"));
  EXPECT_FALSE(Folder::make(dir.path("dangling/a"), 0700));
  EXPECT_FALSE(std::filesystem::exists(dir.path("far/nowhere")));
  if (::geteuid() != 0) GTEST_SKIP() << "another user's link needs root to make it";
  std::filesystem::create_directory(dir.path("canary"));
  std::filesystem::create_directory_symlink("canary", dir.path("strange"));
  ASSERT_EQ(::lchown(dir.path("strange").c_str(), kStranger, kStranger), 0);
  EXPECT_THAT(Folder::make(dir.path("strange/a"), 0700).status().message(),
              HasSubstr(dir.path("strange") + " is a link of user 61234"));
  EXPECT_FALSE(Folder::open_checked(dir.path("strange")));
  EXPECT_TRUE(Folder::open(dir.path("strange"))) << "where the caller has looked, or a person has said so";
  EXPECT_THAT(*open(dir.path("canary")).list(), IsEmpty());
}

}  // namespace
}  // namespace gemvjit
