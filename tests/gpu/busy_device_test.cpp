// B80 and what NCCL-like neighbours make of it: a kernel that never ends holds the device, perhaps waiting for the very
// launch that is to come. Loading a function waits for running kernels, so that nothing may be left for a launch to
// load.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>

#include "tests/gpu/spin_kernel.h"
#include "tests/support/gpu_fixture.h"

namespace gemvjit::test {
namespace {

using Clock = std::chrono::steady_clock;
double microseconds_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

class BusyDevice : public GpuTest {
 protected:
  static gemvjit_problem problem_of(const ProblemShape& shape) {
    gemvjit_problem problem;
    EXPECT_EQ(gemvjit_problem_init(&problem, shape.family, shape.n, shape.k), GEMVJIT_OK);
    problem.allow_untuned = 1;
    problem.nt = 1;
    return problem;
  }
  static gemvjit_status warm_to(gemvjit_context* context, const gemvjit_problem& problem, gemvjit_warmup_level level) {
    gemvjit_warmup_options run{};
    run.struct_size = sizeof run;
    run.level = level;
    return gemvjit_warmup(context, &problem, 1, &run);
  }
};

// Those beside a kernel that never ends.
class SpinningDevice : public BusyDevice {
 protected:
  // A layer warmed as far as `level`, with its operands on the device, and only then a kernel that never ends.
  void start(const ProblemShape& shape, std::uint64_t seed, gemvjit_warmup_level level) {
    host = random_problem(shape, seed);
    context.emplace();
    problem = problem_of(shape);
    ASSERT_EQ(warm_to(context->get(), problem, level), GEMVJIT_OK) << gemvjit_last_error();
    auto created = DeviceProblem::create(gpu(), host);
    ASSERT_TRUE(created) << created.status().text();
    device.emplace(std::move(*created));
    ASSERT_TRUE(device->poison_output());
    synchronize();
    spinning = SpinningKernel::start(gpu());
    ASSERT_NE(spinning, nullptr);
    auto made = GpuStream::create(gpu());
    ASSERT_TRUE(made) << made.status().text();
    own_stream.emplace(std::move(*made));
  }

