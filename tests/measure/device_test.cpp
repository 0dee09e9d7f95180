// tools/measure on a device: what is computed by cuBLASLt and the SiLU kernel is what the references expect.
#include <gtest/gtest.h>

#include "tools/measure/alternative.h"
#include "tools/measure/cold_data.h"

namespace gemvjit::tools {
namespace {

TEST(AlternativeOnDevice, ComputesTheSame) {
  const auto gpu = GpuHarness::open();
  if (!gpu) GTEST_SKIP() << gpu.status().text();
  const auto alternative = Alternative::open(**gpu, "");
  if (!alternative) GTEST_SKIP() << alternative.status().text();
  const auto stream = GpuStream::create(**gpu);
  ASSERT_TRUE(stream) << stream.status().text();
  const HostBlocks blocks;
  ColdArena arena(**gpu, blocks);
  for (const bool silu_mul : {false, true}) {
    for (const std::int64_t m : {1, 8, 32}) {
      const auto timed =
          (*alternative)->time(*stream, arena, blocks, {Family::nvfp4_gemv, 2048, 1024, silu_mul, true}, m, 5, false);
      ASSERT_TRUE(timed) << timed.status().text();
      EXPECT_EQ(timed->problem, "") << "M = " << m << (silu_mul ? " silu_mul" : "");
      EXPECT_GT(timed->us.median, 0);
      EXPECT_GE(timed->algorithms, 1);
    }
  }
}

}  // namespace
}  // namespace gemvjit::tools
