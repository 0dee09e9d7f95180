// Counters of one context. Relaxed atomics: each is exact, together they may be of slightly different moments.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "src/tuning/tuning_table.h"

namespace gemvjit {

// Counts from many threads at once without a cache line that all of them fight for. The shard follows from where the
// caller's stack lies: no thread-local storage, which may be allocated at its first use in a thread.
class ShardedCounter {
 public:
  void add_one() {
    const char here = 0;
    const auto address = reinterpret_cast<std::uintptr_t>(&here) >> 16;
    shards_[address * 0x9E3779B97F4A7C15u >> 60].value.fetch_add(1, std::memory_order_relaxed);
  }
  std::uint64_t total() const {
    std::uint64_t sum = 0;
    for (const Shard& shard : shards_) sum += shard.value.load(std::memory_order_relaxed);
    return sum;
  }

 private:
  struct alignas(64) Shard {
    std::atomic<std::uint64_t> value{0};
  };
  std::array<Shard, 16> shards_;
};

struct Counters {
  ShardedCounter launches;
  std::atomic<std::uint64_t> launch_misses{0};
  std::atomic<std::uint64_t> compiles{0}, compile_failures{0}, compile_milliseconds{0};
  std::atomic<std::uint64_t> cache_hits{0}, cache_misses{0}, cache_writes{0}, cache_write_failures{0};
  // Builds that waited for another process; waits that ended because it showed no progress; its errors that were taken.
  std::atomic<std::uint64_t> build_waits{0}, build_stale_waits{0}, build_shared_failures{0};
  // Kernels warmed, by how their configuration was found; dequantize_rows, which has but one, is not counted.
  std::array<std::atomic<std::uint64_t>, kMatches> kernels_by_match{};
  std::atomic<std::uint64_t> cluster_fallbacks{0};  // kernels whose cluster did not fit, served without one
  std::atomic<std::uint64_t> unserved_problems{0};  // of warmups: no kernel could be named for them
  std::uint64_t kernels_of(Match match) const { return kernels_by_match[static_cast<std::size_t>(match)].load(); }
};

}  // namespace gemvjit