  HostProblem host;
  gemvjit_problem problem{};
  std::optional<GpuContext> context;
  std::optional<DeviceProblem> device;
  std::optional<GpuStream> own_stream;
  std::unique_ptr<SpinningKernel> spinning;  // ends first
};

TEST_F(SpinningDevice, AWarmedLaunchRunsBesideAKernelThatNeverEnds) {
  ASSERT_NO_FATAL_FAILURE(start({GEMVJIT_NVFP4_GEMV, 3, 1056, 1536, false}, 71, GEMVJIT_LEVEL_RESOLVED));
  EXPECT_EQ(gemvjit_ready(context->get(), &problem, 1, nullptr), GEMVJIT_OK) << gemvjit_last_error();
  const auto begin = Clock::now();
  ASSERT_EQ(device->launch(context->get(), own_stream->get(), true), GEMVJIT_OK) << gemvjit_last_error();
  const auto done = own_stream->done_within(2.0);
  const double us = microseconds_since(begin);
  ASSERT_TRUE(done) << done.status().text();
  EXPECT_TRUE(*done);
  EXPECT_TRUE(spinning->is_running()) << "else this proves nothing";
  RecordProperty("first_launch_and_wait_us", std::to_string(us));
  std::printf("first launch beside a spinning kernel, to its end: %.1f us\n", us);
  spinning->end();
  const auto output = device->output();
  ASSERT_TRUE(output);
  EXPECT_TRUE(reference::compare(host.expected(), *output).within_bounds);
}

// The level below does not wait for the running kernel, and leaves what would to a quieter moment.
TEST_F(SpinningDevice, LoadingWaitsForNobodyAndLaunchesNothing) {
  ASSERT_NO_FATAL_FAILURE(start({GEMVJIT_BF16_GEMV, 2, 1072, 1280, false}, 72, GEMVJIT_LEVEL_COMPILED));
  EXPECT_EQ(warm_to(context->get(), problem, GEMVJIT_LEVEL_LOADED), GEMVJIT_OK) << gemvjit_last_error();
  EXPECT_EQ(gemvjit_ready(context->get(), &problem, 1, nullptr), GEMVJIT_NOT_READY);
  EXPECT_EQ(device->launch(context->get(), own_stream->get(), false), GEMVJIT_NOT_READY);
  EXPECT_TRUE(spinning->is_running()) << "loading waited for it";
  spinning->end();
  EXPECT_EQ(warm_to(context->get(), problem, GEMVJIT_LEVEL_RESOLVED), GEMVJIT_OK) << gemvjit_last_error();
  (void)run_checked(*context, host, host.expected(), kPdl, "after the level resolved");
}

// After the level resolved a first launch costs what any launch costs: below 50 us, the median over kernels.
TEST_F(BusyDevice, FirstLaunchesTakeMicroseconds) {
  GpuContext context;
  std::vector<HostProblem> hosts;
  std::vector<DeviceProblem> devices;
  for (int i = 0; i < 9; ++i) {
    const ProblemShape shape{GEMVJIT_NVFP4_GEMV, 1, 512 + 16 * i, 1024, false};
    hosts.push_back(random_problem(shape, 80 + static_cast<std::uint64_t>(i)));
    auto device = DeviceProblem::create(gpu(), hosts.back());
    ASSERT_TRUE(device) << device.status().text();
    devices.push_back(std::move(*device));
    context.add(shape, 1, true);
  }
  ASSERT_TRUE(context.warm());
  synchronize();
  std::vector<double> us;
  for (const DeviceProblem& device : devices) {
    const auto begin = Clock::now();
    ASSERT_EQ(device.launch(context.get(), stream(), true), GEMVJIT_OK) << gemvjit_last_error();
    us.push_back(microseconds_since(begin));
  }
  synchronize();
  std::sort(us.begin(), us.end());
  std::printf("first launches, host time: median %.1f us, slowest %.1f us\n", us[us.size() / 2], us.back());
  EXPECT_LT(us[us.size() / 2], 50.0);
}

// B76 on a device: the event of the C API, and the time of a miss.
TEST_F(BusyDevice, AMissAfterTheSealIsToldWithinMicroseconds) {
  gemvjit_options options;
  ASSERT_EQ(gemvjit_options_init(&options), GEMVJIT_OK);
  options.device = 0;
  options.cache_dir = "";
  options.on_miss = GEMVJIT_ON_MISS_COMPILE;  // the seal wins
  std::vector<gemvjit_event> events;
  events.reserve(4096);
  options.event_user = &events;
  options.event_callback = [](void* user, const gemvjit_event* event) {
    static_cast<std::vector<gemvjit_event>*>(user)->push_back(*event);
  };
  gemvjit_context* context = nullptr;
  ASSERT_EQ(gemvjit_create(&options, &context), GEMVJIT_OK) << gemvjit_last_error();
  ASSERT_EQ(gemvjit_seal(context), GEMVJIT_OK);
  const ProblemShape shape{GEMVJIT_NVFP4_GEMV, 7, 640, 1024, false};
  auto device = DeviceProblem::create(gpu(), random_problem(shape, 90));
  ASSERT_TRUE(device) << device.status().text();
  std::vector<double> us;
  for (int i = 0; i < 2000; ++i) {
    const auto begin = Clock::now();
    const gemvjit_status status = device->launch(context, stream(), true);
    us.push_back(microseconds_since(begin));
    ASSERT_EQ(status, GEMVJIT_NOT_READY);
  }
  std::sort(us.begin(), us.end());
  std::printf("a miss after the seal: median %.2f us, slowest %.1f us\n", us[1000], us.back());
  EXPECT_LT(us[1000], 10.0);
  ASSERT_EQ(events.size(), 2000u);
  EXPECT_EQ(events[0].struct_size, sizeof(gemvjit_event));
  EXPECT_EQ(events[0].kind, GEMVJIT_EVENT_LAUNCH_MISS);
  EXPECT_EQ(events[0].status, GEMVJIT_NOT_READY);
  EXPECT_EQ(events[0].family, GEMVJIT_NVFP4_GEMV);
  EXPECT_EQ(events[0].sealed, 1);
  EXPECT_EQ(events[0].m, 7);
  EXPECT_EQ(events[0].n, 640);
  EXPECT_EQ(events[0].k, 1024);
  EXPECT_EQ(events[0].pdl, 1);
  EXPECT_EQ(gemvjit_destroy(context), GEMVJIT_OK);
}

}  // namespace
}  // namespace gemvjit::test
