// A cache folder that comes into being later, and what lies below a root that is good.
#include "cache/guarded_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "cache/layout.h"
#include "cache/read_only_layer.h"
#include "tests/support/entries.h"
#include "tests/support/temp_dir.h"

namespace gemvjit {
namespace {

using test::TempDir;
using testing::HasSubstr;

class GuardedStoreTest : public testing::Test {
 protected:
  Entry entry_ = test::sample_entry();
  TempDir dir_;
  const std::string root_ = dir_.path("cache");
  bool refuse_ = false;
  std::unique_ptr<CubinStore> open() {
    const auto check = [this](const std::string& path) {
      return refuse_ ? Status(StatusCode::io_error, path + " is a stranger's") : Status::ok();
    };
    return make_guarded_store(make_dir_store(root_, Log::silent()), root_, check, Log::silent());
  }
};

// B41. Between the opening of a context and its first look somebody else may have made the folder.
TEST_F(GuardedStoreTest, AFolderThatSomebodyElseMadeMeanwhileIsNotRead) {
  const auto store = open();
  ASSERT_TRUE(make_dir_store(root_, Log::silent())->put(entry_));
  refuse_ = true;
  EXPECT_FALSE(store->get(entry_.id));
  EXPECT_EQ(store->root(), "");
  EXPECT_EQ(store->path_of(entry_.id), "");
  EXPECT_THAT(store->put(test::sample_entry({.n = 128})).message(), HasSubstr("stranger"));
  EXPECT_TRUE(store->get(test::sample_entry({.n = 128}).id)) << "kept in memory";
  EXPECT_FALSE(make_dir_store(root_, Log::silent())->get(test::sample_entry({.n = 128}).id)) << "and nowhere else";
}

TEST_F(GuardedStoreTest, OneThatIsGoodIsUsedOnceItIsThere) {
  const auto store = open();
  EXPECT_FALSE(store->get(entry_.id));
  EXPECT_EQ(store->stats().misses, 1u);
  ASSERT_TRUE(store->put(entry_));
  refuse_ = true;  // examined once
  EXPECT_TRUE(store->get(entry_.id));
  EXPECT_EQ(store->root(), root_);
}

class EntryGuardMatrix : public GuardedStoreTest {
 protected:
  std::unique_ptr<CubinStore> guarded() {
    DirStoreOptions options;
    options.guard = EntryGuard::of_cache(CacheTrust::owner);
    return make_dir_store(root_, Log::silent(), options);
  }
  // That the entry is a miss as long as the path has the mode, in the cache and in a layer.
  void expect_refused_with(const std::string& path, mode_t mode, mode_t good) {
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
    const auto store = guarded();
    EXPECT_FALSE(store->get(entry_.id)) << path;
    EXPECT_EQ(store->stats().unreadable, 1u) << path;
    EXPECT_FALSE(store->put(entry_)) << path;
    const auto layer = open_read_only_layer(root_, nullptr);
    ASSERT_TRUE(layer) << layer.status().text();
    EXPECT_THAT((*layer)->read(entry_.id).status().message(), HasSubstr("all users may write it")) << path;
    ASSERT_EQ(::chmod(path.c_str(), good), 0);
    EXPECT_TRUE(guarded()->get(entry_.id)) << path;
    EXPECT_TRUE((*layer)->read(entry_.id)) << path;
  }
};

TEST_F(EntryGuardMatrix, NothingBelowTheRootMayBeWrittenByAll) {
  ASSERT_TRUE(guarded()->put(entry_));
  const std::filesystem::path file = entry_path(root_, entry_.id);
  expect_refused_with(file, 0666, 0600);
  expect_refused_with(file.parent_path(), 0777, 0700);
  expect_refused_with(file.parent_path().parent_path(), 0777, 0700);
  expect_refused_with(file.parent_path().parent_path().parent_path(), 0777, 0700);
}

TEST_F(EntryGuardMatrix, AnotherUsersFileOrFolderIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to give files away";
  ASSERT_TRUE(guarded()->put(entry_));
  const std::filesystem::path file = entry_path(root_, entry_.id);
  for (const std::filesystem::path& path : {file, file.parent_path(), file.parent_path().parent_path()}) {
    ASSERT_EQ(::chown(path.c_str(), 65534, 65534), 0);
    EXPECT_FALSE(guarded()->get(entry_.id)) << path;
    EXPECT_FALSE((*open_read_only_layer(root_, nullptr))->read(entry_.id)) << path;
    ASSERT_EQ(::chown(path.c_str(), 0, 0), 0);
    EXPECT_TRUE(guarded()->get(entry_.id)) << path;
  }
}

}  // namespace
}  // namespace gemvjit
