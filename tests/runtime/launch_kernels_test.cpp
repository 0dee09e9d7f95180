// What the driver is given at a launch, as the recording driver saw it, and what happens where nothing was warmed.
#include "src/runtime/launch_kernels.h"

#include <gtest/gtest.h>

#include <cstring>

#include "src/runtime/warmup.h"
#include "tests/runtime/runtime_fixture.h"

namespace gemvjit::test {
namespace {

class LaunchTest : public RuntimeTest {
 protected:
  LaunchOutcome launch(Context& context, std::int64_t n, std::int64_t k, std::int32_t m, bool pdl = true) {
    GemvArguments arguments{};
    arguments.x = reinterpret_cast<const void*>(0x1000);
    arguments.x_row_stride = k;
    arguments.m = m;
    return launch_gemv(context, {n, k, Family::nvfp4_gemv, false, pdl}, arguments, stream);
  }
  static bool warm(Context& context, std::vector<ProblemRequest> requests) {
    const WarmupResult result = warm_up(context, requests, {});
    EXPECT_TRUE(result.overall) << result.overall.text();
    return result.overall.is_ok();
  }

  CUstream stream = reinterpret_cast<CUstream>(0x5000);
};

TEST_F(LaunchTest, TheDriverSeesGeometryClusterAndPdl) {
  const auto context = make();
  ASSERT_TRUE(warm(*context, {nvfp4(256, 8192, 1)}));
  recording.argument_sizes = {8, 8, 8, 8, 8, 8, 4};
  ASSERT_EQ(launch(*context, 256, 8192, 5).code, StatusCode::ok);
  ASSERT_EQ(recording.launches().size(), 1u);
  const RecordedLaunch seen = recording.launches()[0];
  EXPECT_EQ(seen.cluster_x(), 4u);
  EXPECT_TRUE(seen.pdl());
  EXPECT_EQ(seen.attributes.size(), 2u);
  EXPECT_EQ(seen.grid[0], 256u / 16 * 4);
  EXPECT_EQ(seen.block[0], 8u * 32);
  EXPECT_EQ(seen.stream, stream);
  std::int32_t m = 0;
  std::memcpy(&m, seen.arguments.at(6).data(), sizeof m);
  EXPECT_EQ(m, 5);
  EXPECT_EQ(context->counters().launches.total(), 1u);
}

// 8 warps x 8 tokens x 20 floats of partial sums, and for each token 32 steps of 256 bytes of x and 16.
TEST_F(LaunchTest, StagedXTakesTheSharedMemoryOfItsTokens) {
  std::string table = test_table(true);
  const std::string tile = R"("tile": {"warps_k": 8})";
  table.replace(table.find(tile), tile.size(), R"("tile": {"warps_k": 8, "x_path": 3})");
  dir.write("tables/clusters.json", table);
  const auto context = make();
  ASSERT_TRUE(warm(*context, {nvfp4(4096, 4096, 1)}));
  ASSERT_FALSE(recording.kernel_attributes().empty());
  EXPECT_EQ(recording.kernel_attributes()[0].value, 8 * 8 * 20 * 4 + 8 * (32 * 256 + 16))
      << "the limit is for all tokens";
  for (const int m : {1, 5, 8}) {
    ASSERT_EQ(launch(*context, 4096, 4096, m).code, StatusCode::ok);
    EXPECT_EQ(recording.launches().back().smem_bytes, 8 * 8 * 20 * 4 + static_cast<unsigned>(m) * (32 * 256 + 16)) << m;
  }
}

TEST_F(LaunchTest, ALaunchTouchesTheDriverOnceAndNoContext) {
  const auto context = make();
  ASSERT_TRUE(warm(*context, {nvfp4(4096, 4096)}));
  recording.forget_calls();
  ASSERT_EQ(launch(*context, 4096, 4096, 1).code, StatusCode::ok);
  EXPECT_EQ(recording.calls(), std::vector<std::string>{"cuLaunchKernelEx"});
}

// B101, B106.
TEST_F(LaunchTest, CodeThatDoesNotWaitIsNotLaunchedWithPdl) {
  compilers.waits_for_predecessor = false;  // the key asks for PDL, the compiled code does not have the wait
  const auto context = make();
  ASSERT_TRUE(warm(*context, {nvfp4(4096, 4096, 1)}));
  ASSERT_EQ(launch(*context, 4096, 4096, 1).code, StatusCode::ok);
  EXPECT_FALSE(recording.launches().at(0).has(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION));
  EXPECT_TRUE(recording.launches().at(0).attributes.empty());
}

TEST_F(LaunchTest, WhetherTheCodeWaitsIsReadFromTheCacheToo) {
  compilers.waits_for_predecessor = false;
  { ASSERT_TRUE(warm(*make(), {nvfp4(4096, 4096, 1)})); }
  compilers.waits_for_predecessor = true;
  const auto context = make();
  ASSERT_TRUE(warm(*context, {nvfp4(4096, 4096, 1)}));
  EXPECT_EQ(compilers.compiled().size(), 1u);
  ASSERT_EQ(launch(*context, 4096, 4096, 1).code, StatusCode::ok);
  EXPECT_FALSE(recording.launches().at(0).pdl());
}

// B104, B107.
TEST_F(LaunchTest, ATableThatSaysPdlLosesTurnsItOff) {
  const auto context = make();
  ASSERT_TRUE(warm(*context, {nvfp4(4096, 4096)}));
  for (const int m : {1, 16, 32}) ASSERT_EQ(launch(*context, 4096, 4096, m).code, StatusCode::ok) << m;
  const auto seen = recording.launches();
  EXPECT_TRUE(seen.at(0).pdl());
  EXPECT_FALSE(seen.at(1).pdl());  // nt 2
  EXPECT_TRUE(seen.at(2).pdl());
}

// B104.
TEST_F(LaunchTest, ForbiddenPdlGetsAKernelWithoutOrNone) {
  const auto context = make();
  ASSERT_TRUE(warm(*context, {nvfp4(4096, 4096, 1)}));
  EXPECT_EQ(launch(*context, 4096, 4096, 1, false).code, StatusCode::not_ready);
  ASSERT_TRUE(warm(*context, {without_pdl(nvfp4(4096, 4096, 1))}));
  ASSERT_EQ(launch(*context, 4096, 4096, 1, false).code, StatusCode::ok);
  EXPECT_FALSE(recording.launches().at(0).pdl());
}

TEST_F(LaunchTest, AllowedPdlFallsBackToAKernelWithout) {
  const auto context = make();
  ASSERT_TRUE(warm(*context, {without_pdl(nvfp4(4096, 4096, 1))}));
  ASSERT_EQ(launch(*context, 4096, 4096, 1, true).code, StatusCode::ok);
  EXPECT_FALSE(recording.launches().at(0).pdl());
}

TEST_F(LaunchTest, WhatWasNotWarmedIsNotReadyOrNotCovered) {
  const auto context = make();
  EXPECT_EQ(launch(*context, 4096, 4096, 1).code, StatusCode::not_ready);
  ASSERT_TRUE(warm(*context, {nvfp4(4096, 4096, 1)}));
  EXPECT_EQ(launch(*context, 4096, 4096, 9).code, StatusCode::m_not_covered);
  EXPECT_EQ(context->counters().launch_misses, 1u);
  EXPECT_TRUE(recording.launches().empty());
  options.device = device_none;
  EXPECT_EQ(launch(*make(), 4096, 4096, 1).code, StatusCode::no_driver);
}

TEST_F(LaunchTest, AFailedLaunchSaysWhichKernel) {
  const auto context = make();
  ASSERT_TRUE(warm(*context, {nvfp4(4096, 4096, 1)}));
  recording.errors["cuLaunchKernelEx"] = CUDA_ERROR_LAUNCH_FAILED;
  const LaunchOutcome outcome = launch(*context, 4096, 4096, 1);
  EXPECT_EQ(outcome.code, StatusCode::cuda_error);
  EXPECT_NE(outcome.detail.message().find("n4096-k4096-nt1"), std::string::npos) << outcome.detail.message();
  EXPECT_NE(outcome.detail.message().find("CUDA_ERROR_LAUNCH_FAILED"), std::string::npos);
  EXPECT_EQ(context->counters().launches.total(), 0u);
}

TEST_F(LaunchTest, AMissCompilesWhereThatIsAllowed) {
  options.compile_on_miss = true;
  const auto context = make();
  ASSERT_EQ(launch(*context, 4096, 4096, 12).code, StatusCode::ok);
  EXPECT_EQ(compilers.compiled().size(), 1u);
  EXPECT_EQ(context->registry().find({4096, 4096, Family::nvfp4_gemv, false, true}, 12).kernel->spec.key.nt, 2);
  ASSERT_EQ(launch(*context, 4096, 4096, 12).code, StatusCode::ok);
  EXPECT_EQ(compilers.compiled().size(), 1u);
  ASSERT_EQ(launch(*context, 4096, 4096, 32).code, StatusCode::ok);  // a shape that is known, an M that is not covered
  EXPECT_EQ(compilers.compiled().size(), 2u);
  ASSERT_EQ(launch(*context, 1024, 1024, 1).code, StatusCode::ok);  // untuned
  EXPECT_EQ(recording.launches().size(), 4u);
}

TEST_F(LaunchTest, AMissNeverCompilesWhileTheStreamCapturesOrAfterTheSeal) {
  options.compile_on_miss = true;
  const auto context = make();
  recording.capturing = true;
  EXPECT_EQ(launch(*context, 4096, 4096, 1).code, StatusCode::not_ready);
  recording.capturing = false;
  recording.errors["cuStreamIsCapturing"] = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;  // some other stream captures
  EXPECT_EQ(launch(*context, 4096, 4096, 1).code, StatusCode::not_ready);
  recording.errors.clear();
  context->seal();
  EXPECT_EQ(launch(*context, 4096, 4096, 1).code, StatusCode::not_ready);
  EXPECT_TRUE(compilers.compiled().empty());
  EXPECT_EQ(recording.count("cuLibraryLoadData"), 0u);
  EXPECT_EQ(context->counters().launch_misses, 3u);
}

TEST_F(LaunchTest, AMissThatFailedIsNotTriedAgain) {
  options.compile_on_miss = true;
  compilers.refuse = [](const Recipe&) { return Status(StatusCode::compile_failed, "it does not"); };
  const auto context = make();
  for (int i = 0; i < 3; ++i) {
    const LaunchOutcome outcome = launch(*context, 4096, 4096, 1);
    EXPECT_EQ(outcome.code, StatusCode::compile_failed);
    EXPECT_NE(outcome.detail.message().find("it does not"), std::string::npos);
  }
  EXPECT_EQ(compilers.compiled().size(), 1u);
  EXPECT_EQ(launch(*context, 12, 4096, 1).code, StatusCode::invalid_shape);
}

TEST_F(LaunchTest, DequantizeHasItsKernel) {
  ProblemRequest request;
  request.problem = {Family::dequantize_rows, 100, 64, false, true};
  const auto context = make();
  ASSERT_TRUE(warm(*context, {request}));  // needs no permission: it has one configuration
  DequantizeArguments arguments{};
  const LaunchShape shape{100, 64, Family::dequantize_rows, false, true};
  ASSERT_EQ(launch_dequantize(*context, shape, arguments, stream).code, StatusCode::ok);
  EXPECT_EQ(recording.launches().at(0).block[0], 256u);
  EXPECT_EQ(recording.kernel_names().at(0), "dequantize_rows");
}

TEST_F(LaunchTest, ManyThreadsLaunchWhileOthersWarm) {
  const auto context = make();
  ASSERT_TRUE(warm(*context, {nvfp4(4096, 4096)}));
  std::atomic<int> failed{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        if (launch(*context, 4096, 4096, 1 + i % 32).code != StatusCode::ok) ++failed;
      }
    });
  }
  for (int n = 1; n <= 40; ++n) warm(*context, {nvfp4(n * 64, 1024, 1)});
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(context->counters().launches.total(), 2000u);
}

}  // namespace
}  // namespace gemvjit::test
