// Bundles: written and read back, and every way in which one may be damaged: never a wrong entry.
#include "cache/bundle.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "tests/support/entries.h"
#include "tests/support/temp_dir.h"

namespace gemvjit {
namespace {

using test::read_text;
using test::TempDir;
using testing::HasSubstr;

Entry make_entry(std::int64_t n, std::uint8_t digest_byte = 1, std::size_t payload = 300) {
  return test::sample_entry(
      {.n = n, .digest_byte = digest_byte, .payload = payload, .content = static_cast<std::uint8_t>(n)});
}

class BundleTest : public testing::Test {
 protected:
  BundleTest() {
    for (const Entry& entry : {make_entry(64), make_entry(128), make_entry(128, 2), make_entry(1024, 3, 1)}) {
      entries_.push_back(entry);
    }
  }
  std::vector<const Entry*> pointers() const {
    std::vector<const Entry*> all;
    for (const Entry& entry : entries_) all.push_back(&entry);
    return all;
  }
  std::string write_all() const {
    const auto written = write_bundle(path_, pointers());
    EXPECT_TRUE(written) << written.status().text();
    return read_text(path_);
  }
  void overwrite(const std::string& content) const {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << content;
  }
  // Opens what is at path_ and reads all of it: the number of entries had, each of which must be one that was written.
  std::size_t right_entries() const {
    const auto bundle = Bundle::open(path_);
    if (!bundle) {
      EXPECT_THAT(bundle.status().message(), HasSubstr(path_));
      return 0;
    }
    std::size_t right = 0;
    for (const Entry& wanted : entries_) {
      const Bundle::Item* item = (*bundle)->find(wanted.id);
      if (item == nullptr) continue;
      const auto entry = (*bundle)->read(*item);
      if (!entry) continue;
      EXPECT_EQ(encode_entry(*entry), encode_entry(wanted));
      ++right;
    }
    return right;
  }

  TempDir dir_;
  std::string path_ = dir_.path("small.gjb");
  std::vector<Entry> entries_;
};

TEST_F(BundleTest, GivesBackWhatWasWritten) {
  const auto written = write_bundle(path_, pointers());
  ASSERT_TRUE(written) << written.status().text();
  EXPECT_EQ(written->entries, entries_.size());
  const std::string content = read_text(path_);
  EXPECT_EQ(written->bytes, content.size());
  EXPECT_EQ(written->sha256, Sha256::of(content.data(), content.size()));
  EXPECT_EQ(right_entries(), entries_.size());
  const auto bundle = Bundle::open(path_);
  ASSERT_TRUE(bundle);
  EXPECT_EQ((*bundle)->items().size(), entries_.size());
  EXPECT_EQ((*bundle)->find(make_entry(64, 9).id), nullptr);
  EXPECT_EQ((*bundle)->find(make_entry(65).id), nullptr);
  // The entries lie in it just as a file of the cache has them.
  const Bytes bytes = encode_entry(entries_[1]);
  EXPECT_THAT(content, HasSubstr(std::string(bytes.begin(), bytes.end())));
}

TEST_F(BundleTest, AnEmptyOneIsWhole) {
  ASSERT_TRUE(write_bundle(path_, {}));
  const auto bundle = Bundle::open(path_);
  ASSERT_TRUE(bundle) << bundle.status().text();
  EXPECT_TRUE((*bundle)->items().empty());
}

TEST_F(BundleTest, GoldenFileOfVersion1) {
  const std::string golden = GEMVJIT_SOURCE_DIR "/tests/golden/bundle_v1.gjb";
  const auto bundle = Bundle::open(golden);
  ASSERT_TRUE(bundle) << bundle.status().text();
  std::vector<Entry> entries;
  for (const Bundle::Item& item : (*bundle)->items()) {
    auto entry = (*bundle)->read(item);
    ASSERT_TRUE(entry) << entry.status().text();
    entries.push_back(*entry);
  }
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].id.key.n, 1024);
  EXPECT_EQ(entries[1].id.key.n, 28672);
  ASSERT_TRUE(write_bundle(path_, {&entries[1], &entries[0]}));
  EXPECT_EQ(read_text(path_), read_text(golden));
}

