// gemvjit_destroy never fails: not at exit when the driver is gone, not on a device that was reset or has a sticky
// error, not in a child of fork() (B97). Each in a process of its own. And several CUDA contexts on one device.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "tests/gpu/spin_kernel.h"
#include "tests/support/gpu_fixture.h"

namespace gemvjit::test {
namespace {

gemvjit_context* ended_at_exit = nullptr;

// Before main, and so before CUDA: exit handlers run last in, first out, and this one after the driver's own.
[[maybe_unused]] const int registered = std::atexit([] {
  if (ended_at_exit == nullptr) return;
  const bool ok = gemvjit_destroy(ended_at_exit) == GEMVJIT_OK;
  ::_exit(ok ? 42 : 43);
});

class LastMoments : public GpuTest {
 protected:
  const ProblemShape shape{GEMVJIT_BF16_GEMV, 2, 576, 512, false};
  static gemvjit_context* warmed(const ProblemShape& shape) {
    gemvjit_options options;
    gemvjit_context* context = nullptr;
    gemvjit_problem problem;
    if (gemvjit_options_init(&options) != GEMVJIT_OK) return nullptr;
    options.device = 0;
    options.cache_dir = "";
    if (gemvjit_create(&options, &context) != GEMVJIT_OK) return nullptr;
    if (gemvjit_problem_init(&problem, shape.family, shape.n, shape.k) != GEMVJIT_OK) return nullptr;
    problem.allow_untuned = 1;
    problem.nt = 1;
    return gemvjit_warmup(context, &problem, 1, nullptr) == GEMVJIT_OK ? context : nullptr;
  }
  // Starts anew, in a process that has not touched CUDA.
  void SetUp() override {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    GpuTest::SetUp();
  }
};

TEST_F(LastMoments, AtExitAfterTheDriverHasGone) {
  EXPECT_EXIT(
      {
        ended_at_exit = warmed(shape);
        std::exit(ended_at_exit != nullptr ? 1 : 2);
      },
      testing::ExitedWithCode(42), "");
}

TEST_F(LastMoments, OnADeviceThatWasReset) {
  EXPECT_EXIT(
      {
        gemvjit_context* const context = warmed(shape);
        const auto reset = driver_function<CUresult (*)(CUdevice)>("cuDevicePrimaryCtxReset_v2");
        if (context == nullptr || reset == nullptr || reset(gpu().device()) != CUDA_SUCCESS) ::_exit(1);
        ::_exit(gemvjit_destroy(context) == GEMVJIT_OK ? 42 : 43);
      },
      testing::ExitedWithCode(42), "");
}

TEST_F(LastMoments, WithAStickyErrorLaunchesFailAndTheEndDoesNot) {
  EXPECT_EXIT(
      {
        gemvjit_context* const context = warmed(shape);
        auto device = DeviceProblem::create(gpu(), random_problem(shape, 63));
        CUlibrary library = nullptr;
        const GpuApi& api = gpu().api();
        if (context == nullptr || !device) ::_exit(1);
        if (api.cuLibraryLoadData(&library, spin_ptx, nullptr, nullptr, 0, nullptr, nullptr, 0) != CUDA_SUCCESS)
          ::_exit(1);
        if (launch_ptx(api, library, "stop", stream(), nullptr) != CUDA_SUCCESS) ::_exit(1);
        if (api.cuCtxSynchronize() == CUDA_SUCCESS) ::_exit(2);  // the error is there
        if (device->launch(context, stream(), true) != GEMVJIT_CUDA_ERROR) ::_exit(3);
        ::_exit(gemvjit_destroy(context) == GEMVJIT_OK ? 42 : 43);
      },
      testing::ExitedWithCode(42), "");
}

TEST_F(LastMoments, InAChildOfFork) {
  gemvjit_context* const context = warmed(shape);
  ASSERT_NE(context, nullptr) << gemvjit_last_error();
  auto device = DeviceProblem::create(gpu(), random_problem(shape, 64));
  ASSERT_TRUE(device) << device.status().text();
  const pid_t child = ::fork();
  if (child == 0) {
    if (device->launch(context, nullptr, true) != GEMVJIT_FORKED) ::_exit(1);
    if (gemvjit_destroy(context) != GEMVJIT_OK) ::_exit(2);
    gemvjit_options options;
    (void)gemvjit_options_init(&options);
    options.device = 0;
    options.cache_dir = "";
    gemvjit_context* own = nullptr;
    if (gemvjit_create(&options, &own) != GEMVJIT_NO_DRIVER) ::_exit(3);
    if (std::string(gemvjit_last_error()).find("fork") == std::string::npos) ::_exit(4);
    options.device = GEMVJIT_DEVICE_NONE;  // compiles, as a worker would
    gemvjit_problem problem;
    (void)gemvjit_problem_init(&problem, shape.family, shape.n, shape.k);
    problem.allow_untuned = 1;
    problem.arch = "sm_90a";
    if (gemvjit_create(&options, &own) != GEMVJIT_OK) ::_exit(5);
    if (gemvjit_warmup(own, &problem, 1, nullptr) != GEMVJIT_OK) ::_exit(6);
    ::_exit(gemvjit_destroy(own) == GEMVJIT_OK ? 42 : 43);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 42);
  EXPECT_EQ(device->launch(context, stream(), true), GEMVJIT_OK) << "the parent's goes on: " << gemvjit_last_error();
  synchronize();
  EXPECT_EQ(gemvjit_destroy(context), GEMVJIT_OK);
}

// B91: a second CUDA context of the device, current in the thread that warms up, has the kernel resolved as well; a
// third does not, and the library says so.
TEST_F(LastMoments, SeveralCudaContextsOfOneDevice) {
  const auto create = driver_function<CUresult (*)(CUcontext*, unsigned, CUdevice)>("cuCtxCreate_v2");
  const auto destroy = driver_function<CUresult (*)(CUcontext)>("cuCtxDestroy_v2");
  ASSERT_TRUE(create != nullptr && destroy != nullptr);
  gemvjit_problem problem;
  ASSERT_EQ(gemvjit_problem_init(&problem, shape.family, shape.n, shape.k), GEMVJIT_OK);
  problem.allow_untuned = 1;
  problem.nt = 1;
  const HostProblem host = random_problem(shape, 65);
  const auto expected = host.expected();

  CUcontext second = nullptr;
  ASSERT_EQ(create(&second, 0, gpu().device()), CUDA_SUCCESS);  // and current
  gemvjit_context* const context = warmed(shape);
  ASSERT_NE(context, nullptr) << gemvjit_last_error();
  EXPECT_EQ(gemvjit_ready(context, &problem, 1, nullptr), GEMVJIT_OK) << gemvjit_last_error();
  {
    auto device = DeviceProblem::create(gpu(), host);
    ASSERT_TRUE(device) << device.status().text();
    ASSERT_TRUE(device->poison_output());
    ASSERT_EQ(device->launch(context, nullptr, true), GEMVJIT_OK) << gemvjit_last_error();
    synchronize();
    const auto output = device->output();
    ASSERT_TRUE(output) << output.status().text();
    EXPECT_TRUE(reference::compare(expected, *output).within_bounds);
  }
  CUcontext third = nullptr;
  ASSERT_EQ(create(&third, 0, gpu().device()), CUDA_SUCCESS);
  EXPECT_EQ(gemvjit_ready(context, &problem, 1, nullptr), GEMVJIT_NOT_READY);
  EXPECT_EQ(gemvjit_warmup(context, &problem, 1, nullptr), GEMVJIT_OK) << gemvjit_last_error();
  EXPECT_EQ(gemvjit_ready(context, &problem, 1, nullptr), GEMVJIT_OK) << gemvjit_last_error();
  EXPECT_EQ(destroy(third), CUDA_SUCCESS);
  EXPECT_EQ(destroy(second), CUDA_SUCCESS);
  ASSERT_TRUE(gpu().make_current());
  EXPECT_EQ(gemvjit_ready(context, &problem, 1, nullptr), GEMVJIT_OK) << "the primary one";
  EXPECT_EQ(gemvjit_destroy(context), GEMVJIT_OK);
}

}  // namespace
}  // namespace gemvjit::test
