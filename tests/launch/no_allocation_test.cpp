// The launch path allocates nothing: every operator new of this program is counted.
#include <gtest/gtest.h>

#include "src/launch/launcher.h"
#include "tests/support/allocations/count_allocations.h"

namespace gemvjit {
namespace {

int launched = 0;

CUresult count_launch(const CUlaunchConfig*, CUfunction, void**, void**) {
  ++launched;
  return CUDA_SUCCESS;
}

TEST(LaunchPath, AllocatesNothing) {
  if (!test::can_count_allocations()) GTEST_SKIP() << "the thread sanitizer has operator new to itself";
  ASSERT_TRUE(test::allocations_are_counted());

  cuda::DriverApi driver;
  driver.cuLaunchKernelEx = count_launch;
  LaunchConfig config;
  config.cluster_x = 4;
  config.pdl = true;
  GemvArguments arguments{};
  CUresult result = CUDA_SUCCESS;
  launched = 0;
  const long before = test::allocations();
  for (int i = 0; i < 100; ++i) {
    auto pointers = argument_pointers(arguments);
    const CUresult one = launch(driver, nullptr, config, 1, pointers.data(), nullptr);
    if (one != CUDA_SUCCESS) result = one;
  }
  const long after = test::allocations();
  EXPECT_EQ(result, CUDA_SUCCESS);
  EXPECT_EQ(launched, 100);
  EXPECT_EQ(after, before);
}

}  // namespace
}  // namespace gemvjit
