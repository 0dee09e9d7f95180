// The launch path allocates nothing: every operator new of this program is counted.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <new>

#include "src/launch/launcher.h"

namespace {
std::atomic<long> allocations{0};

void* counted(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
}  // namespace

void* operator new(std::size_t size) { return counted(size); }
void* operator new[](std::size_t size) { return counted(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

namespace gemvjit {
namespace {

int launched = 0;

CUresult count_launch(const CUlaunchConfig*, CUfunction, void**, void**) {
  ++launched;
  return CUDA_SUCCESS;
}

TEST(LaunchPath, AllocatesNothing) {
  const long before_one = allocations;
  int* volatile kept = new int(1);  // volatile: the compiler may leave out a pair that nobody sees
  delete kept;
  ASSERT_GT(allocations, before_one);  // the count counts

  cuda::DriverApi driver;
  driver.cuLaunchKernelEx = count_launch;
  LaunchConfig config;
  config.cluster_x = 4;
  config.pdl = true;
  GemvArguments arguments{};
  CUresult result = CUDA_SUCCESS;
  launched = 0;
  const long before = allocations;
  for (int i = 0; i < 100; ++i) {
    auto pointers = argument_pointers(arguments);
    const CUresult one = launch(driver, nullptr, config, 1, pointers.data(), nullptr);
    if (one != CUDA_SUCCESS) result = one;
  }
  const long after = allocations;
  EXPECT_EQ(result, CUDA_SUCCESS);
  EXPECT_EQ(launched, 100);
  EXPECT_EQ(after, before);
}

}  // namespace
}  // namespace gemvjit
