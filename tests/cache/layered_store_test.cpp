// A writable store over read-only layers: order, who wins, and that a layer is never written to.
#include "cache/layered_store.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "cache/bundle.h"
#include "cache/layout.h"
#include "cache/read_only_layer.h"
#include "src/base/files.h"
#include "tests/support/entries.h"
#include "tests/support/temp_dir.h"

namespace gemvjit {
namespace {

using test::read_text;
using test::TempDir;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// `answer` decides the cubin's bytes: entries of one id and other bytes are told apart by it.
Entry make_entry(std::int64_t n, std::uint8_t answer = 1) {
  return test::sample_entry({.n = n, .digest_byte = static_cast<std::uint8_t>(n), .payload = 200, .content = answer});
}

class LayeredStoreTest : public testing::Test {
 protected:
  std::unique_ptr<CubinStore> open(const std::vector<std::string>& layers) {
    const Log log =
        Log::create(LogLevel::warning, [this](LogLevel, std::string_view text) { warnings_.emplace_back(text); });
    return make_layered_store(make_dir_store(local_, log), layers, log);
  }
  std::string folder_layer(const std::string& name, const std::vector<Entry>& entries) const {
    const auto store = make_dir_store(dir_.path(name), Log::silent());
    for (const Entry& entry : entries) EXPECT_TRUE(store->put(entry));
    return dir_.path(name);
  }
  std::string bundle_layer(const std::string& name, const std::vector<Entry>& entries) const {
    std::vector<const Entry*> pointers;
    for (const Entry& entry : entries) pointers.push_back(&entry);
    EXPECT_TRUE(write_bundle(dir_.path(name), pointers));
    return dir_.path(name);
  }
  static int answer(CubinStore& store, std::int64_t n) {
    const auto entry = store.get(make_entry(n).id);
    return entry ? entry->cubin.bytes.front() : -1;
  }
  // Every file and folder below with kind, mode, size, content and all times but that of the last access.
  static std::string picture(const std::string& folder) {
    std::string text;
    const auto add = [&](const std::string& path) {
      struct stat info {};
      ASSERT_EQ(::lstat(path.c_str(), &info), 0) << path;
      text += fmt::format("{} {:o} {} m{}.{} c{}.{}\n", path, info.st_mode, info.st_size, info.st_mtim.tv_sec,
                          info.st_mtim.tv_nsec, info.st_ctim.tv_sec, info.st_ctim.tv_nsec);
      if (S_ISREG(info.st_mode)) text += read_text(path);
    };
    add(folder);
    std::vector<std::string> paths;
    if (std::filesystem::is_directory(folder)) {
      for (const auto& item : std::filesystem::recursive_directory_iterator(folder)) paths.push_back(item.path());
    }
    std::sort(paths.begin(), paths.end());
    for (const std::string& path : paths) add(path);
    return text;
  }

