// A cache of very many entries stays quick: what a lookup costs does not grow with their number, and no more files are
// made than there are entries (scenario B50). GEMVJIT_TEST_ENTRIES sets the number and prints the times: that is how
// the figures of docs/reliability.md were measured.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>

#include "cache/size_limit.h"
#include "tests/support/entries.h"
#include "tests/support/temp_dir.h"

namespace gemvjit {
namespace {

Entry make_entry(std::uint32_t number) {
  Entry entry = test::sample_entry(
      {.n = 8 + 8 * std::int64_t{number}, .payload = 64, .content = static_cast<std::uint8_t>(number)});
  const std::uint32_t mixed = number * 2654435761u;  // spreads over the folders as digests do
  for (int i = 0; i < 4; ++i) {
    entry.id.digest[i] = static_cast<std::uint8_t>(mixed >> 8 * i);
    entry.id.digest[4 + i] = static_cast<std::uint8_t>(number >> 8 * i);
  }
  return entry;
}

template <typename Work>
double microseconds(const Work& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
}

TEST(ManyEntries, LookUpAndList) {
  const char* wish = std::getenv("GEMVJIT_TEST_ENTRIES");
  const auto count = static_cast<std::uint32_t>(wish != nullptr ? std::atoi(wish) : 400);
  ASSERT_GE(count, 100u);
  const test::TempDir dir;
  const std::string root = dir.path("cache");
  {
    const auto store = make_dir_store(root, Log::silent());
    for (std::uint32_t i = 0; i < count; ++i) ASSERT_TRUE(store->put(make_entry(i)));
  }
  std::size_t files = 0, folders = 0;
  for (const auto& item : std::filesystem::recursive_directory_iterator(root))
    ++(item.is_directory() ? folders : files);
  EXPECT_EQ(files, count);
  EXPECT_LE(folders, 260u);

  std::unique_ptr<CubinStore> store;
  const double open = microseconds([&] { store = make_dir_store(root, Log::silent()); });
  constexpr std::uint32_t kLookUps = 1000;
  std::uint32_t hits = 0;
  const double hit = microseconds([&] {
    for (std::uint32_t i = 0; i < kLookUps; ++i) hits += store->get(make_entry(i * 7919u % count).id).has_value();
  });
  EXPECT_EQ(hits, kLookUps);
  // As contexts do it: owner and mode of the file and of the folders above it are looked at, too.
  DirStoreOptions options;
  options.guard = EntryGuard::of_cache(CacheTrust::owner);
  const auto guarded = make_dir_store(root, Log::silent(), options);
  const double guarded_hit = microseconds([&] {
    for (std::uint32_t i = 0; i < kLookUps; ++i) hits += guarded->get(make_entry(i * 7919u % count).id).has_value();
  });
  EXPECT_EQ(hits, 2 * kLookUps);
  std::uint32_t misses = 0;
  const double miss = microseconds([&] {
    for (std::uint32_t i = 0; i < kLookUps; ++i) misses += !store->get(make_entry(count + i).id).has_value();
  });
  EXPECT_EQ(misses, kLookUps);
  std::size_t scanned = 0, listed = 0;
  const double scan = microseconds([&] { scanned = scan_cache(root)->size(); });
  const double list = microseconds([&] { listed = store->list()->size(); });
  EXPECT_EQ(scanned, count);
  EXPECT_EQ(listed, count);
  if (wish != nullptr) {
    fmt::print(
        "{} entries: open {:.1f} us, hit {:.1f} us, guarded {:.1f} us, miss {:.1f} us, names and sizes of all {:.1f} "
        "ms, list (reads all) "
        "{:.1f} ms\n",
        count, open, hit / kLookUps, guarded_hit / kLookUps, miss / kLookUps, scan / 1000, list / 1000);
  }
}

}  // namespace
}  // namespace gemvjit
