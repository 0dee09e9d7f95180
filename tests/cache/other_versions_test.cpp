// B52: entries of another format version, which another version of the library makes in the same folder, are that
// version's: nothing here reads, counts or removes them, until it is told to.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <map>

#include "cache/layered_store.h"
#include "cache/layout.h"
#include "cache/size_limit.h"
#include "tests/faults/faults_support.h"
#include "tests/support/temp_dir.h"

namespace gemvjit::test {
namespace {

constexpr std::int64_t now = 1'800'000'000;
constexpr std::int64_t day = 24 * 3600;

class OtherVersions : public ::testing::Test {
 protected:
  OtherVersions() {
    const Entry entry = fault_entry(64, 7);
    const Bytes bytes = encode_entry(entry);
    const std::string text(bytes.begin(), bytes.end());
    // An older version without folders for digits, and a newer one with names and content of its own.
    place("v0/sm_90a/" + entry_file_name(entry.id), text, 40 * day);
    place("v2/sm_90a/ab/" + entry_file_name(entry.id), "another format", 40 * day);
    place("v2/sm_120a/ab/other name.entry", "another format", 1 * day);
    place("v2/sm_120a/ab/.tmp-1-0123456789abcdef", "being written", 40 * day);
    place("v10/usage", "a ledger", 40 * day);
    place("notes/keep.entry", "no version's", 40 * day);
    before = snapshot();
  }
  void place(const std::string& name, const std::string& content, std::int64_t age) {
    const std::string path = dir.write("cache/" + name, content);
    const timespec times[2] = {{static_cast<time_t>(now - age), 0}, {static_cast<time_t>(now - age), 0}};
    EXPECT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  }
  // Everything outside this version's folder: content and access time.
  std::map<std::string, std::string> snapshot() const {
    std::map<std::string, std::string> files;
    for (const auto& found : std::filesystem::recursive_directory_iterator(root)) {
      const std::string path = found.path().string();
      if (!found.is_regular_file() || path.starts_with(version_directory(root))) continue;
      struct stat info {};
      EXPECT_EQ(::lstat(path.c_str(), &info), 0);
      const std::string use = std::to_string(info.st_atime);
      files[path.substr(root.size() + 1)] =
          use + " " + std::to_string(info.st_ino) + " " + std::to_string(info.st_size);
    }
    return files;
  }
  // What is gone since the start.
  std::vector<std::string> gone() const {
    const auto left = snapshot();
    std::vector<std::string> names;
    for (const auto& [name, state] : before) {
      if (!left.contains(name)) names.push_back(name);
    }
    return names;
  }
  static CollectRequest request(std::optional<std::int64_t> age, bool other_versions) {
    CollectRequest result;
    result.max_age_seconds = age;
    result.other_versions = other_versions;
    result.now = now;
    return result;
  }

  TempDir dir;
  std::string root = dir.path("cache");
  std::map<std::string, std::string> before;
  std::string v0 = "v0/sm_90a/" + entry_file_name(fault_entry(64, 7).id);
  std::string v2 = "v2/sm_90a/ab/" + entry_file_name(fault_entry(64, 7).id);
};

TEST_F(OtherVersions, NothingReadsCountsOrRemovesThem) {
  SizeLimit limit;
  limit.max_bytes = 8'000;
  limit.keep_free_bytes = 0;
  DirStoreOptions sweeping;
  sweeping.stale_after_seconds = -1;
  const auto store = make_size_limited_store(make_dir_store(root, Log::silent(), sweeping), limit, Log::silent());
  EXPECT_FALSE(store->get(fault_entry(64, 7).id)) << "an entry of v0 is none of ours, even where its bytes are";
  EXPECT_EQ(store->stats().damaged, 0u);
  for (std::int64_t n = 1; n <= 40; ++n) EXPECT_TRUE(store->put(fault_entry(64 * n, 30)));
  EXPECT_TRUE(store->get(fault_entry(64 * 40, 30).id));
  EXPECT_GT(store->stats().evictions, 0u) << "the cap must have been met";
  const auto listed = store->list();
  ASSERT_TRUE(listed);
  for (const ListedEntry& entry : *listed) EXPECT_TRUE(entry.path.starts_with(version_directory(root))) << entry.path;
  EXPECT_TRUE(store->remove(fault_entry(64 * 40, 30).id));
  const auto scanned = scan_cache(root);
  ASSERT_TRUE(scanned);
  for (const CachedFile& file : *scanned) EXPECT_TRUE(file.path.starts_with(version_directory(root))) << file.path;
  EXPECT_EQ(snapshot(), before);
}

TEST_F(OtherVersions, AReadOnlyLayerPassesThemOver) {
  const auto store = make_layered_store(make_memory_store(), {root}, Log::silent());
  EXPECT_FALSE(store->get(fault_entry(64, 7).id));
  EXPECT_EQ(store->stats().damaged, 0u);
  EXPECT_EQ(snapshot(), before);
}

TEST_F(OtherVersions, CollectingLeavesThemUnlessAsked) {
  ASSERT_TRUE(make_dir_store(root, Log::silent())->put(fault_entry(64, 7)));
  CollectRequest everything = request(std::nullopt, false);
  everything.max_bytes = 0;
  const auto collected = collect_garbage(root, everything);
  ASSERT_TRUE(collected);
  EXPECT_EQ(collected->removed.size(), 1u) << "this version's own";
  ASSERT_TRUE(collect_garbage(root, request(0, false)));
  EXPECT_EQ(snapshot(), before);
}

TEST_F(OtherVersions, AskedByAgeTheOldOnesGo) {
  CollectRequest dry = request(30 * day, true);
  dry.dry_run = true;
  const auto would = collect_garbage(root, dry);
  ASSERT_TRUE(would);
  EXPECT_EQ(would->removed.size(), 2u);
  EXPECT_EQ(snapshot(), before);
  CollectRequest of_target = request(30 * day, true);
  of_target.archs = {"sm_120a"};
  ASSERT_TRUE(collect_garbage(root, of_target));
  EXPECT_EQ(snapshot(), before) << "that of sm_120a was used a day ago";
  const auto collected = collect_garbage(root, request(30 * day, true));
  ASSERT_TRUE(collected);
  EXPECT_THAT(gone(), ::testing::UnorderedElementsAre(v0, v2));
  EXPECT_GT(collected->removed_bytes, 0u);
}

TEST_F(OtherVersions, AskedWithoutAnAgeAllEntriesGoAndNothingElse) {
  ASSERT_TRUE(make_dir_store(root, Log::silent())->put(fault_entry(64, 7)));
  const auto collected = collect_garbage(root, request(std::nullopt, true));
  ASSERT_TRUE(collected);
  EXPECT_EQ(collected->kept, 1u) << "this version's entry stays";
  EXPECT_THAT(gone(), ::testing::UnorderedElementsAre(v0, v2, "v2/sm_120a/ab/other name.entry"));
}

TEST_F(OtherVersions, LinksAreNotFollowed) {
  const std::string outside = dir.write("elsewhere/sm_90a/x.entry", "not in the cache");
  std::filesystem::create_directory_symlink(dir.path("elsewhere"), root + "/v3");
  std::filesystem::create_directory_symlink(dir.path("elsewhere"), root + "/v2/link");
  ASSERT_TRUE(collect_garbage(root, request(std::nullopt, true)));
  EXPECT_TRUE(std::filesystem::exists(outside));
}

}  // namespace
}  // namespace gemvjit::test
