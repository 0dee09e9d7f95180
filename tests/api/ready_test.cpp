// B79, B80, B88: how far a warmup goes, and whether launches would find all of it.
#include <atomic>
#include <thread>

#include "tests/api/api_fixture.h"

namespace gemvjit::test {
namespace {

class ReadyTest : public ApiTest {
 protected:
  static gemvjit_status warm_to(gemvjit_context* context, const gemvjit_problem& wanted, gemvjit_warmup_level level) {
    gemvjit_warmup_options run{};
    run.struct_size = sizeof run;
    run.level = level;
    return gemvjit_warmup(context, &wanted, 1, &run);
  }
  static gemvjit_status launch(gemvjit_context* context) {
    const gemvjit_nvfp4_gemv_args args = nvfp4_args(1, 1024, 1024);
    return gemvjit_nvfp4_gemv(context, &args, nullptr);
  }
  static gemvjit_problem wanted() { return problem(GEMVJIT_NVFP4_GEMV, 1024, 1024); }
};

TEST_F(ReadyTest, EachLevelGoesAsFarAsItSays) {
  gemvjit_context* const context = open();
  const gemvjit_problem layer = wanted();

  ASSERT_EQ(warm_to(context, layer, GEMVJIT_LEVEL_COMPILED), GEMVJIT_OK);
  EXPECT_EQ(compilers.compiled().size(), 3u);  // nt 1, 2, 4
  EXPECT_EQ(recording.count("cuLibraryLoadData"), 0u);
  EXPECT_EQ(gemvjit_ready(context, &layer, 1, nullptr), GEMVJIT_NOT_READY);
  EXPECT_TRUE(last_error_has("not loaded"));

  ASSERT_EQ(warm_to(context, layer, GEMVJIT_LEVEL_LOADED), GEMVJIT_OK);
  EXPECT_EQ(recording.count("cuLibraryLoadData"), 3u);
  EXPECT_EQ(recording.count("cuKernelGetFunction"), 0u);  // what waits for running kernels
  EXPECT_EQ(gemvjit_ready(context, &layer, 1, nullptr), GEMVJIT_NOT_READY);
  EXPECT_TRUE(last_error_has("not resolved"));
  EXPECT_EQ(launch(context), GEMVJIT_NOT_READY);  // it would load the function

  ASSERT_EQ(warm_to(context, layer, GEMVJIT_LEVEL_RESOLVED), GEMVJIT_OK);
  EXPECT_EQ(recording.count("cuLibraryLoadData"), 3u);
  EXPECT_EQ(recording.count("cuKernelGetFunction"), 3u);
  EXPECT_EQ(gemvjit_ready(context, &layer, 1, nullptr), GEMVJIT_OK);
  recording.forget_calls();
  EXPECT_EQ(launch(context), GEMVJIT_OK);
  EXPECT_EQ(recording.calls(), std::vector<std::string>{"cuLaunchKernelEx"});
  EXPECT_EQ(compilers.compiled().size(), 3u);
}

TEST_F(ReadyTest, EachProblemHasItsStatus) {
  gemvjit_context* const context = open();
  ASSERT_EQ(warm(context, {wanted()}), GEMVJIT_OK);
  gemvjit_problem only_nt1 = problem(GEMVJIT_NVFP4_GEMV, 2048, 1024);
  only_nt1.nt = 1;
  ASSERT_EQ(warm(context, {only_nt1}), GEMVJIT_OK);
  gemvjit_problem all_nt = only_nt1;
  all_nt.nt = 0;
  const std::vector<gemvjit_problem> asked = {wanted(), only_nt1, all_nt, problem(GEMVJIT_NVFP4_GEMV, 1024, 1025)};
  std::vector<gemvjit_status> statuses(asked.size(), GEMVJIT_INTERNAL_ERROR);
  EXPECT_EQ(gemvjit_ready(context, asked.data(), asked.size(), statuses.data()), GEMVJIT_NOT_READY);
  EXPECT_EQ(statuses, (std::vector<gemvjit_status>{GEMVJIT_OK, GEMVJIT_OK, GEMVJIT_NOT_READY, GEMVJIT_INVALID_SHAPE}));
  EXPECT_TRUE(last_error_has("n2048-k1024-nt2")) << "the first that is missing";
}

// What a launch may take serves the question too: a kernel without PDL, a larger nt.
TEST_F(ReadyTest, WhicheverKernelALaunchGetsCounts) {
  gemvjit_context* const context = open();
  gemvjit_problem four = wanted();
  four.nt = 4;
  four.pdl = 0;
  ASSERT_EQ(warm(context, {four}), GEMVJIT_OK);
  gemvjit_problem one = wanted();
  one.nt = 1;
  EXPECT_EQ(launch(context), GEMVJIT_OK);
  EXPECT_EQ(gemvjit_ready(context, &one, 1, nullptr), GEMVJIT_OK) << gemvjit_last_error();
}

// Two threads warm one kernel whose function cannot be had at first: who says that it is ready has it.
TEST_F(ReadyTest, AFailureBesideASuccessLeavesTheSuccess) {
  gemvjit_context* const context = open();
  gemvjit_problem layer = wanted();
  layer.nt = 1;
  for (int round = 0; round < 20; ++round) {
    layer.n += 16;
    std::atomic<int> asked{0};
    recording.on_function = [&] { return asked++ == 0 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS; };
    std::vector<std::jthread> threads;
    std::atomic<int> succeeded{0};
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] { succeeded += gemvjit_warmup(context, &layer, 1, nullptr) == GEMVJIT_OK ? 1 : 0; });
    }
    threads.clear();
    EXPECT_EQ(succeeded.load(), 3);
    EXPECT_EQ(gemvjit_ready(context, &layer, 1, nullptr), GEMVJIT_OK) << gemvjit_last_error();
  }
  EXPECT_EQ(context->impl->registry().size(), 20u);
}

