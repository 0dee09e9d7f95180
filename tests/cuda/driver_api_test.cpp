// Opening libcuda: which files, what is said when it fails, that a success is kept.
#include "src/cuda/driver_api.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>
#include <vector>

#include "tests/support/recording_driver.h"
#include "tests/support/temp_dir.h"

namespace gemvjit::cuda {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(OpenDriver, NamesEveryMissingFileAndThePurpose) {
  const test::TempDir dir;
  const std::string first = dir.path("libcuda.so.1"), second = dir.path("libcuda.so");
  const auto driver = open_driver({first, second}, "launch kernels");
  ASSERT_FALSE(driver);
  EXPECT_EQ(driver.status().code(), StatusCode::no_driver);
  EXPECT_THAT(driver.status().message(), AllOf(HasSubstr(first), HasSubstr(second), HasSubstr("launch kernels"),
                                               HasSubstr("cannot open shared object file"),
                                               HasSubstr("GEMVJIT_LIBCUDA"), Not(HasSubstr(first + ": " + first))));
}

TEST(OpenDriver, NamesTheFunctionThatALibraryLacks) {
  const auto driver = open_driver({FIXTURE_LIBCUDA_LACKS_ONE}, "launch kernels");
  ASSERT_FALSE(driver);
  EXPECT_EQ(driver.status().code(), StatusCode::no_driver);
  EXPECT_THAT(driver.status().message(), AllOf(HasSubstr(FIXTURE_LIBCUDA_LACKS_ONE), HasSubstr("cuLibraryGetKernel")));
}

TEST(OpenDriver, GoesOnToTheNextFile) {
  const auto driver = open_driver({"no/such/libcuda.so", FIXTURE_LIBCUDA_LACKS_ONE, FIXTURE_LIBCUDA_WORKS}, "test");
  ASSERT_TRUE(driver) << driver.status().message();
  EXPECT_EQ((*driver)->path, FIXTURE_LIBCUDA_WORKS);
#define X(name, exported) EXPECT_NE((*driver)->name, nullptr) << #exported;
#include "src/cuda/driver_symbols.inc"
#undef X
}

TEST(OpenDriver, TellsTheErrorOfCuInitAndStops) {
  const auto driver = open_driver({FIXTURE_LIBCUDA_NO_DEVICE, FIXTURE_LIBCUDA_WORKS}, "launch kernels");
  ASSERT_FALSE(driver);
  EXPECT_EQ(driver.status().code(), StatusCode::no_driver);
  EXPECT_THAT(driver.status().message(), AllOf(HasSubstr(FIXTURE_LIBCUDA_NO_DEVICE), HasSubstr("cuInit"),
                                               HasSubstr("(100)"), Not(HasSubstr(FIXTURE_LIBCUDA_WORKS))));
}

// One test for all that load_driver() keeps, since it keeps it for the process.
TEST(LoadDriver, TriesOnlyTheNamedFileRetriesFailuresAndKeepsASuccess) {
  const test::TempDir dir;
  ASSERT_EQ(unsetenv("GEMVJIT_LIBCUDA"), 0);
  EXPECT_THAT(libcuda_files_from_environment(), ElementsAre("libcuda.so.1", "libcuda.so"));
  const std::string nowhere = dir.path("nowhere.so");
  ASSERT_EQ(setenv("GEMVJIT_LIBCUDA", nowhere.c_str(), 1), 0);
  const auto missing = load_driver("count devices");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.status().code(), StatusCode::no_driver);
  EXPECT_THAT(missing.status().message(),
              AllOf(HasSubstr(nowhere), HasSubstr("count devices"), Not(HasSubstr("libcuda.so.1"))));

  ASSERT_EQ(setenv("GEMVJIT_LIBCUDA", FIXTURE_LIBCUDA_WORKS, 1), 0);
  std::vector<std::shared_ptr<const DriverApi>> seen(4);
  std::vector<std::thread> threads;
  for (auto& slot : seen) {
    threads.emplace_back([&slot] {
      if (auto loaded = load_driver("test")) slot = *loaded;
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_NE(seen[0], nullptr);
  for (const auto& slot : seen) EXPECT_EQ(slot, seen[0]);

  ASSERT_EQ(setenv("GEMVJIT_LIBCUDA", nowhere.c_str(), 1), 0);
  const auto again = load_driver("test");
  ASSERT_TRUE(again) << again.status().message();
  EXPECT_EQ(*again, seen[0]);
  ASSERT_EQ(unsetenv("GEMVJIT_LIBCUDA"), 0);
}

TEST(CudaStatus, NamesWhatWasDoneTheErrorAndItsNumber) {
  test::RecordingState state;
  const auto driver = test::make_recording_driver(state);
  EXPECT_TRUE(cuda_status(*driver, CUDA_SUCCESS, "cuInit"));
  const Status status = cuda_status(*driver, CUDA_ERROR_INVALID_VALUE, "cuLaunchKernelEx of nvfp4_gemv");
  EXPECT_EQ(status.code(), StatusCode::cuda_error);
  EXPECT_EQ(status.message(), "cuLaunchKernelEx of nvfp4_gemv: CUDA_ERROR_INVALID_VALUE (1): as the test asked for");
  // One that this driver has no text for.
  EXPECT_THAT(cuda_status(*driver, CUDA_ERROR_UNKNOWN, "cuInit").message(), HasSubstr("(999)"));
}

// The library allocates no device memory, ever: it does not even have the functions.
TEST(DriverTable, HoldsNoFunctionThatAllocatesDeviceMemory) {
  const std::vector<std::string> names = {
#define X(name, exported) #name, #exported,
#include "src/cuda/driver_symbols.inc"
#undef X
  };
  EXPECT_GT(names.size(), 40u);
  for (const std::string& name : names) {
    EXPECT_EQ(name.rfind("cuMem", 0), std::string::npos) << name;
    EXPECT_EQ(name.find("Alloc"), std::string::npos) << name;
  }
}

}  // namespace
}  // namespace gemvjit::cuda