TEST_F(BundleTest, TheSameEntriesGiveTheSameBytes) {
  const std::string first = write_all();
  std::vector<const Entry*> turned = pointers();
  std::reverse(turned.begin(), turned.end());
  ASSERT_TRUE(write_bundle(path_, turned));
  EXPECT_EQ(read_text(path_), first);
}

TEST_F(BundleTest, EveryTruncationIsNoticed) {
  const std::string whole = write_all();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    overwrite(whole.substr(0, size));
    ASSERT_EQ(right_entries(), 0u) << size << " of " << whole.size() << " bytes";
  }
  overwrite(whole + "x");
  EXPECT_EQ(right_entries(), 0u);
}

TEST_F(BundleTest, NoFlippedBitGivesAWrongEntry) {
  const std::string whole = write_all();
  std::mt19937_64 random(20240607);
  for (int i = 0; i < 2000; ++i) {
    const std::size_t bit = random() % (8 * whole.size());
    std::string flipped = whole;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    overwrite(flipped);
    // In an entry it costs that one; in header, index or footer the whole bundle.
    ASSERT_LT(right_entries(), entries_.size()) << "bit " << bit << " is covered by nothing";
  }
}

TEST_F(BundleTest, SplicedBundlesGiveNoWrongEntry) {
  const std::string whole = write_all();
  std::mt19937_64 random(7);
  for (int i = 0; i < 500; ++i) {
    std::string spliced = whole;
    const std::size_t size = 1 + random() % 400;
    const std::size_t from = random() % (whole.size() - size), to = random() % (whole.size() - size);
    spliced.replace(to, size, whole, from, size);
    overwrite(spliced);
    if (spliced == whole) continue;
    ASSERT_LT(right_entries(), entries_.size()) << from << " to " << to << ", " << size;
  }
}

// Two entries of equal size whose places were swapped: each is whole, none is the one that the index names.
TEST_F(BundleTest, SwappedEntriesAreNoticed) {
  std::string content = write_all();
  const auto bundle = Bundle::open(path_);
  ASSERT_TRUE(bundle);
  const auto& items = (*bundle)->items();
  const Bundle::Item *a = (*bundle)->find(entries_[1].id), *b = (*bundle)->find(entries_[2].id);
  ASSERT_TRUE(a != nullptr && b != nullptr && a->size == b->size) << items.size();
  const std::string first = content.substr(a->offset, a->size), second = content.substr(b->offset, b->size);
  content.replace(a->offset, a->size, second).replace(b->offset, b->size, first);
  overwrite(content);
  EXPECT_EQ(right_entries(), entries_.size() - 2);
}

// The file is cut while it is open: a failure, where a mapped file would end the process.
TEST_F(BundleTest, AFileCutWhileOpenIsAFailure) {
  write_all();
  const auto bundle = Bundle::open(path_);
  ASSERT_TRUE(bundle);
  ASSERT_EQ(::truncate(path_.c_str(), 20), 0);
  for (const auto& item : (*bundle)->items()) {
    const auto entry = (*bundle)->read(item);
    ASSERT_FALSE(entry);
    EXPECT_EQ(entry.status().code(), StatusCode::entry_damaged);
    EXPECT_THAT(entry.status().message(), HasSubstr(path_));
  }
}

TEST_F(BundleTest, AReplacedFileIsReadOnAsItWas) {
  write_all();
  const auto bundle = Bundle::open(path_);
  ASSERT_TRUE(bundle);
  ASSERT_TRUE(write_bundle(path_, {&entries_[0]}));
  for (const auto& item : (*bundle)->items()) EXPECT_TRUE((*bundle)->read(item));
}

