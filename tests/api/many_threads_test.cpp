// B94, B95. 32 threads at once on the library: launching, warming, asking, evicting from the cache, and making and
// ending contexts of their own. What they are told is checked, and that the driver got back all that was loaded; a
// thread sanitizer (preset tsan) sees what no result shows.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>

#include "tests/api/api_fixture.h"

namespace gemvjit::test {
namespace {

class ManyThreads : public ApiTest {
 protected:
  static constexpr int kThreadsOfAKind = 8, kRounds = 6, kKernels = 8;  // kernels that are new in each round

  // Threads meet at these: all of a kind go through the same rounds.
  static std::int64_t n_of(int round, int i) { return 64 * (1 + round * kKernels + i % kKernels); }
  static gemvjit_problem wanted(int round, int i) {
    gemvjit_problem one = problem(i % 2 == 0 ? GEMVJIT_NVFP4_GEMV : GEMVJIT_BF16_GEMV, n_of(round, i), 1024);
    one.nt = 1;
    return one;
  }
  static gemvjit_status launch_one(gemvjit_context* context, int round, int i) {
    if (i % 2 == 0) {
      const auto args = nvfp4_args(1 + i % 8, n_of(round, i), 1024);
      return gemvjit_nvfp4_gemv(context, &args, nullptr);
    }
    const auto args = bf16_args(1 + i % 8, n_of(round, i), 1024);
    return gemvjit_bf16_gemv(context, &args, nullptr);
  }
  void expect(bool right, const char* what) {
    if (right) return;
    ++failures_;
    const std::lock_guard lock(log_mutex);
    if (first_failure_.empty()) first_failure_ = std::string(what) + ": " + gemvjit_last_error();
  }

  // Warmed by nobody else: always there.
  void launch(gemvjit_context* context) {
    const auto args = nvfp4_args(5, 4096, 4096);
    for (int i = 0; i < 20 * kRounds; ++i) {
      expect(gemvjit_nvfp4_gemv(context, &args, nullptr) == GEMVJIT_OK, "launch");
    }
  }
  // Kernels that the others of the kind warm and launch at the same moment, each in an order of its own.
  void warm_and_launch(gemvjit_context* context, int thread) {
    for (int round = 0; round < kRounds; ++round) {
      std::vector<gemvjit_problem> problems;
      for (int i = 0; i < kKernels; ++i) problems.push_back(wanted(round, i + thread));
      expect(warm(context, problems) == GEMVJIT_OK, "warmup");
      for (int i = 0; i < kKernels; ++i) {
        expect(launch_one(context, round, i + thread) == GEMVJIT_OK, "launch of what was just warmed");
      }
    }
  }
  // Questions, and errors, whose text is the thread's own.
  void ask(gemvjit_context* context, int thread) {
    const std::int64_t odd = 8 * (9 + thread) + 1;  // an N that no kernel has
    for (int round = 0; round < kRounds; ++round) {
      const gemvjit_problem one = wanted(round, thread), bad = problem(GEMVJIT_NVFP4_GEMV, odd, 1024);
      expect(gemvjit_supported(context, &one, nullptr, 0) == GEMVJIT_OK, "supported");
      const gemvjit_status cached = gemvjit_check(context, &one, 1, nullptr, nullptr);
      expect(cached == GEMVJIT_OK || cached == GEMVJIT_NOT_READY, "check");
      expect(warm(context, {bad}) == GEMVJIT_INVALID_SHAPE, "warmup of a bad shape");
      expect(static_cast<bool>(last_error_has("N=" + std::to_string(odd) + " ")), "the thread's own error");
      gemvjit_stats_data stats{};
      stats.struct_size = sizeof stats;
      expect(gemvjit_stats(context, &stats) == GEMVJIT_OK && stats.launch_misses == 0, "stats");
      // Looks into the registry without a lock of any other thing on the way, which would put the threads in order.
      char text[64];
      for (int i = 0; i < 100; ++i) {
        const gemvjit_problem some = wanted(round, thread + i);
        expect(gemvjit_explain(context, &some, 1, text, sizeof text, nullptr) == GEMVJIT_OK, "explain");
      }
    }
  }
  // Contexts on the same folder, whose cap holds one or two kernels: each put evicts what others look for.
  void live_alone(int thread) {
    for (int round = 0; round < kRounds / 2; ++round) {
      gemvjit_context own{make()};
      expect(warm(&own, {wanted(round, thread)}) == GEMVJIT_OK, "warmup of an own context");
      expect(launch_one(&own, round, thread) == GEMVJIT_OK, "launch of an own context");
      expect(gemvjit_seal(&own) == GEMVJIT_OK, "seal");
    }
  }

  void work(gemvjit_context* context, int thread) {
    switch (thread % 4) {
      case 0:
        return launch(context);
      case 1:
        return warm_and_launch(context, thread);
      case 2:
        return ask(context, thread);
      default:
        return live_alone(thread);
    }
  }

  std::atomic<int> failures_{0};
  std::string first_failure_;
};

TEST_F(ManyThreads, WarmLaunchEvictAndEndContextsAtOnce) {
  options.cache_max_bytes = 1500;
  gemvjit_context* context = open();
  ASSERT_EQ(warm(context, {problem(GEMVJIT_NVFP4_GEMV, 4096, 4096)}), GEMVJIT_OK);
  std::atomic<int> waiting{0};
  std::vector<std::thread> threads;
  constexpr int all = 4 * kThreadsOfAKind;
  static_assert(all == 32);
  for (int thread = 0; thread < all; ++thread) {
    threads.emplace_back([&, thread] {
      ++waiting;
      while (waiting < all) std::this_thread::yield();  // so that all begin together
      work(context, thread);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures_, 0) << first_failure_;

  gemvjit_stats_data stats{};
  stats.struct_size = sizeof stats;
  ASSERT_EQ(gemvjit_stats(context, &stats), GEMVJIT_OK);
  EXPECT_EQ(stats.launches, static_cast<std::uint64_t>(kThreadsOfAKind * kRounds * (20 + kKernels)));
  EXPECT_EQ(stats.kernels_loaded, 3u + kRounds * kKernels) << "each kernel once, however many asked for it";
  EXPECT_GT(stats.cache_evictions, 0u);
  EXPECT_EQ(stats.compile_failures + stats.launch_misses, 0u);
  // What the contexts that ended had is with the driver again; the one that is left has its own.
  EXPECT_EQ(recording.primary_contexts_retained(0), 1);
  EXPECT_EQ(recording.libraries_loaded(), 3u + kRounds * kKernels);
  context->impl.reset();
  EXPECT_EQ(recording.primary_contexts_retained(0), 0);
  EXPECT_EQ(recording.libraries_loaded(), 0u);
}

}  // namespace
}  // namespace gemvjit::test
