// What other users put into a cache to have this user's process change something elsewhere: links, second names of
// files, other folders. The canary stands for what is not the cache's.
#include "cache/cache_folders.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "cache/build_records.h"
#include "cache/layout.h"
#include "cache/quarantine.h"
#include "cache/size_limit.h"
#include "cache/store.h"
#include "cache/usage_ledger.h"
#include "src/base/files.h"
#include "tests/support/entries.h"
#include "tests/support/temp_dir.h"

namespace gemvjit {
namespace {

using testing::HasSubstr;

class CacheFolders : public testing::TestWithParam<CacheTrust> {
 protected:
  void SetUp() override {
    for (int i = 0; i < files_in_canary; ++i) (void)dir_.write("canary/file" + std::to_string(i), "precious");
    // Names that a prune would take for its own.
    (void)dir_.write("canary/" + quarantined_name, "precious");
    (void)dir_.write("canary/" + entry_file_name(entry_.id), "precious");
    std::filesystem::resize_file(dir_.write("canary/large", ""), 70 << 20);
    ASSERT_EQ(::chmod(canary_.c_str(), 0700), 0);
    before_ = state_of_canary();
    ASSERT_TRUE(open()->put(entry_));
  }
  void TearDown() override { EXPECT_EQ(state_of_canary(), before_); }

  std::unique_ptr<CubinStore> open() const {
    DirStoreOptions options;
    options.guard = EntryGuard::of_cache(GetParam());
    options.trust = GetParam();
    options.quarantine.files = 2;
    options.stale_after_seconds = -1;
    SizeLimit limit;
    limit.guard = options.guard;
    limit.trust = options.trust;
    limit.max_bytes = 4000;  // so that it evicts
    SizeLimitHooks hooks;
    hooks.now = [] { return stamp; };
    return make_size_limited_store(make_dir_store(root_, Log::silent(), options), limit, Log::silent(), hooks);
  }
  // Name, owner, mode, size, change of each thing in it, the folder's own too: any change would show.
  std::string state_of_canary() const {
    std::string text;
    const auto add = [&](const std::string& path) {
      struct stat info {};
      ASSERT_EQ(::lstat(path.c_str(), &info), 0);
      text += fmt::format("{} {}:{} {:o} {} {}.{}\n", path, info.st_uid, info.st_gid, info.st_mode, info.st_size,
                          info.st_ctim.tv_sec, info.st_ctim.tv_nsec);
    };
    add(canary_);
    const auto names = list_directory(canary_);
    for (const std::string& name : *names) add(canary_ + "/" + name);
    return text;
  }
  void damage_entry() const { std::filesystem::resize_file(entry_path(root_, entry_.id), 60); }
  void put_link_in_place_of(const std::string& folder) const {
    std::filesystem::rename(folder, folder + "-away");
    std::filesystem::create_directory_symlink(canary_, folder);
  }
  // All that a process may do with a cache.
  void use_everything() const {
    const auto store = open();
    (void)store->get(entry_.id);
    (void)store->look(entry_.id);
    (void)store->put(entry_, Replace::any);
    for (std::int64_t n = 128; n < 512; n += 64) {
      (void)store->put(test::sample_entry({.n = n, .payload = 2000}));
      (void)open()->put(test::sample_entry({.n = n + 1024, .digest_byte = 2, .payload = 2000}));
    }
    (void)store->list();
    CollectRequest request;
    request.max_bytes = 0;
    request.other_versions = true;
    request.guard = EntryGuard::of_anyone();
    (void)collect_garbage(root_, request);
    (void)store->remove(entry_.id);
  }

