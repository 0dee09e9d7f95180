// Loading a cubin and preparing its kernel, as a recording driver sees it.
#include "src/cuda/library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "tests/support/recording_driver.h"

namespace gemvjit::cuda {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class LibraryTest : public ::testing::Test {
 protected:
  test::RecordingState state;
  std::shared_ptr<const DriverApi> driver = test::make_recording_driver(state);
  Bytes bytes = {0x7f, 'E', 'L', 'F'};
};

TEST_F(LibraryTest, LoadsAndLooksTheKernelUp) {
  const void* seen = nullptr;
  state.on_load = [&](const void* image) {
    seen = image;
    return CUDA_SUCCESS;
  };
  const auto library = Library::load(driver, bytes, "nvfp4_gemv");
  ASSERT_TRUE(library) << library.status().message();
  EXPECT_NE(library->kernel(), nullptr);
  EXPECT_EQ(seen, bytes.data());
  EXPECT_THAT(state.calls(), ElementsAre("cuThreadExchangeStreamCaptureMode", "cuLibraryLoadData", "cuLibraryGetKernel",
                                         "cuThreadExchangeStreamCaptureMode"));
  EXPECT_THAT(state.kernel_names(), ElementsAre("nvfp4_gemv"));
}

TEST_F(LibraryTest, ARefusedLoadIsACudaError) {
  state.errors["cuLibraryLoadData"] = CUDA_ERROR_INVALID_IMAGE;
  const auto library = Library::load(driver, bytes, "nvfp4_gemv");
  ASSERT_FALSE(library);
  EXPECT_EQ(library.status().code(), StatusCode::cuda_error);
  EXPECT_THAT(library.status().message(),
              AllOf(HasSubstr("cuLibraryLoadData"), HasSubstr("CUDA_ERROR_INVALID_IMAGE"), HasSubstr("nvfp4_gemv")));
  EXPECT_EQ(state.count("cuLibraryGetKernel"), 0u);
}

// What a cubin of another architecture looks like: the load succeeds, the look-up does not.
TEST_F(LibraryTest, AWrongArchitectureIsACudaErrorAndNothingStaysLoaded) {
  state.errors["cuLibraryGetKernel"] = CUDA_ERROR_NO_BINARY_FOR_GPU;
  const auto library = Library::load(driver, bytes, "bf16_gemv");
  ASSERT_FALSE(library);
  EXPECT_EQ(library.status().code(), StatusCode::cuda_error);
  EXPECT_THAT(library.status().message(),
              AllOf(HasSubstr("cuLibraryGetKernel"), HasSubstr("bf16_gemv"), HasSubstr("NO_BINARY_FOR_GPU")));
  EXPECT_EQ(state.libraries_loaded(), 0u);
}

TEST_F(LibraryTest, TheDriversAnswerIsToldAndOnlySomeBlameTheImage) {
  CUresult result = CUDA_SUCCESS;
  state.errors["cuLibraryGetKernel"] = CUDA_ERROR_NO_BINARY_FOR_GPU;
  EXPECT_FALSE(Library::load(driver, bytes, "bf16_gemv", &result));
  EXPECT_EQ(result, CUDA_ERROR_NO_BINARY_FOR_GPU);
  state.errors = {{"cuLibraryLoadData", CUDA_ERROR_OUT_OF_MEMORY}};
  EXPECT_FALSE(Library::load(driver, bytes, "bf16_gemv", &result));
  EXPECT_EQ(result, CUDA_ERROR_OUT_OF_MEMORY);
  state.errors = {{"cuKernelGetFunction", CUDA_ERROR_LAUNCH_FAILED}};
  const auto library = Library::load(driver, bytes, "bf16_gemv", &result);
  ASSERT_TRUE(library);
  EXPECT_EQ(result, CUDA_SUCCESS);
  EXPECT_FALSE(library->prepare(0, 0, false, &result));
  EXPECT_EQ(result, CUDA_ERROR_LAUNCH_FAILED);
  for (const CUresult blames :
       {CUDA_ERROR_INVALID_IMAGE, CUDA_ERROR_NO_BINARY_FOR_GPU, CUDA_ERROR_NOT_FOUND, CUDA_ERROR_INVALID_PTX,
        CUDA_ERROR_UNSUPPORTED_PTX_VERSION, CUDA_ERROR_INVALID_SOURCE, CUDA_ERROR_JIT_COMPILER_NOT_FOUND}) {
    EXPECT_TRUE(blames_image(blames)) << blames;
  }
  for (const CUresult other :
       {CUDA_SUCCESS, CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_INVALID_CONTEXT, CUDA_ERROR_ILLEGAL_ADDRESS,
        CUDA_ERROR_LAUNCH_FAILED, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_DEINITIALIZED, CUDA_ERROR_UNKNOWN}) {
    EXPECT_FALSE(blames_image(other)) << other;
  }
}

TEST_F(LibraryTest, NoBytesNeverReachTheDriver) {
  const auto library = Library::load(driver, {}, "bf16_gemv");
  ASSERT_FALSE(library);
  EXPECT_EQ(library.status().code(), StatusCode::invalid_argument);
  EXPECT_TRUE(state.calls().empty());
}

TEST_F(LibraryTest, PrepareResolvesInTheCurrentContextAndSetsNoLimitThatIsNotNeeded) {
  const auto library = Library::load(driver, bytes, "bf16_gemv");
  ASSERT_TRUE(library);
  const CUcontext context = state.primary_context(0);
  state.set_current_context(context);
  const Status status = library->prepare(0, 48 * 1024, false);
  EXPECT_TRUE(status) << status.message();
  ASSERT_EQ(state.functions().size(), 1u);
  EXPECT_EQ(state.functions()[0].kernel, library->kernel());
  EXPECT_EQ(state.functions()[0].context, context);
  EXPECT_TRUE(state.kernel_attributes().empty());
}

TEST_F(LibraryTest, PrepareSetsLimitsOnTheGivenDevice) {
  state.devices.resize(2);
  const auto library = Library::load(driver, bytes, "bf16_gemv");
  ASSERT_TRUE(library);
  state.set_current_context(state.primary_context(1));
  const Status status = library->prepare(1, 48 * 1024 + 1, true);
  EXPECT_TRUE(status) << status.message();
  const auto attributes = state.kernel_attributes();
  ASSERT_EQ(attributes.size(), 2u);
  EXPECT_EQ(attributes[0].attribute, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
  EXPECT_EQ(attributes[0].value, 48 * 1024 + 1);
  EXPECT_EQ(attributes[1].attribute, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED);
  EXPECT_EQ(attributes[1].value, 1);
  for (const auto& attribute : attributes) {
    EXPECT_EQ(attribute.device, 1);
    EXPECT_EQ(attribute.kernel, library->kernel());
  }
  EXPECT_EQ(state.count("cuKernelGetFunction"), 1u);
}

TEST_F(LibraryTest, PrepareTellsWhichCallFailed) {
  const auto library = Library::load(driver, bytes, "bf16_gemv");
  ASSERT_TRUE(library);
  const Status without_context = library->prepare(0, 0, false);
  EXPECT_EQ(without_context.code(), StatusCode::cuda_error);
  EXPECT_THAT(without_context.message(), HasSubstr("cuKernelGetFunction"));
  state.set_current_context(state.primary_context(0));
  const Status too_large = library->prepare(0, 300000, false);
  EXPECT_EQ(too_large.code(), StatusCode::cuda_error);
  EXPECT_THAT(too_large.message(), AllOf(HasSubstr("300000"), HasSubstr("device 0")));
  EXPECT_EQ(Library().prepare(0, 0, false).code(), StatusCode::internal_error);
}

TEST_F(LibraryTest, UnloadIsExplicitAndOnce) {
  {
    auto loaded = Library::load(driver, bytes, "bf16_gemv");
    ASSERT_TRUE(loaded);
    Library dropped = std::move(loaded).value();
    EXPECT_NE(dropped.kernel(), nullptr);
  }
  EXPECT_EQ(state.count("cuLibraryUnload"), 0u);

  bytes.push_back(0);  // others than those that stay loaded
  auto loaded = Library::load(driver, bytes, "bf16_gemv");
  ASSERT_TRUE(loaded);
  Library moved = std::move(*loaded);
  loaded->unload();  // holds nothing any more
  EXPECT_EQ(state.count("cuLibraryUnload"), 0u);
  moved.unload();
  moved.unload();
  EXPECT_EQ(state.count("cuLibraryUnload"), 1u);
  EXPECT_EQ(moved.kernel(), nullptr);
}

TEST_F(LibraryTest, SameBytesAreLoadedOnceAProcess) {
  auto first = Library::load(driver, bytes, "bf16_gemv"), second = Library::load(driver, bytes, "bf16_gemv");
  ASSERT_TRUE(first && second);
  EXPECT_EQ(state.count("cuLibraryLoadData"), 1u);
  EXPECT_EQ(first->kernel(), second->kernel());
  Bytes other = bytes;
  other.back() ^= 1;
  auto third = Library::load(driver, other, "bf16_gemv");
  ASSERT_TRUE(third);
  EXPECT_EQ(state.count("cuLibraryLoadData"), 2u);

  first->unload();
  EXPECT_EQ(state.count("cuLibraryUnload"), 0u) << "the second still uses it";
  second->unload();
  EXPECT_EQ(state.count("cuLibraryUnload"), 1u);
  auto again = Library::load(driver, bytes, "bf16_gemv");
  ASSERT_TRUE(again);
  EXPECT_EQ(state.count("cuLibraryLoadData"), 3u) << "given back, so loaded anew";
  again->unload();
  third->unload();
}

TEST_F(LibraryTest, ContextGuardRestoresTheCallersContext) {
  state.devices.resize(2);
  state.set_current_context(state.primary_context(0));
  {
    const ContextGuard guard(*driver, state.primary_context(1));
    EXPECT_TRUE(guard.status());
    EXPECT_EQ(state.current_context(), state.primary_context(1));
  }
  EXPECT_EQ(state.current_context(), state.primary_context(0));

  state.errors["cuCtxPushCurrent"] = CUDA_ERROR_INVALID_CONTEXT;
  {
    const ContextGuard guard(*driver, state.primary_context(1));
    EXPECT_EQ(guard.status().code(), StatusCode::cuda_error);
  }
  EXPECT_EQ(state.current_context(), state.primary_context(0));  // what was not pushed is not popped
}

}  // namespace
}  // namespace gemvjit::cuda
