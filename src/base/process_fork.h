// Whether this process is still the one that made something: after fork() a child has the parent's memory without its
// threads, its locks as they were, and a CUDA driver that answers nothing but errors.
//
// Threads: any. Only fork() is noticed (pthread_atfork), not a bare clone().
#pragma once

#include <atomic>
#include <cstdint>

namespace gemvjit {

// Generations of forks that lead to this process, since the first watch_forks(). Read on the launch path.
inline std::atomic<std::uint32_t> fork_generation{0};

// Begins to count, once a process; the generation now.
std::uint32_t watch_forks();

inline bool forked_since(std::uint32_t generation) {
  return fork_generation.load(std::memory_order_relaxed) != generation;
}

}  // namespace gemvjit
