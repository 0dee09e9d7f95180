// The cap of a cache folder: eviction by use, what is in use stays, all processes together keep to it, thrashing is
// told, free space is kept, and the collection for operators.
#include "cache/size_limit.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "cache/layout.h"
#include "cache/usage_ledger.h"
#include "tests/support/entries.h"
#include "tests/support/temp_dir.h"

namespace gemvjit {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

constexpr std::size_t kPayload = 100'000;

Entry make_entry(int number, std::size_t payload = kPayload) {
  Entry entry =
      test::sample_entry({.n = 64 + 8 * number, .payload = payload, .content = static_cast<std::uint8_t>(number)});
  entry.id.digest.fill(0);
  for (int i = 0; i < 4; ++i) entry.id.digest[i] = static_cast<std::uint8_t>(number >> 8 * i);
  return entry;
}

std::uint64_t entry_bytes(const std::string& root) {
  std::uint64_t total = 0;
  const auto files = scan_cache(root);
  for (const CachedFile& file : *files) total += file.bytes;
  return total;
}

class SizeLimitTest : public testing::Test {
 protected:
  std::unique_ptr<CubinStore> open(std::uint64_t max_bytes, std::uint64_t keep_free = 0) {
    SizeLimitHooks hooks;
    hooks.now = [this] { return now_.load(); };
    hooks.free_bytes = [this](const std::string&) { return free_.load(); };
    const Log log =
        Log::create(LogLevel::warning, [this](LogLevel, std::string_view text) { warnings_.emplace_back(text); });
    return make_size_limited_store(make_dir_store(root_, log), {max_bytes, keep_free}, log, hooks);
  }