  TempDir dir_;
  std::string local_ = dir_.path("local");
  std::vector<std::string> warnings_;
};

TEST_F(LayeredStoreTest, LayersAreAskedInOrderAfterTheWritableStore) {
  const std::string first = folder_layer("first", {make_entry(1, 21), make_entry(2, 22)});
  const std::string second = bundle_layer("second.gjb", {make_entry(1, 31), make_entry(2, 32), make_entry(3, 33)});
  ASSERT_TRUE(make_dir_store(local_, Log::silent())->put(make_entry(1, 11)));
  const auto store = open({first, second});
  EXPECT_EQ(answer(*store, 1), 11);
  EXPECT_EQ(answer(*store, 2), 22);
  EXPECT_EQ(answer(*store, 3), 33);
  EXPECT_EQ(answer(*store, 4), -1);
  EXPECT_EQ(store->stats().hits, 3u);
  EXPECT_EQ(store->stats().misses, 1u);
  EXPECT_EQ(store->stats().damaged, 0u);
  EXPECT_EQ(answer(*open({second, first}), 2), 32);
  EXPECT_THAT(warnings_, IsEmpty());

  EXPECT_EQ(store->path_of(make_entry(1).id), entry_path(local_, make_entry(1).id));
  EXPECT_EQ(store->path_of(make_entry(2).id), entry_path(first, make_entry(2).id));
  EXPECT_THAT(store->path_of(make_entry(3).id), HasSubstr(second + "#sm_90a/"));
  EXPECT_EQ(store->path_of(make_entry(4).id), entry_path(local_, make_entry(4).id));
  EXPECT_EQ(store->root(), local_);
  const auto listed = store->list();
  ASSERT_TRUE(listed);
  EXPECT_THAT(*listed, SizeIs(6));
  EXPECT_TRUE(
      std::is_sorted(listed->begin(), listed->end(), [](const auto& a, const auto& b) { return a.path < b.path; }));
}

// B31: what a layer brings never takes the place of a local entry, not even an older one; the layer's stays, too. Two
// answers of one compiler to one recipe are said.
TEST_F(LayeredStoreTest, ALayerNeverOverwritesALocalEntry) {
  const std::string layer = bundle_layer("image.gjb", {make_entry(1, 2)});
  const std::string before = picture(layer);
  const auto store = open({layer});
  EXPECT_EQ(answer(*store, 1), 2);
  EXPECT_FALSE(std::filesystem::exists(local_)) << "a hit in a layer is not copied";
  ASSERT_TRUE(store->put(make_entry(1, 1)));
  ASSERT_THAT(warnings_, SizeIs(1));
  EXPECT_THAT(warnings_[0], HasSubstr("different answers"));
  EXPECT_THAT(warnings_[0], HasSubstr(layer));
  EXPECT_EQ(answer(*store, 1), 1);
  EXPECT_EQ(answer(*open({layer}), 1), 1) << "also for the next process";
  EXPECT_EQ(picture(layer), before);
  ASSERT_TRUE(store->remove(make_entry(1).id));
  EXPECT_EQ(answer(*store, 1), 2) << "both were kept";
}

TEST_F(LayeredStoreTest, AnotherCompilersBytesAreNoFault) {
  Entry other = make_entry(1, 2);
  other.cubin.compiler_version = "NVRTC 12.9";
  const auto store = open({bundle_layer("image.gjb", {other})});
  ASSERT_TRUE(store->put(make_entry(1, 1)));
  EXPECT_THAT(warnings_, IsEmpty());
}

// Everything that a store may be asked, with a stale temporary and a damaged entry in the way, which a writable store
// would sweep and replace.
TEST_F(LayeredStoreTest, AReadOnlyLayerIsNotWrittenTo) {
  const std::string folder = folder_layer("layer", {make_entry(1), make_entry(2)});
  const std::string bundle = bundle_layer("layer.gjb", {make_entry(3), make_entry(4)});
  const std::string stale = entry_directory(folder, make_entry(1).id) + "/.tmp-1-0123456789abcdef";
  std::ofstream(stale) << "left";
  const timespec long_ago[2] = {{1600000000, 0}, {1600000000, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, stale.c_str(), long_ago, 0), 0);
  std::ofstream(entry_path(folder, make_entry(2).id), std::ios::app) << "damage";
  const std::string before = picture(folder) + picture(bundle);

  const auto store = open({folder, bundle});
  EXPECT_EQ(answer(*store, 1), 1);
  EXPECT_EQ(answer(*store, 2), -1);
  EXPECT_EQ(answer(*store, 3), 1);
  EXPECT_EQ(answer(*store, 5), -1);
  for (const std::int64_t n : {1, 2, 3, 5}) EXPECT_TRUE(store->put(make_entry(n)));
  EXPECT_EQ(answer(*store, 2), 1);
  EXPECT_TRUE(store->list());
  for (const std::int64_t n : {1, 2, 3, 4, 5}) EXPECT_TRUE(store->remove(make_entry(n).id));
  EXPECT_EQ(picture(folder) + picture(bundle), before);
  EXPECT_EQ(answer(*store, 4), 1);
}

// B40: a layer of somebody else's, of which nothing can be written here; each user keeps his own in his own folder.
TEST_F(LayeredStoreTest, ALayerWithoutWritePermissionServes) {
  const std::string folder = folder_layer("shared", {make_entry(1, 9)});
  const std::string bundle = bundle_layer("shared.gjb", {make_entry(2, 9)});
  ASSERT_EQ(::chmod(bundle.c_str(), 0444), 0);
  std::vector<std::string> folders;
  for (const auto& item : std::filesystem::recursive_directory_iterator(folder)) folders.push_back(item.path());
  for (const std::string& path : folders) {
    ASSERT_EQ(::chmod(path.c_str(), std::filesystem::is_directory(path) ? 0555 : 0444), 0);
  }
  const std::string locals[] = {dir_.path("user_a"), dir_.path("user_b")};
  for (const std::string& local : locals) {
    local_ = local;
    const auto store = open({folder, bundle});
    EXPECT_EQ(answer(*store, 1), 9);
    EXPECT_EQ(answer(*store, 2), 9);
    EXPECT_TRUE(store->put(make_entry(3)));
    EXPECT_TRUE(std::filesystem::exists(entry_path(local, make_entry(3).id)));
  }
  EXPECT_THAT(warnings_, IsEmpty());
  for (const std::string& path : folders) ::chmod(path.c_str(), 0700);  // so that the folder can be removed
}

TEST_F(LayeredStoreTest, ALayerOfNoUseIsPassedOverWithOneWarning) {
  const std::string good = folder_layer("good", {make_entry(1, 5)});
  const std::string bad = dir_.write("bad.gjb",
                                     "this is no bundle, although it is long enough to have one's header and "
                                     "footer, which are together less than a hundred bytes");
  std::filesystem::create_symlink(bundle_layer("b.gjb", {make_entry(1, 6)}), dir_.path("link.gjb"));
  for (const std::string& layer : {bad, dir_.path("absent"), dir_.path("link.gjb")}) {
    warnings_.clear();
    const auto store = open({layer, good});
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(answer(*store, 1), 5);
      EXPECT_EQ(answer(*store, 2), -1);
    }
    EXPECT_THAT(warnings_, ElementsAre(HasSubstr(layer)));
    EXPECT_TRUE(store->put(make_entry(3)));
  }
}

TEST_F(LayeredStoreTest, ADamagedEntryOfALayerIsPassedOverWithOneWarning) {
  const std::string bundle = bundle_layer("damaged.gjb", {make_entry(1, 7), make_entry(2, 7)});
  const std::uint64_t offset = (*Bundle::open(bundle))->find(make_entry(1).id)->offset;
  {
    std::fstream file(bundle, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(offset) + 100);
    file.put('\x5a');
  }
  const auto store = open({bundle, folder_layer("next", {make_entry(1, 8)})});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(answer(*store, 1), 8);
  EXPECT_EQ(answer(*store, 2), 7);
  ASSERT_THAT(warnings_, SizeIs(1));
  EXPECT_THAT(warnings_[0], HasSubstr(bundle + "#"));
  EXPECT_EQ(store->stats().damaged, 3u);
  EXPECT_EQ(store->stats().hits, 4u);
}

// An entry under another's name in a folder layer is a miss as it is in the cache.
TEST_F(LayeredStoreTest, AForeignFileOfALayerIsNotUsed) {
  const std::string folder = folder_layer("layer", {make_entry(1), make_entry(2)});
  std::filesystem::copy_file(entry_path(folder, make_entry(1).id), entry_path(folder, make_entry(2).id),
                             std::filesystem::copy_options::overwrite_existing);
  const auto store = open({folder});
  EXPECT_EQ(answer(*store, 2), -1);
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("another kernel")));
}

