#include "src/base/process_fork.h"

#include <pthread.h>

namespace gemvjit {

std::uint32_t watch_forks() {
  // A failure, for want of memory, leaves forks unnoticed, as they would be without this.
  [[maybe_unused]] static const int registered =
      pthread_atfork(nullptr, nullptr, [] { fork_generation.fetch_add(1, std::memory_order_relaxed); });
  return fork_generation.load(std::memory_order_relaxed);
}

}  // namespace gemvjit