TEST_F(BundleTest, OnlyARegularFileThatIsNoLinkIsOpened) {
  write_all();
  const std::string link = dir_.path("link.gjb"), fifo = dir_.path("fifo.gjb"), folder = dir_.path("folder.gjb");
  std::filesystem::create_symlink(path_, link);
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  std::filesystem::create_directory(folder);
  for (const std::string& bad : {link, fifo, folder}) {
    const auto bundle = Bundle::open(bad);
    ASSERT_FALSE(bundle) << bad;
    EXPECT_EQ(bundle.status().code(), StatusCode::io_error) << bundle.status().text();
  }
  EXPECT_EQ(Bundle::open(dir_.path("absent.gjb")).status().code(), StatusCode::not_found);
}

TEST_F(BundleTest, WhatCannotBeWrittenLeavesEverythingAsItWas) {
  const std::string before = write_all();
  EXPECT_EQ(write_bundle(path_, {&entries_[0], &entries_[0]}).status().code(), StatusCode::invalid_argument);
  Entry unreadable = make_entry(7);
  unreadable.cubin.entry_name.assign(entry_string_limit + 1, 'x');
  EXPECT_EQ(write_bundle(path_, {&entries_[0], &unreadable}).status().code(), StatusCode::invalid_argument);
  EXPECT_EQ(write_bundle(dir_.path("absent/x.gjb"), pointers()).status().code(), StatusCode::io_error);
  std::filesystem::create_directories(dir_.path("taken.gjb/inside"));
  EXPECT_EQ(write_bundle(dir_.path("taken.gjb"), pointers()).status().code(), StatusCode::io_error);
  EXPECT_EQ(read_text(path_), before);
  std::size_t names = 0;
  for (const auto& item : std::filesystem::directory_iterator(dir_.path())) {
    ++names;
    EXPECT_THAT(item.path().filename().string(), testing::EndsWith(".gjb")) << "a temporary was left";
  }
  EXPECT_EQ(names, 2u);
}

// Entries that are loaded one at a time, in whatever order they are named, give the same bundle.
TEST(BundleOfLoadedEntries, HasTheSameBytesAndLoadsEachOnce) {
  const test::TempDir dir;
  const Entry entries[] = {test::sample_entry({.n = 192}), test::sample_entry({.n = 64}),
                           test::sample_entry({.n = 128})};
  ASSERT_TRUE(write_bundle(dir.path("whole.gjb"), {&entries[0], &entries[1], &entries[2]}));
  const std::string expected = test::read_text(dir.path("whole.gjb"));
  std::vector<std::int64_t> loaded;
  const LoadEntry load = [&](const EntryId& id) -> Result<Entry> {
    loaded.push_back(id.key.n);
    return test::sample_entry({.n = id.key.n});
  };
  const std::vector<EntryId> ids = {entries[0].id, entries[1].id, entries[2].id};
  const auto written = write_bundle(dir.path("loaded.gjb"), ids, load);
  ASSERT_TRUE(written) << written.status().text();
  EXPECT_EQ(written->entries, 3u);
  EXPECT_EQ(test::read_text(dir.path("loaded.gjb")), expected);
  EXPECT_EQ(loaded, (std::vector<std::int64_t>{128, 192, 64})) << "the index's order is that of texts";

  const LoadEntry fails = [&](const EntryId& id) -> Result<Entry> {
    if (id.key.n == 192) return Status(StatusCode::io_error, "gone");
    return load(id);
  };
  EXPECT_EQ(write_bundle(dir.path("loaded.gjb"), ids, fails).status().code(), StatusCode::io_error);
  const LoadEntry another = [&](const EntryId&) -> Result<Entry> { return entries[0]; };
  EXPECT_EQ(write_bundle(dir.path("loaded.gjb"), ids, another).status().code(), StatusCode::invalid_argument);
  EXPECT_EQ(write_bundle(dir.path("loaded.gjb"), {ids[0], ids[0]}, load).status().code(), StatusCode::invalid_argument);
  EXPECT_EQ(test::read_text(dir.path("loaded.gjb")), expected) << "as it was";
  EXPECT_EQ(list_directory(dir.path())->size(), 2u) << "no temporary is left";
}

}  // namespace
}  // namespace gemvjit