TEST_F(ReadyTest, AFailureNamesTheKernelAndKeepsWhatWasLoaded) {
  gemvjit_context* const context = open();
  const gemvjit_problem layer = wanted();
  ASSERT_EQ(warm_to(context, layer, GEMVJIT_LEVEL_LOADED), GEMVJIT_OK);
  recording.errors["cuKernelGetFunction"] = CUDA_ERROR_OUT_OF_MEMORY;
  EXPECT_EQ(warm_to(context, layer, GEMVJIT_LEVEL_RESOLVED), GEMVJIT_CUDA_ERROR);
  EXPECT_TRUE(last_error_has("n1024-k1024-nt"));
  EXPECT_TRUE(last_error_has(".entry"));
  recording.errors.clear();
  EXPECT_EQ(warm_to(context, layer, GEMVJIT_LEVEL_RESOLVED), GEMVJIT_OK);
  EXPECT_EQ(recording.count("cuLibraryLoadData"), 3u);
}

// A function resolved in one CUDA context is loaded again at its first launch in another.
TEST_F(ReadyTest, ReadinessIsThatOfTheCurrentCudaContext) {
  gemvjit_context* const context = open();
  const gemvjit_problem layer = wanted();
  ASSERT_EQ(warm(context, {layer}), GEMVJIT_OK);
  recording.devices.push_back(FakeDevice{});  // what the other context answers to
  recording.set_current_context(reinterpret_cast<CUcontext>(0x88880));
  EXPECT_EQ(gemvjit_ready(context, &layer, 1, nullptr), GEMVJIT_NOT_READY);
  recording.set_current_context(recording.primary_context(0));
  EXPECT_EQ(gemvjit_ready(context, &layer, 1, nullptr), GEMVJIT_OK);
}

TEST_F(ReadyTest, WhileAStreamCapturesBothFailAtOnceAndTouchNothing) {
  gemvjit_context* const context = open();
  const gemvjit_problem layer = wanted();
  ASSERT_EQ(warm(context, {layer}), GEMVJIT_OK);
  recording.errors["cuStreamIsCapturing"] = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  recording.forget_calls();
  gemvjit_status status = GEMVJIT_OK;
  EXPECT_EQ(gemvjit_ready(context, &layer, 1, &status), GEMVJIT_NOT_READY);
  EXPECT_EQ(status, GEMVJIT_NOT_READY);
  EXPECT_TRUE(last_error_has("captures"));
  EXPECT_EQ(warm(context, {layer}), GEMVJIT_NOT_READY);
  EXPECT_EQ(launch(context), GEMVJIT_OK);  // what is resolved is launched into the capture
  for (const char* touching : {"cuLibraryLoadData", "cuLibraryUnload", "cuKernelGetFunction"}) {
    EXPECT_EQ(recording.count(touching), 0u) << touching;
  }
}

TEST_F(ReadyTest, WithoutADeviceThereIsNoAnswer) {
  options.device = device_none;
  const gemvjit_problem layer = wanted();
  EXPECT_EQ(gemvjit_ready(open(), &layer, 1, nullptr), GEMVJIT_NO_DRIVER);
  EXPECT_EQ(gemvjit_ready(nullptr, &layer, 1, nullptr), GEMVJIT_INVALID_ARGUMENT);
}

// B89: the driver refuses an unload while streams capture, and ends the captures, unless the thread has said that it
// stands aside.
TEST_F(ReadyTest, LoadingAndUnloadingStandAsideFromCaptures) {
  std::vector<bool> relaxed;
  recording.on_load = [&](const void*) { return relaxed.push_back(recording.capture_mode_relaxed), CUDA_SUCCESS; };
  recording.on_unload = [&] { relaxed.push_back(recording.capture_mode_relaxed); };
  ASSERT_EQ(warm(open(), {wanted()}), GEMVJIT_OK);
  close();
  EXPECT_EQ(relaxed, std::vector<bool>(6, true));  // three loads, three unloads
  EXPECT_FALSE(recording.capture_mode_relaxed);    // and the mode is the thread's own again
}

}  // namespace
}  // namespace gemvjit::test
