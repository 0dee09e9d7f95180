// Calls a function for 0 to count - 1 from several threads at once, the calling one among them, and returns when all is
// done. Where no thread can be had there are fewer. What the function throws is lost: it says itself what went wrong.
#pragma once

#include <cstddef>
#include <functional>

namespace gemvjit {

void parallel_each(std::size_t count, std::size_t threads, const std::function<void(std::size_t index)>& work);

}  // namespace gemvjit
