// Processes that need one kernel at one time. A compile counts itself in memory that all processes share, and ends when
// the processes of the test are where they should be, so that nothing depends on who is quick.
#pragma once

#include <gtest/gtest.h>

#include "src/base/files.h"
#include "tests/runtime/runtime_fixture.h"
#include "tests/support/processes.h"

namespace gemvjit::test {

struct Seen {
  std::atomic<int> ready{0};     // processes at a barrier, of all rounds
  std::atomic<int> missed{0};    // that looked into the cache and are about to build
  std::atomic<int> waiting{0};   // that wait for another
  std::atomic<int> compiles{0};  // begun
  std::atomic<int> shared{0};    // failures that were taken from another
  std::atomic<bool> go_on{false};
};

class SharedBuilds : public RuntimeTest {
 protected:
  SharedBuilds() {
    options.device = device_none;
    compilers.while_compiling = [this] { ++seen->compiles; };
    timing.poll = Milliseconds(1);
  }

  // Waiters go by a clock that only their waiting moves.
  void use_fake_time(std::function<void()> while_asleep = [] {}) {
    timing.now = [this] { return time; };
    timing.sleep = [this, while_asleep = std::move(while_asleep)](Milliseconds duration) {
      time += duration;
      while_asleep();
    };
  }

  // For a child: count it once as a waiter.
  void count_waiting() {
    timing.sleep = [this, counted = false](Milliseconds duration) mutable {
      if (!counted) ++seen->waiting;
      counted = true;
      std::this_thread::sleep_for(duration);
    };
  }

  static std::vector<KernelKey> kernel(const Context& context, std::int64_t n = 1024) {
    return item(context, on(nvfp4(n, 1024, 1), "sm_90a")).candidates;
  }

  static bool is_right(const Result<Delivered>& delivered, const std::vector<KernelKey>& candidates) {
    const std::string expected = "cubin of " + candidates.front().text();
    return delivered && delivered->entry->cubin.bytes == Bytes(expected.begin(), expected.end());
  }

  // A process that begins to build the kernel, and goes on once `seen->go_on` is set.
  pid_t start_builder() {
    const int before = seen->compiles;
    const pid_t child = start_process([this] {
      compilers.while_compiling = [this] {
        ++seen->compiles;
        wait_until([this] { return seen->go_on.load(); });
      };
      const auto context = make();
      return is_right(context->resolver().ensure_cached(kernel(*context)), kernel(*context)) ? 0 : 1;
    });
    EXPECT_TRUE(wait_until([&] { return seen->compiles > before; }));
    return child;
  }

  static std::vector<std::string> names_in(const std::string& folder) {
    auto names = list_directory(folder);
    EXPECT_TRUE(names) << names.status().text();
    return names ? std::move(names).value() : std::vector<std::string>{"?"};
  }

  std::size_t entries() {
    const auto listed = make_dir_store(options.cache_dir, Log::silent())->list();
    std::size_t whole = 0;
    for (const ListedEntry& entry : *listed) whole += entry.entry.has_value() ? 1 : 0;
    EXPECT_EQ(whole, listed->size());
    return whole;
  }

  Shared<Seen> seen;
  Milliseconds time{0};
};

}  // namespace gemvjit::test
