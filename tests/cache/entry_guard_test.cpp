// B41, B44: another user's files and folders below a root that was good, or was not there, when it was examined.
#include "cache/entry_guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "cache/guarded_store.h"
#include "cache/layered_store.h"
#include "cache/layout.h"
#include "tests/support/acl.h"
#include "tests/support/entries.h"
#include "tests/support/temp_dir.h"

namespace gemvjit {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

constexpr uid_t kStranger = 61234;

class EntryGuardTest : public testing::Test {
 protected:
  Log log() {
    return Log::create(LogLevel::warning, [this](LogLevel, std::string_view text) { warnings_.emplace_back(text); });
  }
  std::unique_ptr<CubinStore> open(CacheTrust trust = CacheTrust::owner) {
    DirStoreOptions options;
    options.guard = EntryGuard::of_cache(trust);
    return make_dir_store(root_, log(), options);
  }
  std::vector<std::string> below_root() const {  // the file, then the folders on the way
    const std::string file = entry_path(root_, entry_.id);
    return {file, entry_directory(root_, entry_.id), arch_directory(root_, entry_.id.key.arch),
            version_directory(root_)};
  }

  test::TempDir dir_;
  std::string root_ = dir_.path("cache");
  Entry entry_ = test::sample_entry();
  std::vector<std::string> warnings_;
};

TEST_F(EntryGuardTest, WhatOthersMayWriteIsAMissAndStays) {
  ASSERT_TRUE(open()->put(entry_));
  for (const std::string& path : below_root()) {
    SCOPED_TRACE(path);
    struct stat before {};
    ASSERT_EQ(::stat(path.c_str(), &before), 0);
    for (const mode_t bit : {S_IWOTH, S_IWGRP}) {
      warnings_.clear();
      ASSERT_EQ(::chmod(path.c_str(), (before.st_mode & 07777) | bit), 0);
      const auto store = open();
      EXPECT_FALSE(store->get(entry_.id));
      EXPECT_FALSE(store->get(entry_.id));
      EXPECT_EQ(store->stats().unreadable, 2u);
      EXPECT_EQ(store->stats().quarantined, 0u);
      EXPECT_THAT(warnings_, testing::ElementsAre(HasSubstr("is not trusted")));
      EXPECT_EQ(store->put(entry_).code(), StatusCode::cache_not_writable);
      EXPECT_EQ(open(CacheTrust::shared)->get(entry_.id).has_value(), bit == S_IWGRP) << "a group, but never all";
    }
    ASSERT_EQ(::chmod(path.c_str(), before.st_mode & 07777), 0);
    EXPECT_TRUE(open()->get(entry_.id));
  }
}

// The mode shows an ACL's mask as the group's right, which a shared cache allows.
TEST_F(EntryGuardTest, WhatAnAclLetsOthersWriteIsAMissInASharedCacheToo) {
  ASSERT_TRUE(open()->put(entry_));
  for (const std::string& path : below_root()) {
    SCOPED_TRACE(path);
    struct stat before {};
    ASSERT_EQ(::stat(path.c_str(), &before), 0);
    for (const bool is_group : {false, true}) {
      const int error = test::set_acl(path, {{is_group, kStranger, 7}}, 5, 7);
      if (error == ENOTSUP) GTEST_SKIP() << "the file system of " << path << " has no ACLs";
      for (const CacheTrust trust : {CacheTrust::owner, CacheTrust::shared}) {
        warnings_.clear();
        EXPECT_FALSE(open(trust)->get(entry_.id));
        EXPECT_THAT(warnings_, testing::ElementsAre(HasSubstr("is not trusted: its ACL lets")));
      }
      const auto layered = make_layered_store(make_memory_store(), {root_}, log());
      EXPECT_FALSE(layered->get(entry_.id));
    }
    ASSERT_EQ(test::set_acl(path, {{false, kStranger, 5}}, 7, 7), 0);
    EXPECT_TRUE(open(CacheTrust::shared)->get(entry_.id)) << "one who may read only";
    ASSERT_EQ(::chmod(path.c_str(), before.st_mode & 07777), 0);
    EXPECT_TRUE(open()->get(entry_.id));
  }
}

TEST_F(EntryGuardTest, WhatBelongsToAnotherUserIsAMiss) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  ASSERT_TRUE(open()->put(entry_));
  for (const std::string& path : below_root()) {
    SCOPED_TRACE(path);
    ASSERT_EQ(::chown(path.c_str(), kStranger, kStranger), 0);
    EXPECT_FALSE(open()->get(entry_.id));
    EXPECT_FALSE(open()->put(entry_));
    EXPECT_TRUE(open(CacheTrust::shared)->get(entry_.id));
    const auto layered = make_layered_store(make_memory_store(), {root_}, log());
    EXPECT_FALSE(layered->get(entry_.id));
    EXPECT_EQ(layered->stats().unreadable, 1u);
    ASSERT_EQ(::chown(path.c_str(), 0, 0), 0);
    EXPECT_TRUE(open()->get(entry_.id));
  }
}

