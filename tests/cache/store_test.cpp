// Both stores, as the library uses them: hits, misses, and files that somebody else has had in hand.
#include "cache/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utime.h>

#include <ctime>
#include <filesystem>
#include <functional>

#include "cache/layout.h"
#include "src/base/files.h"
#include "tests/support/entries.h"
#include "tests/support/temp_dir.h"

namespace gemvjit {
namespace {

using test::read_text;
using test::TempDir;
using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

Entry make_entry(std::int64_t n, std::uint8_t digest_byte = 1, std::size_t payload = 1000) {
  return test::sample_entry(
      {.n = n, .digest_byte = digest_byte, .payload = payload, .content = static_cast<std::uint8_t>(n)});
}

class DirStoreTest : public testing::Test {
 protected:
  std::unique_ptr<CubinStore> open(const std::string& root) {
    return make_dir_store(root, Log::create(LogLevel::warning,
                                            [this](LogLevel, std::string_view text) { warnings_.emplace_back(text); }));
  }
  // Expect a miss that is counted as one, with this many warnings so far.
  void expect_miss(CubinStore& store, const EntryId& id, std::size_t warnings) {
    const std::uint64_t misses = store.stats().misses;
    EXPECT_FALSE(store.get(id));
    EXPECT_EQ(store.stats().misses, misses + 1);
    EXPECT_THAT(warnings_, SizeIs(warnings));
  }
  // Do `harm` to the file of a stored entry; expect one warning that says `why`, that the file goes to the quarantine,
  // and that put heals.
  void expect_healed_after(const std::function<void(const std::string& path)>& harm, const std::string& why,
                           std::size_t kept = 1) {
    warnings_.clear();
    std::filesystem::remove_all(root_);
    const auto store = open(root_);
    const Entry entry = make_entry(64);
    ASSERT_TRUE(store->put(entry));
    const std::string path = store->path_of(entry.id);
    harm(path);
    const auto listed = store->list();
    ASSERT_TRUE(listed) << listed.status().text();
    ASSERT_THAT(*listed, SizeIs(1));
    EXPECT_FALSE(listed->at(0).entry);
    EXPECT_THAT(listed->at(0).problem.message(), HasSubstr(why));
    expect_miss(*store, entry.id, 1);
    expect_miss(*store, entry.id, 1);
    ASSERT_THAT(warnings_, SizeIs(1));
    EXPECT_THAT(warnings_[0], HasSubstr(path));
    EXPECT_THAT(warnings_[0], HasSubstr(why));
    EXPECT_EQ(store->stats().damaged, 1u) << "the second time it is just absent";
    EXPECT_EQ(store->stats().unreadable, 0u);
    EXPECT_EQ(store->stats().quarantined, 1u);
    EXPECT_THAT(*store->list(), IsEmpty());
    EXPECT_THAT(*list_directory(quarantine_directory(root_)),
                AllOf(SizeIs(kept), Each(EndsWith(entry_file_name(entry.id)))));
    const Status healed = store->put(entry);
    ASSERT_TRUE(healed) << healed.text();
    ASSERT_TRUE(store->get(entry.id));
    EXPECT_EQ(store->get(entry.id)->cubin.bytes, entry.cubin.bytes);
  }

  TempDir dir_;
  std::string root_ = dir_.path("cache");
  std::vector<std::string> warnings_;
};

TEST_F(DirStoreTest, MissThenHit) {
  const auto store = open(root_);
  const Entry entry = make_entry(64);
  expect_miss(*store, entry.id, 0);
  EXPECT_FALSE(std::filesystem::exists(root_)) << "get must not make directories";
  ASSERT_TRUE(store->put(entry));
  const auto found = store->get(entry.id);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->id, entry.id);
  EXPECT_EQ(found->cubin.bytes, entry.cubin.bytes);
  EXPECT_EQ(found->cubin.entry_name, "bf16_gemv");
  EXPECT_EQ(found->cubin.resources, entry.cubin.resources);
  EXPECT_EQ(found->created_unix_seconds, 1700000000);

