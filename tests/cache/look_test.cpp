// CubinStore::look(): what get() would find, without a trace: no file moved or stamped, nothing counted, no warning.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <map>

#include "cache/bundle.h"
#include "cache/guarded_store.h"
#include "cache/layered_store.h"
#include "cache/layout.h"
#include "cache/quarantine.h"
#include "cache/size_limit.h"
#include "cache/usage_ledger.h"
#include "tests/support/entries.h"
#include "tests/support/temp_dir.h"

namespace gemvjit {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class LookTest : public testing::Test {
 protected:
  Log log() {
    return Log::create(LogLevel::warning, [this](LogLevel, std::string_view text) { warnings_.emplace_back(text); });
  }
  // As a context has it.
  std::unique_ptr<CubinStore> open(std::vector<std::string> layers = {}) {
    DirStoreOptions options;
    options.guard = EntryGuard::of_cache(CacheTrust::owner);
    SizeLimit limit;
    limit.guard = options.guard;
    auto limited = make_size_limited_store(make_dir_store(root_, log(), options), limit, log());
    auto guarded = make_guarded_store(std::move(limited), root_, CacheTrust::owner, log());
    return make_layered_store(std::move(guarded), std::move(layers), log());
  }
  void put(const Entry& entry) { ASSERT_TRUE(make_dir_store(root_, Log::silent())->put(entry)); }
  void damage() const { std::filesystem::resize_file(entry_path(root_, entry_.id), 60); }
  // All below the root, with what a look could change.
  std::map<std::string, std::string> tree() const {
    std::map<std::string, std::string> found;
    for (const auto& item : std::filesystem::recursive_directory_iterator(dir_.path(""))) {
      struct stat info {};
      ::lstat(item.path().c_str(), &info);
      found[item.path()] = std::to_string(info.st_size) + " " + std::to_string(info.st_ino) + " " +
                           std::to_string(info.st_mtim.tv_nsec) + " " + std::to_string(info.st_mode);
    }
    return found;
  }
  void expect_no_trace(CubinStore& store, const std::map<std::string, std::string>& before) {
    EXPECT_EQ(tree(), before);
    EXPECT_THAT(warnings_, IsEmpty());
    const StoreStats stats = store.stats();
    EXPECT_EQ(stats.hits + stats.misses + stats.damaged + stats.unreadable + stats.quarantined, 0u);
  }

  test::TempDir dir_;
  std::string root_ = dir_.path("cache");
  Entry entry_ = test::sample_entry();
  std::vector<std::string> warnings_;
};

TEST_F(LookTest, WholeAndNotThere) {
  const auto before_all = tree();
  const auto empty = open();
  EXPECT_EQ(empty->look(entry_.id).status().code(), StatusCode::not_found);
  expect_no_trace(*empty, before_all);
  put(entry_);
  const auto before = tree();
  const auto store = open();
  const auto found = store->look(entry_.id);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->entry.cubin.bytes, entry_.cubin.bytes);
  EXPECT_EQ(found->path, entry_path(root_, entry_.id));
  expect_no_trace(*store, before);
}

TEST_F(LookTest, WhatIsDamagedStaysUntilTheRunWhichTellsOfIt) {
  put(entry_);
  damage();
  ASSERT_TRUE(write_bundle(dir_.path("k.gjb"), {&entry_}));
  const auto before = tree();
  for (const std::vector<std::string>& layers : {std::vector<std::string>{}, {dir_.path("k.gjb")}}) {
    const auto store = open(layers);
    const auto found = store->look(entry_.id);
    if (layers.empty()) {
      EXPECT_EQ(found.status().code(), StatusCode::entry_damaged);
      EXPECT_THAT(found.status().message(), HasSubstr(entry_path(root_, entry_.id)));
    } else {
      ASSERT_TRUE(found) << "the layer's is whole";
      EXPECT_THAT(found->path, HasSubstr("k.gjb#"));
    }
    expect_no_trace(*store, before);
  }
  const auto store = open({dir_.path("k.gjb")});
  (void)store->look(entry_.id);
  EXPECT_TRUE(store->get(entry_.id));
  EXPECT_EQ(store->stats().damaged, 1u) << "the look has hidden nothing";
  EXPECT_EQ(store->stats().quarantined, 1u);
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("cache entry not used")));
}

// One owner of the words: whatever is in an entry's place, get() moves away just what look() calls damaged.
TEST_F(LookTest, StatesOfWhatIsInAnEntrysPlace) {
  const std::string path = entry_path(root_, entry_.id);
  const auto state = [&] {
    const auto found = open()->look(entry_.id);
    return found.status().code();
  };
  put(entry_);
  ASSERT_EQ(::chmod(path.c_str(), 0666), 0);
  EXPECT_EQ(state(), StatusCode::io_error) << "not trusted";
  std::filesystem::rename(path, dir_.path("moved"));
  std::filesystem::create_symlink(dir_.path("moved"), path);
  EXPECT_EQ(state(), StatusCode::entry_damaged) << "a link";
  std::filesystem::remove(path);
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(state(), StatusCode::entry_damaged) << "a FIFO";
  std::filesystem::remove(path);
  std::filesystem::create_directory(path);
  EXPECT_EQ(state(), StatusCode::entry_damaged) << "a folder";
  const auto store = open();
  EXPECT_FALSE(store->get(entry_.id));
  EXPECT_THAT(store->put(entry_).message(), HasSubstr("is a folder: remove it by hand"));
  EXPECT_TRUE(std::filesystem::is_directory(path));
}