TEST_F(EntryGuardTest, NothingIsPutIntoAFolderOfOthers) {
  std::filesystem::create_directories(entry_directory(root_, entry_.id));
  ASSERT_EQ(::chmod(entry_directory(root_, entry_.id).c_str(), 0777), 0);
  EXPECT_EQ(open()->put(entry_).code(), StatusCode::cache_not_writable);
  EXPECT_TRUE(std::filesystem::is_empty(entry_directory(root_, entry_.id)));
}

TEST_F(EntryGuardTest, AFolderReachedThroughALinkIsNotUsed) {
  ASSERT_TRUE(open()->put(entry_));
  const std::string arch = arch_directory(root_, entry_.id.key.arch);
  std::filesystem::rename(arch, dir_.path("elsewhere"));
  std::filesystem::create_directory_symlink(dir_.path("elsewhere"), arch);
  EXPECT_FALSE(open()->get(entry_.id));
  EXPECT_TRUE(make_layered_store(make_memory_store(), {root_}, log())->get(entry_.id)) << "our own link, of a layer";
}

TEST_F(EntryGuardTest, ALayersFilesThatAllMayWriteAreMisses) {
  ASSERT_TRUE(open()->put(entry_));
  for (const std::string& path : below_root()) {
    SCOPED_TRACE(path);
    struct stat before {};
    ASSERT_EQ(::stat(path.c_str(), &before), 0);
    ASSERT_EQ(::chmod(path.c_str(), 0777), 0);
    warnings_.clear();
    const auto layered = make_layered_store(make_memory_store(), {root_}, log());
    EXPECT_FALSE(layered->get(entry_.id));
    EXPECT_FALSE(layered->get(entry_.id));
    EXPECT_EQ(layered->stats().unreadable, 2u);
    EXPECT_THAT(warnings_, SizeIs(1));
    ASSERT_EQ(::chmod(path.c_str(), before.st_mode & 07777), 0);
    EXPECT_TRUE(make_layered_store(make_memory_store(), {root_}, log())->get(entry_.id));
  }
}

// The root comes into being after the store was opened, and is not good.
TEST_F(EntryGuardTest, ARootThatComesIntoBeingLaterIsExaminedThen) {
  const auto guarded = [&] {
    return make_guarded_store(make_dir_store(root_, log()), root_, CacheTrust::owner, log());
  };
  const auto before_get = guarded(), before_put = guarded();
  EXPECT_FALSE(before_get->get(entry_.id));
  EXPECT_EQ(before_get->root(), root_);
  EXPECT_FALSE(std::filesystem::exists(root_)) << "a get makes nothing";
  ASSERT_TRUE(make_dir_store(root_, Log::silent())->put(entry_));  // somebody else's
  ASSERT_EQ(::chmod(root_.c_str(), 0777), 0);
  EXPECT_FALSE(before_get->get(entry_.id));
  EXPECT_FALSE(before_get->get(entry_.id));
  EXPECT_THAT(warnings_, testing::ElementsAre(HasSubstr("all users may write")));
  EXPECT_EQ(before_get->root(), "");
  EXPECT_EQ(before_get->path_of(entry_.id), "");
  EXPECT_EQ(before_get->stats().misses, 3u);

  Entry other = entry_;
  other.id.digest.fill(9);
  const Status put = before_put->put(other);
  EXPECT_EQ(put.code(), StatusCode::cache_not_writable);
  EXPECT_THAT(put.message(), HasSubstr("all users may write"));
  EXPECT_FALSE(std::filesystem::exists(entry_path(root_, other.id)));
  EXPECT_TRUE(before_put->get(other.id)) << "from memory";
}

TEST_F(EntryGuardTest, ARootThatThisProcessMakesIsExaminedOnceMore) {
  int checks = 0;
  const auto store = make_guarded_store(
      make_dir_store(root_, log()), root_,
      [&](const std::string&) {
        ++checks;
        return Status::ok();
      },
      log());
  EXPECT_FALSE(store->get(entry_.id));
  EXPECT_EQ(checks, 1);
  ASSERT_TRUE(store->put(entry_));
  EXPECT_EQ(checks, 2);
  EXPECT_TRUE(store->get(entry_.id));
  EXPECT_EQ(checks, 2) << "not with every hit";
}

}  // namespace
}  // namespace gemvjit
