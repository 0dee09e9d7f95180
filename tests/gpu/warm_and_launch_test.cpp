// From nothing to a launch on this machine: compiled here by NVRTC, or found in a cache that was filled without the
// device; what a launch does before and after.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/gpu_fixture.h"

namespace gemvjit::test {
namespace {

const ProblemShape kShape{GEMVJIT_NVFP4_GEMV, 4, 96, 448, false};

class WarmAndLaunchTest : public GpuTest {
 protected:
  HostProblem problem_ = random_problem(kShape, 70, 0xFF);
};

TEST_F(WarmAndLaunchTest, CompiledHere) {
  TempDir cache;
  GpuContext context(nullptr, cache.path());
  context.add(kShape, 1, true);
  ASSERT_TRUE(context.warm());
  EXPECT_EQ(context.stats().compiles, 1u);
  EXPECT_EQ(context.stats().cache_writes, 1u);
  (void)run_checked(context, problem_, problem_.expected(), {}, "compiled here");
  EXPECT_EQ(context.stats().launches, 1u);
}

TEST_F(WarmAndLaunchTest, FromACacheFilledWithoutADevice) {
  TempDir cache;
  std::string arch;
  {
    GpuContext device(nullptr, cache.path());
    arch = gemvjit_device_arch(device.get());
  }
  {
    GpuContext filler(nullptr, cache.path(), GEMVJIT_DEVICE_NONE);
    gemvjit_problem problem;
    ASSERT_EQ(gemvjit_problem_init(&problem, kShape.family, kShape.n, kShape.k), GEMVJIT_OK);
    problem.nt = 1;
    problem.allow_untuned = 1;
    problem.arch = arch.c_str();
    ASSERT_EQ(gemvjit_warmup(filler.get(), &problem, 1, nullptr), GEMVJIT_OK) << gemvjit_last_error();
    EXPECT_EQ(filler.stats().compiles, 1u);
    EXPECT_EQ(filler.stats().kernels_loaded, 0u);
  }
  GpuContext context(nullptr, cache.path());
  ASSERT_EQ(gemvjit_seal(context.get()), GEMVJIT_OK);
  context.add(kShape, 1, true);
  ASSERT_TRUE(context.warm());
  EXPECT_EQ(context.stats().compiles, 0u);
  EXPECT_EQ(context.stats().cache_hits, 1u);
  (void)run_checked(context, problem_, problem_.expected(), {}, "from the cache");
}

TEST_F(WarmAndLaunchTest, NotWarmedIsNotReadyAndWritesNothing) {
  GpuContext context;
  auto device = DeviceProblem::create(gpu(), problem_);
  ASSERT_TRUE(device) << device.status().text();
  EXPECT_EQ(device->launch(context.get(), stream(), true), GEMVJIT_NOT_READY);
  synchronize();
  auto output = device->output();
  ASSERT_TRUE(output);
  for (const std::uint16_t bits : *output) ASSERT_EQ(bits, 0xFFFF);
  EXPECT_EQ(context.stats().launch_misses, 1u);
}

TEST_F(WarmAndLaunchTest, CompilesOnAMissWhereAllowedButNotInACapture) {
  TempDir cache;
  gemvjit_options options;
  ASSERT_EQ(gemvjit_options_init(&options), GEMVJIT_OK);
  options.device = 0;
  options.on_miss = GEMVJIT_ON_MISS_COMPILE;
  options.cache_dir = cache.path().c_str();
  gemvjit_context* context = nullptr;
  ASSERT_EQ(gemvjit_create(&options, &context), GEMVJIT_OK) << gemvjit_last_error();
  auto device = DeviceProblem::create(gpu(), problem_);
  ASSERT_TRUE(device) << device.status().text();
  auto own_stream = GpuStream::create(gpu());
  ASSERT_TRUE(own_stream) << own_stream.status().text();
  gemvjit_status in_capture = GEMVJIT_OK;
  auto graph = GpuGraph::capture(gpu(), *own_stream, [&] {
    in_capture = device->launch(context, own_stream->get(), true);
    return Status::ok();
  });
  EXPECT_EQ(in_capture, GEMVJIT_NOT_READY);
  ASSERT_TRUE(graph) << "the refused launch broke the capture: " << graph.status().text();
  EXPECT_EQ(graph->nodes(), 0u);
  EXPECT_EQ(device->launch(context, own_stream->get(), true), GEMVJIT_OK) << gemvjit_last_error();
  synchronize();
  auto output = device->output();
  ASSERT_TRUE(output);
  EXPECT_TRUE(reference::compare(problem_.expected(), *output).within_bounds);
  EXPECT_EQ(gemvjit_destroy(context), GEMVJIT_OK);
}

// B130, B131: also under capture, of kernels that are warmed and of one that is not.
TEST_F(WarmAndLaunchTest, NoTokensIsSuccessWithoutALaunch) {
  for (const gemvjit_family family : {GEMVJIT_NVFP4_GEMV, GEMVJIT_BF16_GEMV}) {
    for (const bool silu_mul : {false, true}) {
      const HostProblem problem = random_problem({family, 4, 96, 448, silu_mul}, 71);
      GpuContext context, cold;
      context.add(problem.shape, 1, true);
      ASSERT_TRUE(context.warm());
      auto device = DeviceProblem::create(gpu(), problem);
      ASSERT_TRUE(device) << device.status().text();
      auto own_stream = GpuStream::create(gpu());
      ASSERT_TRUE(own_stream) << own_stream.status().text();
      EXPECT_EQ(device->launch_m(context.get(), own_stream->get(), true, 0), GEMVJIT_OK) << gemvjit_last_error();
      gemvjit_status status = GEMVJIT_INTERNAL_ERROR, status_cold = GEMVJIT_INTERNAL_ERROR;
      auto graph = GpuGraph::capture(gpu(), *own_stream, [&] {
        status = device->launch_m(context.get(), own_stream->get(), true, 0);
        status_cold = device->launch_m(cold.get(), own_stream->get(), true, 0);
        return Status::ok();
      });
      EXPECT_EQ(status, GEMVJIT_OK) << gemvjit_last_error();
      EXPECT_EQ(status_cold, GEMVJIT_OK) << gemvjit_last_error();
      ASSERT_TRUE(graph) << graph.status().text();
      EXPECT_EQ(graph->nodes(), 0u) << "a launch for no tokens";
      EXPECT_TRUE(graph->launch(*own_stream));
      synchronize();
      const auto output = device->output();
      ASSERT_TRUE(output);
      EXPECT_EQ(std::count(output->begin(), output->end(), 0xFFFF), static_cast<std::ptrdiff_t>(output->size()));
      EXPECT_EQ(context.stats().launches + cold.stats().launches, 0u);
    }
  }
}

// Two contexts of one process on one device, and a context that outlives another with the same kernel.
TEST_F(WarmAndLaunchTest, ContextsDoNotDisturbEachOther) {
  GpuContext first;
  first.add(kShape, 1, true);
  ASSERT_TRUE(first.warm());
  {
    GpuContext second;
    second.add(kShape, 1, true);
    ASSERT_TRUE(second.warm());
    (void)run_checked(second, problem_, problem_.expected(), {}, "second");
  }
  (void)run_checked(first, problem_, problem_.expected(), {}, "first, after the second is gone");
}

}  // namespace
}  // namespace gemvjit::test
