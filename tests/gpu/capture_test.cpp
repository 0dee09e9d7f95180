// B88, B89: what happens around a capture leaves it valid: cold launches, warmups and ends of other contexts.
#include <gtest/gtest.h>

#include "tests/gpu/spin_kernel.h"
#include "tests/support/gpu_fixture.h"

namespace gemvjit::test {
namespace {

class CaptureTest : public GpuTest, public testing::WithParamInterface<CUstreamCaptureMode> {
 protected:
  const ProblemShape shape{GEMVJIT_NVFP4_GEMV, 4, 528, 1024, false};

  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped()) return;
    auto created = DeviceProblem::create(gpu(), host);
    ASSERT_TRUE(created) << created.status().text();
    device.emplace(std::move(*created));
    context.emplace();
    context->add(shape, 1, true);
    ASSERT_TRUE(context->warm());
    eager = run_checked(*context, host, host.expected(), kPdl, "eager");
  }

  // Captures one launch of the warmed kernel with `meanwhile` before and after it, and checks what the graph does.
  void capture_with(const std::function<void()>& meanwhile) {
    auto own_stream = GpuStream::create(gpu());
    ASSERT_TRUE(own_stream) << own_stream.status().text();
    auto graph = GpuGraph::capture(
        gpu(), *own_stream,
        [&]() -> Status {
          meanwhile();
          if (device->launch(context->get(), own_stream->get(), true) != GEMVJIT_OK) {
            return {StatusCode::cuda_error, gemvjit_last_error()};
          }
          captured_stream = own_stream->get();
          meanwhile();
          return Status::ok();
        },
        GetParam());
    ASSERT_TRUE(graph) << graph.status().text();
    EXPECT_EQ(graph->nodes(), 1u);
    ASSERT_TRUE(device->poison_output());
    ASSERT_TRUE(graph->launch(*own_stream));
    ASSERT_TRUE(own_stream->synchronize());
    const auto output = device->output();
    ASSERT_TRUE(output) << output.status().text();
    EXPECT_EQ(*output, eager);
  }

  HostProblem host = random_problem(shape, 61);
  std::optional<DeviceProblem> device;
  std::optional<GpuContext> context;
  std::vector<std::uint16_t> eager;
  CUstream captured_stream = nullptr;
};

TEST_P(CaptureTest, AColdLaunchIsNotReadyAndTheCaptureStaysValid) {
  gemvjit_options options;
  ASSERT_EQ(gemvjit_options_init(&options), GEMVJIT_OK);
  options.device = 0;
  options.cache_dir = "";
  for (const std::int32_t on_miss : {GEMVJIT_ON_MISS_FAIL, GEMVJIT_ON_MISS_COMPILE}) {
    options.on_miss = on_miss;
    gemvjit_context* cold = nullptr;
    ASSERT_EQ(gemvjit_create(&options, &cold), GEMVJIT_OK) << gemvjit_last_error();
    capture_with([&] {
      if (captured_stream == nullptr) return;  // a launch into the capturing stream
      EXPECT_EQ(device->launch(cold, captured_stream, true), GEMVJIT_NOT_READY);
    });
    captured_stream = nullptr;
    gemvjit_stats_data stats{};
    stats.struct_size = sizeof stats;
    ASSERT_EQ(gemvjit_stats(cold, &stats), GEMVJIT_OK);
    EXPECT_EQ(stats.compiles, 0u);
    EXPECT_EQ(stats.launch_misses, 1u);
    EXPECT_EQ(gemvjit_destroy(cold), GEMVJIT_OK);
  }
}

TEST_P(CaptureTest, OtherContextsWarmUpAndEndMeanwhile) {
  gemvjit_options options;
  ASSERT_EQ(gemvjit_options_init(&options), GEMVJIT_OK);
  options.device = 0;
  options.cache_dir = "";
  std::int64_t n = 544;
  capture_with([&] {  // not by GpuContext, whose end synchronizes, which a capture does not allow
    gemvjit_problem layer;
    ASSERT_EQ(gemvjit_problem_init(&layer, GEMVJIT_NVFP4_GEMV, n += 16, 1024), GEMVJIT_OK);
    layer.allow_untuned = 1;
    gemvjit_context* other = nullptr;
    ASSERT_EQ(gemvjit_create(&options, &other), GEMVJIT_OK) << gemvjit_last_error();
    EXPECT_EQ(gemvjit_warmup(other, &layer, 1, nullptr), GEMVJIT_OK) << gemvjit_last_error();
    EXPECT_EQ(gemvjit_ready(other, &layer, 1, nullptr), GEMVJIT_OK) << gemvjit_last_error();
    EXPECT_EQ(gemvjit_destroy(other), GEMVJIT_OK);  // unloads while the stream captures
  });
}

// The same by the driver's own call, to show that the above could fail: but for RELAXED the capture is over.
TEST_P(CaptureTest, AnUnloadThatDoesNotStandAsideBreaksTheCapture) {
  CUlibrary library = nullptr;
  ASSERT_EQ(gpu().api().cuLibraryLoadData(&library, spin_ptx, nullptr, nullptr, 0, nullptr, nullptr, 0), CUDA_SUCCESS);
  auto own_stream = GpuStream::create(gpu());
  ASSERT_TRUE(own_stream) << own_stream.status().text();
  const auto graph = GpuGraph::capture(
      gpu(), *own_stream, [&] { return gpu().check(gpu().api().cuLibraryUnload(library), "cuLibraryUnload"); },
      GetParam());
  EXPECT_EQ(bool(graph), GetParam() == CU_STREAM_CAPTURE_MODE_RELAXED) << graph.status().text();
}

INSTANTIATE_TEST_SUITE_P(Modes, CaptureTest,
                         testing::Values(CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
                                         CU_STREAM_CAPTURE_MODE_RELAXED),
                         [](const auto& mode) {
                           return mode.param == CU_STREAM_CAPTURE_MODE_GLOBAL         ? "global"
                                  : mode.param == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL ? "thread_local"
                                                                                      : "relaxed";
                         });

}  // namespace
}  // namespace gemvjit::test
