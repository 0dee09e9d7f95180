// B91, B92: several devices in one process. A launch goes to the device of its context, whatever device the thread or
// another thread used before. Skips where there is one GPU.
#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <thread>

#include "tests/support/gpu_fixture.h"

namespace gemvjit::test {
namespace {

// A problem of its own on one device, and all that a launch of it needs.
struct OnDevice {
  explicit OnDevice(int ordinal) {
    auto opened = GpuHarness::open(ordinal);
    if (!opened) return;
    gpu = std::move(*opened);
    const ProblemShape shape{GEMVJIT_NVFP4_GEMV, 5, 512, 1024, false};
    host = random_problem(shape, 40 + static_cast<std::uint64_t>(ordinal));
    context.emplace(nullptr, "", ordinal);
    context->add(shape, 1, true);
    if (!context->warm()) return;
    auto made_stream = GpuStream::create(*gpu);
    auto made = DeviceProblem::create(*gpu, host);
    if (!made_stream || !made) return;
    stream.emplace(std::move(*made_stream));
    problem.emplace(std::move(*made));
  }

  bool is_ready() const { return problem.has_value(); }
  gemvjit_status launch() const {
    if (!gpu->make_current()) return GEMVJIT_CUDA_ERROR;
    return problem->launch(context->get(), stream->get(), true);
  }
  // The output's bits, once all launches have ended; poisoned again for the next round.
  std::vector<std::uint16_t> take_output() {
    EXPECT_TRUE(gpu->make_current());
    const Status ended = gpu->synchronize();
    EXPECT_TRUE(ended) << ended.message();
    const Status untouched = problem->check_untouched(host);
    EXPECT_TRUE(untouched) << untouched.message();
    auto out = problem->output();
    EXPECT_TRUE(problem->poison_output());
    return out ? *out : std::vector<std::uint16_t>{};
  }

  std::unique_ptr<GpuHarness> gpu;
  HostProblem host;
  std::optional<GpuContext> context;
  std::optional<GpuStream> stream;
  std::optional<DeviceProblem> problem;
};

class TwoDevices : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped()) return;
    if (!GpuHarness::open(1)) GTEST_SKIP() << "one GPU";
    first_ = std::make_unique<OnDevice>(0);
    second_ = std::make_unique<OnDevice>(1);
    ASSERT_TRUE(first_->is_ready() && second_->is_ready());
  }
  void TearDown() override {
    second_.reset();
    first_.reset();
    if (!IsSkipped()) {
      EXPECT_TRUE(gpu().make_current());
    }
  }
  static void expect_right(OnDevice& one) {
    const auto out = one.take_output();
    const reference::Comparison comparison = reference::compare(one.host.expected(), out);
    EXPECT_TRUE(comparison.within_bounds) << comparison.first_bad;
  }
  std::unique_ptr<OnDevice> first_, second_;
};

TEST_F(TwoDevices, OneThreadAlternatesTenThousandTimes) {
  for (int i = 0; i < 10000; ++i) {
    ASSERT_EQ(first_->launch(), GEMVJIT_OK) << i << ": " << gemvjit_last_error();
    ASSERT_EQ(second_->launch(), GEMVJIT_OK) << i << ": " << gemvjit_last_error();
  }
  expect_right(*first_);
  expect_right(*second_);
  EXPECT_NE(first_->host.x, second_->host.x) << "control: the problems differ";
}

TEST_F(TwoDevices, ThreadsOfTheirOwnLaunchAtOnce) {
  std::atomic<int> failed{0};
  const auto launch_many = [&](const OnDevice& one) {
    for (int i = 0; i < 5000; ++i) failed += one.launch() != GEMVJIT_OK;
  };
  std::thread other(launch_many, std::cref(*second_));
  launch_many(*first_);
  other.join();
  EXPECT_EQ(failed, 0);
  expect_right(*first_);
  expect_right(*second_);
}

}  // namespace
}  // namespace gemvjit::test
