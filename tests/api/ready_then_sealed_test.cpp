// B10, B79: an engine learns from one answer that all is ready, passes its barrier, and then nothing compiles any more;
// and a warmup is not begun where a stream captures.
#include <gtest/gtest.h>

#include "tests/api/api_fixture.h"

namespace gemvjit::test {
namespace {

class ReadyThenSealed : public ApiTest {
 protected:
  static gemvjit_stats_data stats_of(const gemvjit_context* context) {
    gemvjit_stats_data stats{};
    stats.struct_size = sizeof stats;
    EXPECT_EQ(gemvjit_stats(context, &stats), GEMVJIT_OK);
    return stats;
  }
};

// The answer that a rank may enter the barrier upon: OK stands for every kernel of every problem.
TEST_F(ReadyThenSealed, OkMeansThatEveryKernelIsReady) {
  gemvjit_context* context = open();
  const std::vector<gemvjit_problem> problems = {problem(GEMVJIT_NVFP4_GEMV, 1024, 2048),
                                                 problem(GEMVJIT_BF16_GEMV, 512, 1024)};
  EXPECT_EQ(gemvjit_check(context, problems.data(), problems.size(), nullptr, nullptr), GEMVJIT_NOT_READY);
  compilers.refuse = [](const Recipe& recipe) {
    return recipe.key.n == 512 && recipe.key.nt == 4 ? Status(StatusCode::compile_failed, "no") : Status::ok();
  };
  EXPECT_EQ(warm(context, problems), GEMVJIT_COMPILE_FAILED) << "one kernel of six is missing: this rank is not ready";
  EXPECT_EQ(gemvjit_check(context, problems.data(), problems.size(), nullptr, nullptr), GEMVJIT_NOT_READY);
  compilers.refuse = [](const Recipe&) { return Status::ok(); };
  EXPECT_EQ(warm(context, problems), GEMVJIT_OK);
  EXPECT_EQ(gemvjit_check(context, problems.data(), problems.size(), nullptr, nullptr), GEMVJIT_OK);
  EXPECT_EQ(stats_of(context).kernels_loaded, 6u);
}

TEST_F(ReadyThenSealed, BetweenTwoCollectivesNothingCompiles) {
  options.compile_on_miss = true;  // what would compile in a launch, were it not for the seal
  gemvjit_context* context = open();
  const std::vector<gemvjit_problem> problems = {problem(GEMVJIT_NVFP4_GEMV, 1024, 2048)};
  ASSERT_EQ(warm(context, problems), GEMVJIT_OK);
  ASSERT_EQ(gemvjit_seal(context), GEMVJIT_OK);
  const std::uint64_t compiles = stats_of(context).compiles;
  const int opened = compilers.opened;
  for (int step = 0; step < 3; ++step) {
    for (const std::int64_t m : {1, 8, 16, 32}) {
      const auto args = nvfp4_args(m, 1024, 2048);
      EXPECT_EQ(gemvjit_nvfp4_gemv(context, &args, nullptr), GEMVJIT_OK);
    }
    const auto other = nvfp4_args(1, 2048, 2048);
    EXPECT_EQ(gemvjit_nvfp4_gemv(context, &other, nullptr), GEMVJIT_NOT_READY);
    EXPECT_EQ(warm(context, {problem(GEMVJIT_NVFP4_GEMV, 2048, 2048)}), GEMVJIT_SEALED);
    EXPECT_EQ(warm(context, problems), GEMVJIT_OK) << "what is there needs no compile";
  }
  EXPECT_EQ(stats_of(context).compiles, compiles);
  EXPECT_EQ(compilers.opened, opened);
  EXPECT_EQ(stats_of(context).launch_misses, 3u);
}

// The driver tells of a capture of an ordinary stream when asked about the legacy stream.
TEST_F(ReadyThenSealed, AWarmupWhileAStreamCapturesIsRefusedAtOnce) {
  gemvjit_context* context = open();
  const std::vector<gemvjit_problem> problems = {problem(GEMVJIT_NVFP4_GEMV, 1024, 2048),
                                                 problem(GEMVJIT_BF16_GEMV, 512, 1024)};
  std::vector<gemvjit_status> statuses(2, GEMVJIT_OK);
  gemvjit_warmup_options run{};
  run.struct_size = sizeof run;
  run.problem_status = statuses.data();
  run.user = this;
  run.on_kernel = [](void*, const gemvjit_kernel_info*) {
    ADD_FAILURE() << "nothing was to be begun";
    return 0;
  };
  recording.errors["cuStreamIsCapturing"] = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  EXPECT_EQ(gemvjit_warmup(context, problems.data(), problems.size(), &run), GEMVJIT_NOT_READY);
  EXPECT_TRUE(last_error_has("captures"));
  EXPECT_EQ(statuses, std::vector<gemvjit_status>(2, GEMVJIT_NOT_READY));
  EXPECT_EQ(recording.count("cuLibraryLoadData"), 0u);
  EXPECT_TRUE(compilers.compiled().empty());

  // Without a load there is nothing that a capture could mind.
  run.on_kernel = nullptr;
  run.level = GEMVJIT_LEVEL_COMPILED;
  EXPECT_EQ(gemvjit_warmup(context, problems.data(), problems.size(), &run), GEMVJIT_OK);
  EXPECT_EQ(recording.count("cuLibraryLoadData"), 0u);

  // And when the capture is over all is as ever; so it is where the driver has another complaint about that stream.
  recording.errors["cuStreamIsCapturing"] = CUDA_ERROR_INVALID_CONTEXT;
  run.level = GEMVJIT_LEVEL_RESOLVED;
  EXPECT_EQ(gemvjit_warmup(context, problems.data(), problems.size(), &run), GEMVJIT_OK);
  EXPECT_EQ(stats_of(context).kernels_loaded, 6u);
}

}  // namespace
}  // namespace gemvjit::test