  test::TempDir dir_;
  std::string root_ = dir_.path("cache");
  std::atomic<std::int64_t> now_ = 1'000'000;
  std::atomic<std::uint64_t> free_ = std::uint64_t{1} << 40;
  std::vector<std::string> warnings_;
};

TEST_F(SizeLimitTest, EvictsWhatWasUsedLeastRecently) {
  for (int i = 0; i < 5; ++i, now_ += 10) {
    ASSERT_TRUE(open(0)->put(make_entry(i)));
    (void)open(0)->get(make_entry(i).id);  // stamps
  }
  ASSERT_TRUE(open(0)->get(make_entry(0).id)) << "now the most recently used";
  const auto store = open(5 * kPayload + 20'000);
  now_ += 10;
  ASSERT_TRUE(store->put(make_entry(5)));
  EXPECT_LE(entry_bytes(root_), 5 * kPayload + 20'000);
  EXPECT_TRUE(store->get(make_entry(0).id));
  EXPECT_TRUE(store->get(make_entry(5).id));
  EXPECT_FALSE(store->get(make_entry(1).id));
  EXPECT_FALSE(store->get(make_entry(2).id)) << "down to nine tenths, so that not every put evicts";
  EXPECT_TRUE(store->get(make_entry(4).id));
  EXPECT_EQ(store->stats().evictions, 2u);
}

TEST_F(SizeLimitTest, WhatThisProcessUsesStays) {
  const auto store = open(3 * kPayload + 20'000);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(store->put(make_entry(i)));
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(store->get(make_entry(i).id));
  const Status full = store->put(make_entry(3));
  EXPECT_EQ(full.code(), StatusCode::cache_not_writable);
  EXPECT_THAT(full.message(), HasSubstr("all of it is in use"));
  EXPECT_FALSE(store->put(make_entry(4)));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(store->get(make_entry(i).id));
  EXPECT_EQ(store->stats().refused, 2u);
  EXPECT_THAT(warnings_, SizeIs(1)) << "said once";
  // Another process has none of them in use.
  EXPECT_TRUE(open(3 * kPayload + 20'000)->put(make_entry(3)));
}

TEST_F(SizeLimitTest, AnEntryNeededAgainSoonAfterItsEvictionIsThrashing) {
  const auto store = open(2 * kPayload + 20'000);
  for (int i = 0; i < 3; ++i, now_ += 10) ASSERT_TRUE(store->put(make_entry(i)));
  ASSERT_FALSE(store->get(make_entry(0).id));
  EXPECT_EQ(store->stats().thrashed, 0u);
  ASSERT_TRUE(store->put(make_entry(0)));
  EXPECT_EQ(store->stats().thrashed, 1u);
  EXPECT_THAT(warnings_, testing::ElementsAre(HasSubstr("is too small")));
  now_ += 601;
  ASSERT_TRUE(store->put(make_entry(1)));
  EXPECT_EQ(store->stats().thrashed, 1u) << "that was long ago";
}

// ENOSPC by others is not waited for: entries stop before the file system is full.
TEST_F(SizeLimitTest, KeepsFreeWhatItIsTold) {
  const auto store = open(0, 1'000'000);
  free_ = 1'000'000 + kPayload;
  const Status refused = store->put(make_entry(1));
  EXPECT_EQ(refused.code(), StatusCode::cache_not_writable);
  EXPECT_THAT(refused.message(), HasSubstr("less than 1000000 bytes free"));
  EXPECT_FALSE(std::filesystem::exists(root_));
  free_ = 1'000'000 + 2 * kPayload;
  EXPECT_TRUE(store->put(make_entry(1)));
}

TEST_F(SizeLimitTest, ALostOrTornLedgerIsMadeAnew) {
  const std::uint64_t cap = 4 * kPayload + 20'000;
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(open(cap)->put(make_entry(i)));
  const std::string ledger = version_directory(root_) + "/usage";
  ASSERT_TRUE(std::filesystem::exists(ledger));
  for (int i = 4; i < 12; ++i) {
    if (i % 2 == 0) {
      std::filesystem::remove(ledger);
    } else {
      std::fstream(ledger, std::ios::in | std::ios::out | std::ios::binary).seekp(9).put('\x55');
    }
    ASSERT_TRUE(open(cap)->put(make_entry(i)));
    EXPECT_LE(entry_bytes(root_), cap) << i;
  }
}

TEST_F(SizeLimitTest, ALedgerThatCannotBeOpenedCostsAScanAndNotTheCap) {
  const std::uint64_t cap = 4 * kPayload + 20'000;
  std::filesystem::create_directories(version_directory(root_) + "/usage");
  const auto store = open(cap);
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(store->put(make_entry(i)));
    EXPECT_LE(entry_bytes(root_), cap) << i;
  }
  EXPECT_GT(store->stats().evictions, 0u);
}

// Who holds the ledger's lock may be stopped.
TEST_F(SizeLimitTest, ALedgerThatIsHeldIsWaitedForOnceAMinute) {
  ASSERT_TRUE(open(4 * kPayload + 20'000)->put(make_entry(0)));
  const int held = ::open((version_directory(root_) + "/usage").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(held, 0);
  ASSERT_EQ(::flock(held, LOCK_EX), 0);
  SizeLimitHooks hooks;
  hooks.now = [this] { return now_.load(); };
  hooks.lock_patience_ms = 300;
  const std::uint64_t cap = 4 * kPayload + 20'000;
  const auto store =
      make_size_limited_store(make_dir_store(root_, Log::silent()), {cap, 0}, Log::silent(), std::move(hooks));
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 1; i < 10; ++i) {
    EXPECT_TRUE(store->put(make_entry(i)));
    EXPECT_LE(entry_bytes(root_), cap) << i;
  }
  const auto took = std::chrono::steady_clock::now() - begin;
  EXPECT_GE(took, std::chrono::milliseconds(300));
  EXPECT_LT(took, std::chrono::milliseconds(2 * 300 + 2000)) << "one wait, and not nine";
  ::close(held);
}

// What others write while gc works is not lost from the ledger.
TEST_F(SizeLimitTest, GcTakesFromTheLedgerWhatItRemoved) {
  const auto store = open(100 * kPayload);
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(store->put(make_entry(i)));
  const UsageLedger ledger(root_);
  ASSERT_TRUE(
      ledger.update(0, [](Usage& usage, const auto&) { usage.total_bytes += 1'000'000; }));  // of a writer meanwhile
  const std::uint64_t before = ledger.read().total_bytes;
  CollectRequest request;
  request.now = now_;
  request.max_bytes = 2 * kPayload + 4000;
  const auto collected = collect_garbage(root_, request);
  ASSERT_TRUE(collected);
  EXPECT_GT(collected->removed_bytes, 0u);
  EXPECT_EQ(ledger.read().total_bytes, before - collected->removed_bytes);
}

TEST_F(SizeLimitTest, FilesThatOthersRemovedAreNoticedBeforeAnythingIsEvicted) {
  const auto store = open(4 * kPayload + 20'000);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(store->put(make_entry(i)));
  for (int i = 0; i < 3; ++i) std::filesystem::remove(store->path_of(make_entry(i).id));
  ASSERT_TRUE(store->put(make_entry(5)));
  EXPECT_EQ(store->stats().evictions, 0u);
  EXPECT_TRUE(store->get(make_entry(3).id));
}

// Who has written looks without the lock whether a scan may have missed it: so a scan is told of before it looks.
TEST_F(SizeLimitTest, AScanIsToldOfBeforeItLooksAtFiles) {
  std::vector<std::uint64_t>
      seen;  // the ledger's count of scans, each time that the clock is asked: last after the files
  SizeLimitHooks hooks;
  hooks.now = [&] {
    seen.push_back(UsageLedger(root_).read().scans);
    return now_.load();
  };
  hooks.free_bytes = [this](const std::string&) { return free_.load(); };
  const auto store =
      make_size_limited_store(make_dir_store(root_, Log::silent()), {3 * kPayload, 0}, Log::silent(), hooks);
  ASSERT_TRUE(store->put(make_entry(1)));
  EXPECT_EQ(seen, (std::vector<std::uint64_t>{0, 0, 1}));
}

// Of the files that were there between two walks, while others write and remove: one walk would count together what
// never was there together.
std::uint64_t bytes_at_one_moment(const std::string& root) {
  std::uint64_t total = 0;
  const auto files = scan_cache(root);
  if (!files) return 0;
  for (const CachedFile& file : *files) {
    struct stat info {};
    if (::lstat(file.path.c_str(), &info) == 0) total += file.bytes;
  }
  return total;
}

// B53. Processes, as fork makes them, that write sixteen times the cap: at no moment more than it and an entry each.
TEST_F(SizeLimitTest, ManyProcessesKeepToTheCapTogether) {
  constexpr int kWriters = 16, kEach = 10;
  constexpr std::uint64_t kCap = 10 * kPayload;
  std::vector<pid_t> writers;
  for (int writer = 0; writer < kWriters; ++writer) {
    const pid_t pid = ::fork();
    ASSERT_GE(pid, 0);
    if (pid == 0) {
      const auto store = make_size_limited_store(make_dir_store(root_, Log::silent()), {kCap, 0}, Log::silent());
      bool good = true;
      for (int i = 0; i < kEach; ++i) good = store->put(make_entry(writer * kEach + i)).is_ok() && good;
      ::_exit(good ? 0 : 1);
    }
    writers.push_back(pid);
  }
  std::uint64_t most = 0;
  for (std::size_t running = writers.size(); running > 0;) {
    most = std::max(most, bytes_at_one_moment(root_));
    int status = 0;
    const pid_t ended = ::waitpid(-1, &status, WNOHANG);
    if (ended > 0) {
      --running;
      EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
  }
  EXPECT_GT(most, kCap / 2);
  EXPECT_LE(most, kCap + kWriters * (kPayload + 1024));
  EXPECT_LE(entry_bytes(root_), kCap);
}

TEST_F(SizeLimitTest, CollectsByAgeSizeAndTarget) {
  const auto store = open(0);
  for (int i = 0; i < 6; ++i, now_ += 100) {
    Entry entry = make_entry(i);
    if (i >= 4) entry.id.key.arch = {120, 'a'};
    ASSERT_TRUE(store->put(entry));
    ASSERT_TRUE(store->get(entry.id));
  }
  CollectRequest request;
  request.now = now_;
  request.max_age_seconds = 450;
  request.dry_run = true;
  auto collected = collect_garbage(root_, request);
  ASSERT_TRUE(collected);
  EXPECT_THAT(collected->removed, SizeIs(2));
  EXPECT_EQ(entry_bytes(root_), collected->kept_bytes + collected->removed_bytes) << "a dry run removes nothing";

  request.dry_run = false;
  EXPECT_THAT(collect_garbage(root_, request)->removed, SizeIs(2));
  EXPECT_THAT(*scan_cache(root_), SizeIs(4));
  CollectRequest by_arch;
  by_arch.archs = {"sm_120a"};
  EXPECT_THAT(collect_garbage(root_, by_arch)->removed, SizeIs(2));
  CollectRequest by_size;
  by_size.max_bytes = kPayload + 2000;
  collected = collect_garbage(root_, by_size);
  EXPECT_THAT(collected->removed, SizeIs(1));
  EXPECT_EQ(collected->removed.at(0).path, store->path_of(make_entry(2).id)) << "the one used longer ago";
  EXPECT_EQ(collected->kept, 1u);
  EXPECT_THAT(collect_garbage(dir_.path("nowhere"), by_size)->removed, SizeIs(0));
}

TEST(UsageLedger, IsAdviceOnly) {
  const test::TempDir dir;
  const UsageLedger nowhere(dir.path("missing"));
  EXPECT_FALSE(nowhere.update(0, [](Usage&, const auto&) { FAIL() << "no lock, no call"; }));
  std::filesystem::create_directories(dir.path("cache/v1"));
  const UsageLedger ledger(dir.path("cache"));
  for (std::uint64_t i = 0; i < 200; ++i) {
    EXPECT_TRUE(ledger.update(0, [&](Usage& usage, const auto&) {
      EXPECT_EQ(usage.total_bytes, i);
      usage.total_bytes = i + 1;
      usage.note_eviction(i, static_cast<std::int64_t>(1000 + i));
    }));
  }
  EXPECT_TRUE(ledger.update(0, [](Usage& usage, const auto&) {
    EXPECT_TRUE(usage.was_evicted_since(199, 1199));
    EXPECT_FALSE(usage.was_evicted_since(199, 1200));
    EXPECT_FALSE(usage.was_evicted_since(0, 0)) << "the list is short";
  }));
}

// Neither a link in its place nor a second name of somebody's file, nor a folder that is a link, leads to a file that
// is then overwritten, or gets another mode.
TEST(UsageLedger, WritesNoOtherFile) {
  const test::TempDir dir;
  const std::string victim = dir.write("victim", "x"), path = usage_ledger_path(dir.path("cache"));
  ASSERT_EQ(::chmod(victim.c_str(), 0400), 0);
  const auto expect_unchanged = [&] {
    EXPECT_FALSE(UsageLedger(dir.path("cache")).update(0, [](Usage&, const auto&) { FAIL() << "no ledger, no call"; }));
    struct stat info {};
    ASSERT_EQ(::stat(victim.c_str(), &info), 0);
    EXPECT_EQ(info.st_size, 1);
    EXPECT_EQ(info.st_mode & 0777, mode_t{0400});
  };
  std::filesystem::create_directories(split_path(path).folder);
  std::filesystem::create_symlink(victim, path);
  expect_unchanged();
  ASSERT_TRUE(remove_file(path));
  std::filesystem::create_hard_link(victim, path);
  expect_unchanged();
  ASSERT_TRUE(remove_file(path));
  std::filesystem::create_directory(dir.path("elsewhere"));
  ASSERT_EQ(std::rename(victim.c_str(), dir.path("elsewhere/usage").c_str()), 0);
  std::filesystem::create_symlink(dir.path("elsewhere/usage"), victim);
  std::filesystem::remove(split_path(path).folder);
  std::filesystem::create_directory_symlink(dir.path("elsewhere"), split_path(path).folder);
  expect_unchanged();
}

}  // namespace
}  // namespace gemvjit
