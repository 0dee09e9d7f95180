// B41: a folder of the cache that became unsafe after the store was opened: what lists and what counts looks into it no
// more than what reads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "cache/layout.h"
#include "cache/read_only_layer.h"
#include "cache/size_limit.h"
#include "tests/support/entries.h"
#include "tests/support/temp_dir.h"

namespace gemvjit {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

class GuardedList : public testing::Test {
 protected:
  std::unique_ptr<CubinStore> open(std::uint64_t max_bytes = 1u << 30) const {
    DirStoreOptions options;
    options.guard = EntryGuard::of_cache(CacheTrust::owner);
    SizeLimit limit;
    limit.max_bytes = max_bytes;
    limit.guard = options.guard;
    return make_size_limited_store(make_dir_store(root_, Log::silent(), options), limit, Log::silent());
  }
  static Entry entry(int number, std::size_t payload = 1000) {
    return test::sample_entry({.digest_byte = static_cast<std::uint8_t>(number), .payload = payload});
  }
  // That nothing is listed but the folder, with the reason.
  static void expect_only_problem(const std::vector<ListedEntry>& listed, const std::string& path,
                                  const std::string& reason) {
    ASSERT_THAT(listed, SizeIs(1));
    EXPECT_EQ(listed[0].path, path);
    EXPECT_FALSE(listed[0].entry);
    EXPECT_EQ(listed[0].problem.code(), StatusCode::io_error);
    EXPECT_THAT(listed[0].problem.message(), HasSubstr(reason));
  }

  test::TempDir dir_;
  const std::string root_ = dir_.path("cache");
};

TEST_F(GuardedList, AFolderThatBecameUnsafeIsNotLookedInto) {
  const auto store = open();
  ASSERT_TRUE(store->put(entry(1)));
  ASSERT_THAT(*store->list(), SizeIs(1));
  const auto layer = open_read_only_layer(root_);
  ASSERT_TRUE(layer);
  for (const std::string& folder : {entry_directory(root_, entry(1).id), arch_directory(root_, entry(1).id.key.arch)}) {
    SCOPED_TRACE(folder);
    ASSERT_EQ(::chmod(folder.c_str(), 0777), 0);
    expect_only_problem(*store->list(), folder, "all users may write it");
    expect_only_problem(*(*layer)->list(), folder, "all users may write it");
    EXPECT_THAT(*scan_cache(root_, nullptr), SizeIs(1));
    const EntryGuard guard = EntryGuard::of_cache(CacheTrust::owner);
    EXPECT_THAT(*scan_cache(root_, &guard), SizeIs(0));
    ASSERT_EQ(::chmod(folder.c_str(), 0700), 0);
    EXPECT_TRUE((*store->list())[0].entry);
  }
  ASSERT_EQ(::chmod(version_directory(root_).c_str(), 0777), 0);
  EXPECT_EQ(store->list().status().code(), StatusCode::io_error);
  EXPECT_EQ(scan_cache(root_, nullptr)->size(), 1u);
}

TEST_F(GuardedList, AFileThatOthersMayWriteIsAProblem) {
  const auto store = open();
  ASSERT_TRUE(store->put(entry(1)));
  ASSERT_EQ(::chmod(entry_path(root_, entry(1).id).c_str(), 0666), 0);
  expect_only_problem(*store->list(), entry_path(root_, entry(1).id), "all users may write it");
}

// A link in a folder's place: eviction must not reach what it leads to.
TEST_F(GuardedList, NothingIsEvictedBehindALink) {
  constexpr std::size_t payload = 100'000;
  ASSERT_TRUE(open()->put(entry(1, payload)));
  const std::string folder = entry_directory(root_, entry(1).id), elsewhere = dir_.path("elsewhere");
  std::filesystem::rename(folder, elsewhere);
  std::filesystem::create_directory_symlink(elsewhere, folder);
  ASSERT_TRUE(std::filesystem::exists(folder + "/" + entry_file_name(entry(1).id))) << "who follows it would see it";
  const auto store = open(5 * payload);
  expect_only_problem(*store->list(), folder, "it is a link");
  for (int i = 2; i < 12; ++i) EXPECT_TRUE(store->put(entry(i, payload)));
  EXPECT_GT(store->stats().evictions, 0u);
  EXPECT_TRUE(std::filesystem::exists(elsewhere + "/" + entry_file_name(entry(1).id)));
}

}  // namespace
}  // namespace gemvjit