  static constexpr int files_in_canary = 80;
  static constexpr std::int64_t stamp = 2'000'000'000;  // of an entry that was used; no clock says so
  const std::string quarantined_name = "0000000000000001-7-n64-k4096-nt1-f0000000000002022-0101010101010101.entry";
  test::TempDir dir_;
  const std::string root_ = dir_.path("cache"), canary_ = dir_.path("canary");
  const Entry entry_ = test::sample_entry();
  std::string before_;
};

INSTANTIATE_TEST_SUITE_P(Trust, CacheFolders, testing::Values(CacheTrust::owner, CacheTrust::shared),
                         [](const auto& trust) { return trust.param == CacheTrust::owner ? "owner" : "shared"; });

TEST_P(CacheFolders, AQuarantineThatIsALinkMovesNothingAndPrunesNothing) {
  std::filesystem::create_directory_symlink(canary_, quarantine_directory(root_));
  damage_entry();
  const auto store = open();
  EXPECT_FALSE(store->get(entry_.id));
  EXPECT_EQ(store->stats().quarantined, 0u);
  EXPECT_TRUE(std::filesystem::exists(entry_path(root_, entry_.id))) << "not moved";
  EXPECT_TRUE(store->put(entry_)) << "but replaced: nobody could use it";
  EXPECT_TRUE(store->get(entry_.id));
}

TEST_P(CacheFolders, AnyFolderMayBeALinkToSomewhereElse) {
  const std::string arch = arch_directory(root_, entry_.id.key.arch);
  for (const std::string& folder : {entry_directory(root_, entry_.id), arch, version_directory(root_)}) {
    SCOPED_TRACE(folder);
    put_link_in_place_of(folder);
    use_everything();
    ASSERT_TRUE(std::filesystem::is_symlink(folder));
    ASSERT_TRUE(remove_file(folder));
    std::filesystem::rename(folder + "-away", folder);
  }
  // And that of another version, which only a collection looks into.
  std::filesystem::create_directory_symlink(canary_, root_ + "/v0");
  std::filesystem::create_directory_symlink(canary_, root_ + "/v7");
  use_everything();
}

TEST_P(CacheFolders, ASecondNameOfAFileIsNotWrittenNorStamped) {
  // Not the test's canary: a second name shows in a file's own state.
  const std::string whole = dir_.path("private.entry"), ledger = dir_.path("private.ledger");
  const std::string path = entry_path(root_, entry_.id), usage = version_directory(root_) + "/usage";
  std::filesystem::copy(path, whole);
  (void)dir_.write("private.ledger", "precious");
  ASSERT_TRUE(remove_file(path));
  ASSERT_TRUE(remove_file(usage));
  std::filesystem::create_hard_link(whole, path);
  std::filesystem::create_hard_link(ledger, usage);
  const timespec old[2] = {{1'000'000'000, 0}, {1'000'000'000, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, whole.c_str(), old, 0), 0);
  ASSERT_EQ(::chmod(ledger.c_str(), 0400), 0);
  (void)open()->get(entry_.id);
  (void)open()->put(test::sample_entry({.n = 128}));
  struct stat info {};
  ASSERT_EQ(::stat(whole.c_str(), &info), 0);
  EXPECT_EQ(info.st_mtime, 1'000'000'000);
  EXPECT_NE(info.st_atime, stamp);
  EXPECT_EQ(test::read_text(ledger), "precious");
  ASSERT_EQ(::stat(ledger.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, mode_t{0400});
}

TEST_P(CacheFolders, AFileThatWasMovedInPlaceOfARecordKeepsContentAndMode) {
  for (const std::string& path : {usage_ledger_path(root_), build_records_path(root_)}) {
    for (const std::size_t size : {std::size_t{5000}, std::size_t{4}, std::size_t{0}}) {
      SCOPED_TRACE(path);
      const std::string text(size, 'p');
      (void)remove_file(path);
      const std::string mine = dir_.write("private.txt", text);
      ASSERT_EQ(::chmod(mine.c_str(), 0600), 0);
      ASSERT_EQ(std::rename(mine.c_str(), path.c_str()), 0);
      (void)open()->put(test::sample_entry({.n = 128}));
      note_build(root_, entry_.id.digest, {1, 2}, GetParam());
      struct stat info {};
      ASSERT_EQ(::stat(path.c_str(), &info), 0);
      EXPECT_EQ(info.st_mode & 07777, mode_t{0600});
      EXPECT_EQ(test::read_text(path), text);
    }
  }
}

TEST_P(CacheFolders, PruningTakesOnlyNamesOfItsOwnForm) {
  const std::string folder = quarantine_directory(root_);
  damage_entry();
  EXPECT_FALSE(open()->get(entry_.id));
  for (int i = 0; i < 5; ++i) test::write_text(folder + "/notes" + std::to_string(i), "mine");
  for (const char* name :
       {"0000000000000001-7-notes.entry", "0000000000000001-n64-k4096-nt1-f0000000000002022-0101010101010101.entry"}) {
    test::write_text(folder + "/" + name, "mine");
  }
  for (int i = 2; i < 6; ++i) {
    std::string name = quarantined_name;
    name[15] = static_cast<char>('0' + i);
    test::write_text(folder + "/" + name, "old");
  }
  const Result<Folder> quarantine = Folder::open(folder);
  ASSERT_TRUE(quarantine);
  prune_quarantine(*quarantine, {.files = 2, .bytes = 1 << 20});
  EXPECT_EQ(quarantine->list()->size(), 5u + 2u + 2u);
  EXPECT_EQ(quarantine_content(root_).files, 2u);
}

TEST_P(CacheFolders, OnlyFoldersOfTheCacheAreOpened) {
  EXPECT_THAT(open_cache_folder(root_, dir_.path("canary"), nullptr).status().message(), HasSubstr("is no folder of"));
  EXPECT_FALSE(open_cache_folder(root_, root_ + "/v1/../../canary", nullptr));
  EXPECT_FALSE(make_cache_folder(root_, root_ + "/v1/../../canary/new", GetParam(), nullptr));
  EXPECT_FALSE(remove_cache_file(root_, canary_ + "/file1", nullptr));
  EXPECT_TRUE(open_cache_folder(root_ + "//", root_ + "//v1", nullptr));
}

// A folder of somebody else in the place of one of this user's: root, who may do anything, must ask who owns it.
TEST_P(CacheFolders, AStrangersFolderIsRefusedByTheOwnersCache) {
  if (::geteuid() != 0 || GetParam() != CacheTrust::owner) GTEST_SKIP() << "needs root, and the trust of an owner";
  for (const std::string& folder : {entry_directory(root_, entry_.id), version_directory(root_)}) {
    ASSERT_EQ(::lchown(folder.c_str(), 61234, 61234), 0);
    const auto store = open();
    EXPECT_FALSE(store->get(entry_.id));
    EXPECT_FALSE(store->put(entry_, Replace::any));
    EXPECT_FALSE(store->remove(entry_.id));
    EXPECT_TRUE(std::filesystem::exists(entry_path(root_, entry_.id)));
    ASSERT_EQ(::lchown(folder.c_str(), 0, 0), 0);
  }
}

}  // namespace
}  // namespace gemvjit
