#include "src/remote/parallel_each.h"

#include <algorithm>
#include <atomic>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

namespace gemvjit {

void parallel_each(std::size_t count, std::size_t threads, const std::function<void(std::size_t index)>& work) {
  std::atomic<std::size_t> next{0};
  const auto run = [&]() noexcept {
    for (std::size_t index = next.fetch_add(1); index < count; index = next.fetch_add(1)) {
      try {
        work(index);
      } catch (...) {  // NOLINT(bugprone-empty-catch): as the header says
      }
    }
  };
  std::vector<std::jthread> others;
  try {
    others.reserve(threads);
    while (others.size() + 1 < std::min(threads, count)) others.emplace_back(run);
  } catch (const std::system_error&) {  // NOLINT(bugprone-empty-catch): go on with those there are
  } catch (const std::bad_alloc&) {     // NOLINT(bugprone-empty-catch): the same
  }
  run();
}

}  // namespace gemvjit
