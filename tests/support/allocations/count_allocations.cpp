#include "tests/support/allocations/count_allocations.h"

#include <atomic>
#include <cstdlib>
#include <new>

// A thread sanitizer brings operator new of its own, and clang does not link both.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define GEMVJIT_OPERATOR_NEW_IS_TAKEN
#endif
#endif

namespace {

std::atomic<long> calls{0};

}  // namespace

#ifndef GEMVJIT_OPERATOR_NEW_IS_TAKEN
namespace {

void* counted(std::size_t size) noexcept {
  ++calls;
  return std::malloc(size == 0 ? 1 : size);
}

void* counted_or_throw(std::size_t size) {
  if (void* memory = counted(size)) return memory;
  throw std::bad_alloc();
}

}  // namespace

// All forms but those with an alignment, so that new and delete fit together.
void* operator new(std::size_t size) { return counted_or_throw(size); }
void* operator new[](std::size_t size) { return counted_or_throw(size); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return counted(size); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return counted(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
#endif

namespace gemvjit::test {

long allocations() { return calls; }

bool can_count_allocations() {
#ifdef GEMVJIT_OPERATOR_NEW_IS_TAKEN
  return false;
#else
  return true;
#endif
}

bool allocations_are_counted() {
  const long before = calls;
  int* volatile kept = new int(1);  // volatile: the compiler may leave out a pair that nobody sees
  delete kept;
  return calls > before;
}

}  // namespace gemvjit::test