  const StoreStats stats = store->stats();
  EXPECT_EQ(stats.hits, 1u);
  EXPECT_EQ(stats.misses, 1u);
  EXPECT_EQ(stats.puts, 1u);
  EXPECT_EQ(stats.damaged, 0u);
  EXPECT_EQ(stats.put_failures, 0u);
}

TEST_F(DirStoreTest, AnotherStoreOfTheSameFolderFindsIt) {
  ASSERT_TRUE(open(root_)->put(make_entry(64)));
  EXPECT_TRUE(open(root_ + "///")->get(make_entry(64).id));
  EXPECT_EQ(open(root_ + "/")->root(), root_);
}

TEST_F(DirStoreTest, KeyAndDigestBothName) {
  const auto store = open(root_);
  ASSERT_TRUE(store->put(make_entry(64, 1)));
  ASSERT_TRUE(store->put(make_entry(64, 2, 7)));
  ASSERT_TRUE(store->put(make_entry(72, 1)));
  EXPECT_EQ(store->get(make_entry(64, 2).id)->cubin.bytes.size(), 7u);
  EXPECT_EQ(store->get(make_entry(64, 1).id)->cubin.bytes.size(), 1000u);
  expect_miss(*store, make_entry(64, 3).id, 0);
  EntryId other_arch = make_entry(64, 1).id;
  other_arch.key.arch = {100, 'a'};
  expect_miss(*store, other_arch, 0);
  EXPECT_THAT(*store->list(), SizeIs(3));
}

TEST_F(DirStoreTest, FilesLieWhereTheLayoutSaysAndNothingElseIsLeft) {
  const auto store = open(root_);
  const Entry entry = make_entry(64);
  ASSERT_TRUE(store->put(entry));
  EXPECT_EQ(store->path_of(entry.id), entry_path(root_, entry.id));
  const std::string text = read_text(entry_path(root_, entry.id));
  EXPECT_EQ(Bytes(text.begin(), text.end()), encode_entry(entry));
  EXPECT_THAT(*list_directory(entry_directory(root_, entry.id)), ElementsAre(entry_file_name(entry.id)));
  for (const std::string& made : {root_, version_directory(root_), entry_directory(root_, entry.id)}) {
    struct stat info {};
    ASSERT_EQ(stat(made.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777u, 0700u) << made;
  }
}

TEST_F(DirStoreTest, TruncatedFile) {
  expect_healed_after([](const std::string& path) { std::filesystem::resize_file(path, 500); }, "cut off");
  expect_healed_after([](const std::string& path) { std::filesystem::resize_file(path, 0); }, "too few");
}

TEST_F(DirStoreTest, FlippedByte) {
  expect_healed_after(
      [&](const std::string& path) {
        std::string text = read_text(path);
        text[text.size() / 2] = static_cast<char>(text[text.size() / 2] ^ 0x10);
        dir_.write(path.substr(dir_.path().size() + 1), text);
      },
      "checksum");
}

TEST_F(DirStoreTest, WholeEntryOfAnotherKeyUnderThisName) {
  expect_healed_after(
      [&](const std::string& path) {
        const Bytes other = encode_entry(make_entry(72));
        dir_.write(path.substr(dir_.path().size() + 1), std::string(other.begin(), other.end()));
      },
      "another kernel than its name says");
}

TEST_F(DirStoreTest, SameNameButAnotherDigestIsForeign) {
  // The name holds only the digest's first digits; the entry holds all of them.
  const auto store = open(root_);
  Entry entry = make_entry(64);
  ASSERT_TRUE(store->put(entry));
  EntryId wanted = entry.id;
  wanted.digest[31] ^= 1;
  ASSERT_EQ(store->path_of(wanted), store->path_of(entry.id));
  expect_miss(*store, wanted, 1);
  EXPECT_THAT(warnings_.at(0), HasSubstr("another kernel"));
  EXPECT_EQ(store->stats().quarantined, 1u);
}

TEST_F(DirStoreTest, FifoAndLinkInPlaceOfAFile) {
  expect_healed_after(
      [](const std::string& path) {
        std::filesystem::remove(path);
        ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
      },
      "a FIFO");
  expect_healed_after(
      [](const std::string& path) {
        std::filesystem::rename(path, path + ".moved");
        ASSERT_EQ(symlink((path + ".moved").c_str(), path.c_str()), 0);
      },
      "symbolic link");
}

TEST_F(DirStoreTest, TooLargeFile) {  // also for the quarantine, which does not keep it
  expect_healed_after([](const std::string& path) { std::filesystem::resize_file(path, entry_size_limit + 1); },
                      "larger than the limit", 0);
}

TEST_F(DirStoreTest, FutureFormatVersion) {
  expect_healed_after(
      [&](const std::string& path) {
        std::string text = read_text(path);
        text[8] = 2;
        const Digest checksum = Sha256::of(text.data(), text.size() - 32);
        text.replace(text.size() - 32, 32, reinterpret_cast<const char*>(checksum.data()), 32);
        dir_.write(path.substr(dir_.path().size() + 1), text);
      },
      "format version 2");
}

TEST_F(DirStoreTest, DirectoryInPlaceOfAFileIsAMissAndAFailedPut) {
  const auto store = open(root_);
  const Entry entry = make_entry(64);
  ASSERT_TRUE(make_directories(store->path_of(entry.id) + "/full"));
  expect_miss(*store, entry.id, 1);
  EXPECT_EQ(store->put(entry).code(), StatusCode::cache_not_writable);
  EXPECT_EQ(store->stats().quarantined, 0u);
  EXPECT_THAT(*list_directory(entry_directory(root_, entry.id)), SizeIs(1)) << "no temporary may be left";
}

TEST_F(DirStoreTest, DamageAfterHealingIsWarnedOfAgain) {
  const auto store = open(root_);
  const Entry entry = make_entry(64);
  for (std::size_t round = 1; round <= 2; ++round) {
    ASSERT_TRUE(store->put(entry));
    std::filesystem::resize_file(store->path_of(entry.id), 10);
    expect_miss(*store, entry.id, round);
    expect_miss(*store, entry.id, round);
  }
}

TEST_F(DirStoreTest, ListTellsWholeFromDamagedSortedByPath) {
  const auto store = open(root_);
  EXPECT_THAT(*store->list(), IsEmpty()) << "no cache yet";
  Entry other_arch = make_entry(64);
  other_arch.id.key.arch = {100, 'a'};
  for (const Entry& entry : {make_entry(72), other_arch, make_entry(64)}) ASSERT_TRUE(store->put(entry));
  std::filesystem::resize_file(store->path_of(make_entry(72).id), 100);
  // What is not the cache's own is passed over.
  dir_.write("cache/v1/sm_90a/notes.txt", "x");
  dir_.write("cache/v1/sm_90a/00/notes.txt", "x");
  dir_.write("cache/v1/sm_90a/00/.tmp-1-0123456789abcdef", "x");
  dir_.write("cache/v1/sm_90a/other/" + entry_file_name(make_entry(64).id), "x");
  dir_.write("cache/v1/README", "x");
  dir_.write("cache/v2/sm_90a/n1", "x");

  const auto listed = store->list();
  ASSERT_TRUE(listed);
  ASSERT_THAT(*listed, SizeIs(3));
  EXPECT_EQ(listed->at(0).path, store->path_of(other_arch.id));
  EXPECT_EQ(listed->at(0).entry->id, other_arch.id);
  EXPECT_TRUE(listed->at(0).problem.is_ok());
  EXPECT_EQ(listed->at(0).file_bytes, encode_entry(other_arch).size());
  EXPECT_EQ(listed->at(1).entry->id, make_entry(64).id);
  EXPECT_FALSE(listed->at(2).entry);
  EXPECT_EQ(listed->at(2).path, store->path_of(make_entry(72).id));
  EXPECT_EQ(listed->at(2).problem.code(), StatusCode::entry_damaged);
  EXPECT_EQ(listed->at(2).file_bytes, 100u);
}

TEST_F(DirStoreTest, ListShowsARenamedEntryAsAProblem) {
  const auto store = open(root_);
  ASSERT_TRUE(store->put(make_entry(64)));
  std::filesystem::rename(store->path_of(make_entry(64).id), store->path_of(make_entry(72).id));
  const auto listed = store->list();
  ASSERT_TRUE(listed);
  ASSERT_THAT(*listed, SizeIs(1));
  EXPECT_FALSE(listed->at(0).entry);
  EXPECT_EQ(listed->at(0).problem.code(), StatusCode::entry_damaged);
  EXPECT_THAT(listed->at(0).problem.message(), Not(HasSubstr(listed->at(0).path)));  // told beside it
}

TEST_F(DirStoreTest, ListShowsAnArchitectureThatIsNoDirectory) {
  const auto store = open(root_);
  ASSERT_TRUE(store->put(make_entry(64)));
  dir_.write("cache/v1/sm_80", "x");
  const auto listed = store->list();
  ASSERT_TRUE(listed);
  ASSERT_THAT(*listed, SizeIs(2));
  EXPECT_EQ(listed->at(0).path, root_ + "/v1/sm_80");
  EXPECT_EQ(listed->at(0).problem.code(), StatusCode::io_error);
  EXPECT_TRUE(listed->at(1).entry);
}

TEST_F(DirStoreTest, Remove) {
  const auto store = open(root_);
  const Entry entry = make_entry(64);
  EXPECT_TRUE(store->remove(entry.id)) << "not there";
  ASSERT_TRUE(store->put(entry));
  ASSERT_TRUE(store->put(make_entry(72)));
  EXPECT_TRUE(store->remove(entry.id));
  EXPECT_FALSE(store->get(entry.id));
  EXPECT_TRUE(store->get(make_entry(72).id));
}

// Also as root, to whom permissions mean nothing: a path that is, or lies below, a regular file.
TEST_F(DirStoreTest, RootThatIsAFileOrBelowOne) {
  const std::string file = dir_.write("file", "precious");
  for (const std::string& root : {file, file + "/below"}) {
    warnings_.clear();
    const auto store = open(root);
    for (std::int64_t n = 8; n <= 32; n += 8) {
      EXPECT_FALSE(store->get(make_entry(n).id));
      EXPECT_THAT(warnings_, SizeIs(1)) << "one warning for the directory, not one for each kernel";
    }
    for (std::int64_t n = 8; n <= 32; n += 8) {
      const Status status = store->put(make_entry(n));
      EXPECT_EQ(status.code(), StatusCode::cache_not_writable);
      EXPECT_THAT(status.message(), HasSubstr(file));
    }
    EXPECT_THAT(warnings_, SizeIs(2)) << "one more, for all failed puts";
    EXPECT_EQ(store->stats().put_failures, 4u);
    EXPECT_EQ(store->stats().puts, 0u);
    EXPECT_EQ(store->list().status().code(), StatusCode::io_error);
    EXPECT_TRUE(store->remove(make_entry(8).id));
  }
  EXPECT_EQ(read_text(file), "precious");
}

TEST_F(DirStoreTest, FolderWithoutPermission) {
  if (geteuid() == 0) GTEST_SKIP() << "root may write anywhere: RootThatIsAFileOrBelowOne tests what root can";
  ASSERT_TRUE(make_directories(root_));
  ASSERT_EQ(chmod(root_.c_str(), 0500), 0);
  const auto store = open(root_);
  expect_miss(*store, make_entry(64).id, 0);
  EXPECT_EQ(store->put(make_entry(64)).code(), StatusCode::cache_not_writable);
  ASSERT_EQ(chmod(root_.c_str(), 0), 0);
  expect_miss(*store, make_entry(64).id, 2);
}

TEST_F(DirStoreTest, MissingParentsAreMade) {
  const auto store = open(dir_.path("a/b/c"));
  ASSERT_TRUE(store->put(make_entry(64)));
  EXPECT_TRUE(store->get(make_entry(64).id));
}

TEST_F(DirStoreTest, FolderRemovedUnderTheStoreIsMadeAgain) {
  const auto store = open(root_);
  ASSERT_TRUE(store->put(make_entry(64)));
  std::filesystem::remove_all(root_);
  expect_miss(*store, make_entry(64).id, 0);
  ASSERT_TRUE(store->put(make_entry(64)));
  EXPECT_TRUE(store->get(make_entry(64).id));
}

TEST_F(DirStoreTest, EntryThatCouldNotBeReadBackIsNotPublished) {
  const auto store = open(root_);
  Entry entry = make_entry(64);
  entry.cubin.entry_name = std::string(entry_string_limit + 1, 'x');
  EXPECT_EQ(store->put(entry).code(), StatusCode::invalid_argument);
  entry = make_entry(64);
  entry.cubin.bytes.resize(entry_size_limit);
  EXPECT_EQ(store->put(entry).code(), StatusCode::invalid_argument);
  EXPECT_FALSE(std::filesystem::exists(store->path_of(entry.id)));
  EXPECT_EQ(store->stats().put_failures, 2u);
}

TEST_F(DirStoreTest, OldTemporariesAreSweptAndYoungOnesLeft) {
  const std::string folder = entry_directory("cache", make_entry(64).id) + "/";
  const std::string old = dir_.write(folder + ".tmp-1-0123456789abcdef", "x");
  const std::string young = dir_.write(folder + ".tmp-2-0123456789abcdef", "x");
  const std::string not_ours = dir_.write(folder + ".tmpfile", "x");
  const std::time_t two_hours_ago = std::time(nullptr) - 7200;
  const utimbuf times{two_hours_ago, two_hours_ago};
  for (const std::string& path : {old, not_ours}) ASSERT_EQ(utime(path.c_str(), &times), 0);
  ASSERT_TRUE(open(root_)->put(make_entry(64)));
  EXPECT_FALSE(std::filesystem::exists(old));
  EXPECT_TRUE(std::filesystem::exists(young));
  EXPECT_TRUE(std::filesystem::exists(not_ours));
}

TEST(MemoryStore, KeepsListsAndRemoves) {
  const auto store = make_memory_store();
  const Entry entry = make_entry(64);
  EXPECT_FALSE(store->get(entry.id));
  ASSERT_TRUE(store->put(entry));
  ASSERT_TRUE(store->put(make_entry(8, 2)));
  ASSERT_TRUE(store->put(make_entry(64, 2, 5)));
  ASSERT_TRUE(store->put(make_entry(64, 2, 6), Replace::any));
  EXPECT_EQ(store->get(entry.id)->cubin.bytes, entry.cubin.bytes);
  EXPECT_EQ(store->get(make_entry(64, 2).id)->cubin.bytes.size(), 6u);
  EXPECT_FALSE(store->get(make_entry(72).id));

  const auto listed = store->list();
  ASSERT_TRUE(listed);
  ASSERT_THAT(*listed, SizeIs(3));
  EXPECT_EQ(listed->at(0).entry->id, make_entry(8, 2).id);
  EXPECT_TRUE(store->remove(entry.id));
  EXPECT_TRUE(store->remove(entry.id));
  EXPECT_FALSE(store->get(entry.id));
  EXPECT_THAT(*store->list(), SizeIs(2));

  const StoreStats stats = store->stats();
  EXPECT_EQ(stats.hits, 2u);
  EXPECT_EQ(stats.misses, 3u);
  EXPECT_EQ(stats.puts, 4u);
  EXPECT_EQ(store->path_of(entry.id), "");
  EXPECT_EQ(store->root(), "");
}

TEST(MemoryStore, StandsInForADirectoryWithoutAName) {
  const auto store = make_dir_store("", Log::silent());
  ASSERT_TRUE(store->put(make_entry(64)));
  EXPECT_TRUE(store->get(make_entry(64).id));
  EXPECT_EQ(store->path_of(make_entry(64).id), "");
}

}  // namespace
}  // namespace gemvjit
