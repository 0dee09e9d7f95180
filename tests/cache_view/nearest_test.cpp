// B49, B74: a miss names the nearest entry and the first field that differs. And the arithmetic of recorded times.
#include "tools/cache_view/nearest.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "cache/layout.h"
#include "cache/store.h"
#include "tests/support/temp_dir.h"
#include "tools/cache_view/compile_times.h"

namespace gemvjit::tools {
namespace {

const KernelKey base = *KernelKey::parse("n64-k4096-nt1-f0000410208848021-sm_90a");

KnownEntry known(const KernelKey& key, const Digest& digest = {}) { return {key, to_hex(digest).substr(0, 16), "p"}; }

TEST(Nearest, EveryFieldIsToldOfInOrder) {
  KernelKey other = base;
  other.n = 72;
  other.nt = 2;
  other.arch = {80, 0};
  const auto all = differences({base, {}}, known(other));
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].field, "n");
  EXPECT_EQ(all[0].wanted, "64");
  EXPECT_EQ(all[0].found, "72");
  EXPECT_EQ(all[1].field, "nt");
  EXPECT_EQ(all[2].field, "arch");
  EXPECT_EQ(all[2].found, "sm_80");
  other = base;
  other.flags ^= std::uint64_t{1} << 63;
  ASSERT_EQ(differences({base, {}}, known(other)).size(), 1u);
  EXPECT_EQ(differences({base, {}}, known(other))[0].field, "flags");
}

TEST(Nearest, TheRecipeCountsWhereKeysAreAlike) {
  Digest digest{};
  EXPECT_TRUE(differences({base, digest}, known(base)).empty());
  digest[7] = 1;  // within the digits of a name
  EXPECT_EQ(differences({base, {}}, known(base, digest))[0].field, "recipe");
  KernelKey other = base;
  other.k = 8192;
  EXPECT_EQ(differences({base, {}}, known(other, digest)).size(), 1u) << "the digest covers the key";
}

TEST(Nearest, FewestDifferencesThenTheClosestShapeThenTheFirst) {
  KernelKey far = base, close = base, two = base;
  far.n = 65536;
  close.n = 128;
  two.nt = 2;
  two.n = 65;
  const auto nearest = find_nearest({known(two), known(far), known(close), known(close)}, {base, {}});
  ASSERT_TRUE(nearest);
  EXPECT_EQ(nearest->index, 2u);
  EXPECT_EQ(nearest->differences[0].field, "n");
  EXPECT_FALSE(find_nearest({}, {base, {}}));
  EXPECT_EQ(find_nearest({known(two), known(base)}, {base, {}})->index, 1u);
}

TEST(Nearest, AFoldersEntriesAreToldByTheirNames) {
  const test::TempDir folder;
  EXPECT_TRUE(list_known_entries(folder.path("cache")).empty());
  const auto store = make_dir_store(folder.path("cache"), Log::silent());
  Entry entry;
  entry.id = {base, {}};
  entry.id.digest[0] = 0xab;
  entry.cubin.bytes = {1, 2};
  entry.cubin.entry_name = "kernel";
  entry.cubin.compiler_version = "NVRTC 0.0";
  ASSERT_TRUE(store->put(entry));
  const auto entries = list_known_entries(folder.path("cache"));
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(entries[0].key, base);
  EXPECT_EQ(entries[0].digest, "ab00000000000000");
  EXPECT_EQ(entries[0].path, entry_path(folder.path("cache"), entry.id));
}

TEST(CompileTimes, AreTheEntrysOwnElseTheFoldersElseNotKnown) {
  const test::TempDir folder;
  const std::string root = folder.path("cache");
  std::filesystem::create_directories(root + "/v1");
  Entry entry;
  entry.id.digest.fill(7);
  EXPECT_FALSE(build_of(entry, BuildRecords::read(root)));
  note_build(root, entry.id.digest, {1700000000, 251});
  ASSERT_TRUE(build_of(entry, BuildRecords::read(root)));
  EXPECT_EQ(build_of(entry, BuildRecords::read(root))->milliseconds, 251u);
  entry.created_unix_seconds = 1600000000;  // as versions wrote it that kept no records
  entry.cubin.compile_ms = 9;
  EXPECT_EQ(build_of(entry, BuildRecords::read(root))->milliseconds, 9u);
  EXPECT_EQ(build_of(entry, BuildRecords())->when, 1600000000);
}

TEST(CompileTimes, MediansAndWhatFollows) {
  const CompileTimes times = medians({{Family::nvfp4_gemv, {900, 100, 300}}, {Family::bf16_gemv, {100, 200}}});
  EXPECT_EQ(times.at(Family::nvfp4_gemv).median_ms, 300);
  EXPECT_EQ(times.at(Family::nvfp4_gemv).entries, 3u);
  EXPECT_EQ(times.at(Family::bf16_gemv).median_ms, 150);
  const Estimate two =
      estimate(times, {{Family::nvfp4_gemv, 4}, {Family::bf16_gemv, 2}, {Family::dequantize_rows, 5}}, 2);
  EXPECT_DOUBLE_EQ(two.seconds, (4 * 0.3 + 2 * 0.15) / 2);
  EXPECT_EQ(two.without_basis, 5u);
  EXPECT_EQ(estimate({}, {{Family::bf16_gemv, 2}}, 4).seconds, 0);
}

}  // namespace
}  // namespace gemvjit::tools