// B44: not even a link among what a linked folder leads to is moved away, and nothing is removed there.
TEST_F(LookTest, NothingIsTouchedBehindALinkedFolder) {
  put(entry_);
  const std::string target = arch_directory(root_, entry_.id.key.arch), outside = dir_.path("outside");
  std::filesystem::rename(target, outside);
  std::filesystem::create_directory_symlink(outside, target);
  const std::string path = entry_path(root_, entry_.id);
  const auto before = tree();
  const auto store = open();
  EXPECT_EQ(store->look(entry_.id).status().code(), StatusCode::io_error);
  EXPECT_FALSE(store->remove(entry_.id));
  EXPECT_EQ(tree(), before);
  std::filesystem::rename(path, dir_.path("moved"));
  std::filesystem::create_symlink(dir_.path("moved"), path);
  const auto changed = tree();
  EXPECT_EQ(store->look(entry_.id).status().code(), StatusCode::io_error);
  EXPECT_FALSE(store->get(entry_.id));
  EXPECT_FALSE(store->put(entry_));
  EXPECT_EQ(store->stats().quarantined, 0u);
  EXPECT_TRUE(std::filesystem::is_symlink(path));
  CollectRequest request;
  request.max_bytes = 0;
  request.guard = EntryGuard::of_anyone();
  EXPECT_THAT(collect_garbage(root_, request)->removed, IsEmpty());
}

TEST_F(LookTest, ALedgerKeepsItsModeAndGcMakesNone) {
  const std::string root = dir_.path("other"), path = usage_ledger_path(root);
  std::filesystem::create_directories(split_path(path).folder);
  const auto mode = [](const std::string& file) {
    struct stat info {};
    return ::stat(file.c_str(), &info) == 0 ? info.st_mode & 0777 : 0u;
  };
  const auto nothing = [](Usage&, const auto&) {};
  EXPECT_FALSE(UsageLedger(root).update(0, nothing, Missing::left));
  EXPECT_EQ(mode(path), 0u);
  const mode_t mask = ::umask(077);
  ASSERT_TRUE(UsageLedger(root, CacheTrust::shared).update(0, nothing));
  ::umask(mask);
  EXPECT_EQ(mode(path), 0660u) << "whatever the umask";
  ASSERT_TRUE(UsageLedger(root).update(0, nothing));
  EXPECT_EQ(mode(path), 0660u) << "others of the group have to write it";
  put(entry_);
  CollectRequest request;
  request.max_bytes = 0;
  ASSERT_EQ(collect_garbage(root_, request)->removed.size(), 1u);
  EXPECT_EQ(mode(usage_ledger_path(root_)), 0u);
}

TEST_F(LookTest, ABundleLeavesOutWhatIsGoneAndSweepsWhatADeadWriterLeft) {
  const Entry other = test::sample_entry({.n = 128});
  const std::string file = dir_.path("k.gjb"), stale = dir_.path(".tmp-12-0123456789abcdef.gjb"),
                    young = dir_.path(".tmp-13-0123456789abcdef.gjb"), foreign = dir_.path(".tmp-12-mine.gjb");
  for (const std::string& path : {stale, young, foreign}) {
    (void)dir_.write(path.substr(path.rfind('/') + 1), "x");
    if (path == young) continue;
    std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now() - std::chrono::hours(2));
  }
  const auto load = [&](const EntryId& id) -> Result<Entry> {
    if (id == entry_.id) return Status(StatusCode::not_found, "evicted");
    return other;
  };
  const auto written = write_bundle(file, {entry_.id, other.id}, load);
  ASSERT_TRUE(written) << written.status().message();
  EXPECT_EQ(written->entries, 1u);
  const auto bundle = Bundle::open(file);
  ASSERT_TRUE(bundle) << bundle.status().message();
  EXPECT_EQ((*bundle)->items().size(), 1u);
  EXPECT_FALSE(std::filesystem::exists(stale));
  EXPECT_TRUE(std::filesystem::exists(young)) << "its writer may live";
  EXPECT_TRUE(std::filesystem::exists(foreign)) << "not ours";
  EXPECT_EQ(write_bundle(dir_.path("none.gjb"), {entry_.id}, load).status().code(), StatusCode::not_found);
  EXPECT_FALSE(std::filesystem::exists(dir_.path("none.gjb")));
}

}  // namespace
}  // namespace gemvjit
