// B40: a cache that a group shares, by real user ids: two users, each with a group and a umask of his own, and a third
// group that both are in. Modes are looked at as any user; who may do what needs root, who may become anybody.
#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ctime>
#include <filesystem>

#include "cache/cache_folders.h"
#include "cache/guarded_store.h"
#include "cache/layout.h"
#include "cache/size_limit.h"
#include "cache/usage_ledger.h"
#include "src/base/files.h"
#include "tests/support/entries.h"
#include "tests/support/processes.h"
#include "tests/support/temp_dir.h"

namespace gemvjit {
namespace {

constexpr uid_t users[] = {65534, 65533};
constexpr gid_t common_group = 61235;

// In a child: the rest of it is that user's.
bool become(uid_t user) {
  ::umask(077);
  return ::setgroups(1, &common_group) == 0 && ::setgid(user) == 0 && ::setuid(user) == 0;
}

class SharedTrust : public testing::Test {
 protected:
  // As a context opens it.
  std::unique_ptr<CubinStore> open(CacheTrust trust = CacheTrust::shared, std::uint64_t max_bytes = 1u << 30) const {
    DirStoreOptions options;
    options.guard = EntryGuard::of_cache(trust);
    options.trust = trust;
    SizeLimit limit;
    limit.max_bytes = max_bytes;
    limit.trust = trust;
    return make_guarded_store(
        make_size_limited_store(make_dir_store(root_, Log::silent(), options), limit, Log::silent()), root_, trust,
        Log::silent());
  }
  // A volume made for the group, by somebody who did not think of the setgid bit.
  void make_volume() {
    ASSERT_EQ(::chmod(dir_.path().c_str(), 0755), 0);
    ASSERT_EQ(::mkdir(root_.c_str(), 0700), 0);
    ASSERT_EQ(::chown(root_.c_str(), 0, common_group), 0);
    ASSERT_EQ(::chmod(root_.c_str(), 0770), 0);
  }
  // Of all that is below the folder.
  static void expect_modes(const std::string& folder, mode_t folder_mode, mode_t file_mode, gid_t group) {
    int seen = 0;
    for (const auto& found : std::filesystem::recursive_directory_iterator(folder)) {
      struct stat info {};
      ASSERT_EQ(::lstat(found.path().c_str(), &info), 0);
      EXPECT_EQ(info.st_mode & 07777, S_ISDIR(info.st_mode) ? folder_mode : file_mode) << found.path();
      EXPECT_EQ(info.st_gid, group) << found.path();
      ++seen;
    }
    EXPECT_GE(seen, 5) << "version, target, fan-out, entry, ledger";
  }