TEST_F(LayeredStoreTest, ADamagedLocalEntryIsServedByALayer) {
  ASSERT_TRUE(make_dir_store(local_, Log::silent())->put(make_entry(1, 1)));
  std::ofstream(entry_path(local_, make_entry(1).id), std::ios::app) << "damage";
  const auto store = open({bundle_layer("image.gjb", {make_entry(1, 2)})});
  EXPECT_EQ(answer(*store, 1), 2);
}

TEST_F(LayeredStoreTest, WithoutLayersItIsTheWritableStoreItself) {
  auto store = make_memory_store();
  const CubinStore* raw = store.get();
  EXPECT_EQ(make_layered_store(std::move(store), {}, Log::silent()).get(), raw);
  const auto layered =
      make_layered_store(make_memory_store(), {bundle_layer("b.gjb", {make_entry(1, 4)})}, Log::silent());
  EXPECT_EQ(answer(*layered, 1), 4);
  EXPECT_EQ(layered->root(), "");
}

TEST_F(LayeredStoreTest, LayersAreOpenedAtFirstUse) {
  const auto store = open({dir_.path("later.gjb")});
  bundle_layer("later.gjb", {make_entry(1, 4)});
  EXPECT_EQ(answer(*store, 1), 4);
  EXPECT_THAT(warnings_, IsEmpty());
}

// The first use, which opens the layers, from many threads at once; then hits, misses and puts side by side.
TEST_F(LayeredStoreTest, ManyThreadsUseOneStore) {
  const auto store = open({bundle_layer("b.gjb", {make_entry(1, 4)}), folder_layer("f", {make_entry(2, 5)})});
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) {
        if (answer(*store, 1) != 4 || answer(*store, 2) != 5 || answer(*store, 100) != -1) ++wrong;
        if (!store->put(make_entry(10 + t))) ++wrong;
        if (store->path_of(make_entry(1).id).empty()) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(store->stats().hits, 8u * 20 * 2);
  EXPECT_EQ(store->stats().misses, 8u * 20);
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST(SplitLayerPaths, KeepsOrderAndLeavesOutEmptyParts) {
  EXPECT_THAT(split_layer_paths(""), IsEmpty());
  EXPECT_THAT(split_layer_paths("::"), IsEmpty());
  EXPECT_THAT(split_layer_paths("/a:/b.gjb"), ElementsAre("/a", "/b.gjb"));
  EXPECT_THAT(split_layer_paths(":b::/a:"), ElementsAre("b", "/a"));
}

}  // namespace
}  // namespace gemvjit
