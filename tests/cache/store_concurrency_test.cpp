// Many writers and readers of one entry. Each writer's payload differs in size and content, as two compilers' would, so
// that a mixture of two files could not pass for either.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "cache/layout.h"
#include "cache/store.h"
#include "src/base/files.h"
#include "tests/support/temp_dir.h"

namespace gemvjit {
namespace {

using test::TempDir;

constexpr int writers = 4;
constexpr int rounds = 40;

Entry entry_of(int writer) {
  Entry entry;
  entry.id.key = {4096, 4096, 1, 0x2022, {90, 'a'}};
  entry.id.digest.fill(9);
  entry.cubin.entry_name = "bf16_gemv";
  entry.cubin.bytes.assign(20'000 + 3'000 * static_cast<std::size_t>(writer), static_cast<std::uint8_t>(writer));
  return entry;
}

bool is_one_writers(const Entry& entry) {
  const Bytes& bytes = entry.cubin.bytes;
  return !bytes.empty() && bytes[0] < writers && bytes == entry_of(bytes[0]).cubin.bytes;
}

// Put and get in turn; false as soon as a put fails or a get gives anything but one writer's whole entry.
bool write_and_read(CubinStore& store, int writer) {
  for (int round = 0; round < rounds; ++round) {
    if (!store.put(entry_of(writer))) return false;
    const auto found = store.get(entry_of(0).id);
    if (!found || !is_one_writers(*found)) return false;
  }
  return store.stats().damaged == 0;
}

void expect_one_whole_file(const std::string& root) {
  const auto store = make_dir_store(root, Log::silent());
  const auto found = store->get(entry_of(0).id);
  ASSERT_TRUE(found);
  EXPECT_TRUE(is_one_writers(*found));
  EXPECT_EQ(list_directory(entry_directory(root, entry_of(0).id))->size(), 1u) << "no temporary may be left";
}

TEST(StoreConcurrency, ProcessesPublishOneEntry) {
  const TempDir dir;
  const std::string root = dir.path("cache");
  std::vector<pid_t> children;
  for (int writer = 0; writer < writers; ++writer) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      const auto store = make_dir_store(root, Log::silent());
      _exit(write_and_read(*store, writer) ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  expect_one_whole_file(root);
}

TEST(StoreConcurrency, ThreadsOfTwoStoresPublishOneEntry) {
  const TempDir dir;
  const std::string root = dir.path("cache");
  const std::unique_ptr<CubinStore> stores[] = {make_dir_store(root, Log::silent()),
                                                make_dir_store(root, Log::silent())};
  std::atomic<int> failures = 0;
  std::vector<std::thread> threads;
  for (int writer = 0; writer < writers; ++writer) {
    threads.emplace_back([&, writer] {
      if (!write_and_read(*stores[writer % 2], writer)) ++failures;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(stores[0]->stats().puts + stores[1]->stats().puts, static_cast<std::uint64_t>(writers * rounds));
  EXPECT_EQ(stores[0]->stats().hits + stores[1]->stats().hits, static_cast<std::uint64_t>(writers * rounds));
  expect_one_whole_file(root);
}

TEST(StoreConcurrency, ReadersSeeWholeEntriesWhileOthersRemoveAndPut) {
  const TempDir dir;
  const auto store = make_dir_store(dir.path("cache"), Log::silent());
  std::atomic<bool> done = false;
  std::atomic<int> bad = 0;
  std::vector<std::thread> readers;
  for (int reader = 0; reader < 2; ++reader) {
    readers.emplace_back([&] {
      while (!done) {
        const auto found = store->get(entry_of(0).id);
        if (found && !is_one_writers(*found)) ++bad;
        if (!store->list()) ++bad;
      }
    });
  }
  for (int round = 0; round < rounds; ++round) {
    EXPECT_TRUE(store->put(entry_of(round % writers)));
    if (round % 3 == 0) {
      EXPECT_TRUE(store->remove(entry_of(0).id));
    }
  }
  done = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(bad, 0);
  EXPECT_EQ(store->stats().damaged, 0u);
}

TEST(StoreConcurrency, MemoryStoreToo) {
  const auto store = make_memory_store();
  std::atomic<int> failures = 0;
  std::vector<std::thread> threads;
  for (int writer = 0; writer < writers; ++writer) {
    threads.emplace_back([&, writer] {
      if (!write_and_read(*store, writer)) ++failures;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
}

}  // namespace
}  // namespace gemvjit
