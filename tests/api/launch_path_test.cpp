// The launch path allocates nothing, neither on success nor where an engine falls back; and what it costs on the host
// (printed, not asserted: machines differ). Every operator new of this program is counted.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>

#include "tests/api/api_fixture.h"
#include "tests/support/allocations/count_allocations.h"

namespace gemvjit::test {
namespace {

std::atomic<long> launched{0};
CUresult count_launch(const CUlaunchConfig*, CUfunction, void**, void**) {
  launched.fetch_add(1, std::memory_order_relaxed);
  return CUDA_SUCCESS;
}

class LaunchPathTest : public ApiTest {
 protected:
  // A warmed context whose launches reach a function that does nothing.
  gemvjit_context* warmed() {
    gemvjit_context* context = open();
    EXPECT_EQ(warm(context, {problem(GEMVJIT_NVFP4_GEMV, 4096, 4096), problem(GEMVJIT_BF16_GEMV, 4096, 4096),
                             problem(GEMVJIT_DEQUANTIZE_ROWS, 4096, 4096)}),
              GEMVJIT_OK);
    driver->cuLaunchKernelEx = count_launch;
    return context;
  }
};

TEST_F(LaunchPathTest, ASuccessfulLaunchAllocatesNothing) {
  if (!can_count_allocations()) GTEST_SKIP() << "the thread sanitizer has operator new to itself";
  ASSERT_TRUE(allocations_are_counted());
  gemvjit_context* context = warmed();
  const auto nvfp4 = nvfp4_args(1, 4096, 4096);
  const auto bf16 = bf16_args(32, 4096, 4096);
  const auto rows = dequantize_args(4096, 4096);
  launched = 0;
  bool all_ok = true;
  const long before = allocations();
  for (int i = 0; i < 100; ++i) {
    all_ok = all_ok && gemvjit_nvfp4_gemv(context, &nvfp4, nullptr) == GEMVJIT_OK;
    all_ok = all_ok && gemvjit_bf16_gemv(context, &bf16, nullptr) == GEMVJIT_OK;
    all_ok = all_ok && gemvjit_dequantize_rows(context, &rows, nullptr) == GEMVJIT_OK;
  }
  const long after = allocations();
  EXPECT_TRUE(all_ok) << gemvjit_last_error();
  EXPECT_EQ(launched, 300);
  EXPECT_EQ(after - before, 0);
}

TEST_F(LaunchPathTest, WhereAnEngineFallsBackNothingIsAllocatedEither) {
  gemvjit_context* context = warmed();
  const auto too_many = nvfp4_args(33, 4096, 4096);
  const auto unknown = nvfp4_args(1, 8192, 4096);
  auto misaligned = nvfp4_args(1, 4096, 4096);
  misaligned.weight = address(0x20008);
  const long before = allocations();
  const gemvjit_status first = gemvjit_nvfp4_gemv(context, &too_many, nullptr);
  const gemvjit_status second = gemvjit_nvfp4_gemv(context, &unknown, nullptr);
  const gemvjit_status third = gemvjit_nvfp4_gemv(context, &misaligned, nullptr);
  const long after = allocations();
  EXPECT_EQ(first, GEMVJIT_M_NOT_COVERED);
  EXPECT_EQ(second, GEMVJIT_NOT_READY);
  EXPECT_EQ(third, GEMVJIT_INVALID_ALIGNMENT);
  EXPECT_EQ(after - before, 0);
}

TEST_F(LaunchPathTest, WhatALaunchCostsOnTheHost) {
  gemvjit_context* context = warmed();
  const auto args = nvfp4_args(1, 4096, 4096);
  constexpr int rounds = 200000;
  launched = 0;
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < rounds; ++i) (void)gemvjit_nvfp4_gemv(context, &args, nullptr);
  const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - begin;
  EXPECT_EQ(launched, rounds);
  std::printf("gemvjit_nvfp4_gemv above a driver call that does nothing: %.1f ns a launch\n", time.count() / rounds);
}

}  // namespace
}  // namespace gemvjit::test