  test::TempDir dir_;
  const std::string root_ = dir_.path("cache");
};

TEST_F(SharedTrust, ModesFollowTheTrustAndNotTheUmask) {
  for (const mode_t mask : {0077, 0, 0777}) {
    for (const CacheTrust trust : {CacheTrust::owner, CacheTrust::shared}) {
      std::filesystem::remove_all(root_);
      const mode_t before = ::umask(mask);
      const Status kept = open(trust)->put(test::sample_entry());
      ::umask(before);
      ASSERT_TRUE(kept) << kept.text();
      const FileModes modes = file_modes(trust);
      struct stat info {};
      ASSERT_EQ(::stat(root_.c_str(), &info), 0);
      EXPECT_EQ(info.st_mode & 07777, modes.folder);
      expect_modes(root_, modes.folder, modes.file, info.st_gid);
    }
  }
  EXPECT_EQ(file_modes(CacheTrust::owner).folder, mode_t{0700});
  EXPECT_EQ(file_modes(CacheTrust::owner).file, mode_t{0600});
}

// What is above the root is nobody's business but this user's, and nothing else is left there.
TEST_F(SharedTrust, FoldersAboveTheRootStayPrivate) {
  const std::string deep = dir_.path("a/b/cache/");
  ASSERT_TRUE(make_cache_folder(deep, deep + "v1", CacheTrust::shared, nullptr));
  struct stat info {};
  for (const char* above : {"a", "a/b"}) {
    ASSERT_EQ(::stat(dir_.path(above).c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, mode_t{0700}) << above;
    EXPECT_EQ(list_directory(dir_.path(above))->size(), 1u);
  }
  ASSERT_EQ(::stat(deep.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, mode_t{02770});
}

class SharedByUsers : public SharedTrust {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root may become another user";
    make_volume();
  }
  static Entry entry(int number, std::size_t payload = 1000) {
    Entry made = test::sample_entry({.n = 64 * (number + 1), .payload = payload});
    made.id.digest.fill(static_cast<std::uint8_t>(number));
    return made;
  }
  void as(uid_t user, const std::function<int()>& body) const {
    test::expect_exit(test::start_process([&] { return become(user) ? body() : 99; }));
  }
};

TEST_F(SharedByUsers, WhatOneWritesTheOtherFindsStampsAndHeals) {
  as(users[0], [&] { return open()->put(entry(1)) ? 0 : 1; });
  expect_modes(root_, 02770, 0660, common_group);
  const std::string path = entry_path(root_, entry(1).id);
  const timespec old[2] = {{1'000'000'000, 0}, {1'000'000'000, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), old, 0), 0);
  const std::time_t begin = std::time(nullptr);
  as(users[1], [&] {
    const auto store = open();
    if (!store->get(entry(1).id)) return 1;
    if (!store->put(entry(2))) return 2;
    return store->stats().hits == 1 && store->stats().damaged == 0 ? 0 : 3;
  });
  struct stat info {};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_GE(info.st_atime, begin) << "its use is stamped, though it is another user's";
  as(users[0], [&] { return open()->get(entry(2).id) ? 0 : 1; });

  std::filesystem::resize_file(path, 60);
  as(users[1], [&] {
    const auto store = open();
    if (store->get(entry(1).id) || store->stats().quarantined != 1) return 1;
    return store->put(entry(1)) ? 0 : 2;
  });
  as(users[0], [&] {
    const auto store = open();
    return store->get(entry(1).id) && store->put(entry(1), Replace::any) && store->remove(entry(2).id) ? 0 : 1;
  });
  EXPECT_FALSE(std::filesystem::exists(entry_path(root_, entry(2).id)));
  expect_modes(root_, 02770, 0660, common_group);
}

TEST_F(SharedByUsers, OneEvictsWhatTheOtherWrote) {
  constexpr std::uint64_t cap = 500'000;
  as(users[0], [&] {
    const auto store = open(CacheTrust::shared, cap);
    for (int i = 0; i < 4; ++i) {
      if (!store->put(entry(i, 100'000))) return 1;
    }
    return 0;
  });
  as(users[1], [&] {
    const auto store = open(CacheTrust::shared, cap);
    for (int i = 4; i < 7; ++i) {
      if (!store->put(entry(i, 100'000))) return 1;
    }
    const StoreStats stats = store->stats();
    return stats.evictions >= 3 && stats.refused == 0 && stats.put_failures == 0 ? 0 : 2;
  });
  EXPECT_FALSE(std::filesystem::exists(entry_path(root_, entry(0).id)));
  EXPECT_TRUE(std::filesystem::exists(entry_path(root_, entry(6).id)));
}

TEST_F(SharedByUsers, BothWriteThroughTheCapWithOneLedger) {
  constexpr std::uint64_t cap = 500'000;
  constexpr std::uint64_t payload = 50'000;
  test::run_processes(2, [&](int i) {
    if (!become(users[i])) return 99;
    const auto store = open(CacheTrust::shared, cap);
    for (int round = 0; round < 25; ++round) {
      const Entry mine = entry(100 * i + round, payload);
      if (const Status kept = store->put(mine); !kept) {
        std::fprintf(stderr, "%s\n", kept.text().c_str());
        return 1;
      }
    }
    return store->stats().evictions > 0 ? 0 : 2;
  });
  std::uint64_t bytes = 0;
  const auto files = scan_cache(root_);
  ASSERT_TRUE(files);
  for (const CachedFile& file : *files) bytes += file.bytes;
  EXPECT_LE(bytes, cap);
  EXPECT_GT(bytes, cap / 2);
  const Usage usage = UsageLedger(root_).read();
  EXPECT_NE(usage.scanned_at, 0);
  EXPECT_GE(usage.total_bytes, bytes);
  EXPECT_LE(usage.total_bytes, cap);
  expect_modes(root_, 02770, 0660, common_group);
}

// Who is in no group with them gets nothing, and goes on.
TEST_F(SharedByUsers, AStrangerSeesNothing) {
  as(users[0], [&] { return open()->put(entry(1)) ? 0 : 1; });
  test::expect_exit(test::start_process([&] {
    if (::setgroups(0, nullptr) != 0 || ::setgid(65500) != 0 || ::setuid(65500) != 0) return 99;
    const auto store = open();
    return !store->get(entry(1).id) && !store->put(entry(3)) ? 0 : 1;
  }));
}

}  // namespace
}  // namespace gemvjit
