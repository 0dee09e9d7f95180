// Problems through the C API: questions, warmup, plan, check; and the scale layout on the host.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/api/api_fixture.h"

namespace gemvjit::test {
namespace {

class ApiProblemTest : public ApiTest {};

TEST_F(ApiProblemTest, InitSetsWhatTheHeaderSays) {
  gemvjit_problem made;
  std::memset(&made, 0xff, sizeof made);
  ASSERT_EQ(gemvjit_problem_init(&made, GEMVJIT_BF16_GEMV, 8, 16), GEMVJIT_OK);
  EXPECT_EQ(made.struct_size, sizeof made);
  EXPECT_EQ(made.family, GEMVJIT_BF16_GEMV);
  EXPECT_EQ(made.n, 8);
  EXPECT_EQ(made.k, 16);
  EXPECT_EQ(made.pdl, 1);
  EXPECT_EQ(made.nt, 0);
  EXPECT_EQ(made.silu_mul, 0);
  EXPECT_EQ(made.allow_untuned, 0);
  EXPECT_EQ(made.arch, nullptr);
  EXPECT_EQ(gemvjit_problem_init(nullptr, GEMVJIT_BF16_GEMV, 8, 16), GEMVJIT_INVALID_ARGUMENT);
  EXPECT_EQ(gemvjit_problem_init(&made, static_cast<gemvjit_family>(0), 8, 16), GEMVJIT_INVALID_ARGUMENT);
}

TEST_F(ApiProblemTest, WhatIsWrongWithAProblemIsNamed) {
  gemvjit_context* context = open();
  struct Case {
    std::function<void(gemvjit_problem&)> spoil;
    gemvjit_status status;
    const char* message;
  };
  const std::vector<Case> cases = {
      {[](auto& p) { p.struct_size = 0; }, GEMVJIT_INVALID_ARGUMENT, "struct_size"},
      {[](auto& p) { p.struct_size += 4; }, GEMVJIT_INVALID_ARGUMENT, "struct_size"},
      {[](auto& p) { p.family = 0; }, GEMVJIT_INVALID_ARGUMENT, "family is 0"},
      {[](auto& p) { p.silu_mul = 3; }, GEMVJIT_INVALID_ARGUMENT, "silu_mul is 3"},
      {[](auto& p) { p.pdl = 3; }, GEMVJIT_INVALID_ARGUMENT, "pdl is 3"},
      {[](auto& p) { p.allow_untuned = -1; }, GEMVJIT_INVALID_ARGUMENT, "allow_untuned"},
      {[](auto& p) { p.scale_segments = 2; }, GEMVJIT_INVALID_ARGUMENT, "scale_segments"},
      {[](auto& p) { p.nt = 3; }, GEMVJIT_INVALID_ARGUMENT, "1, 2, 4"},
      {[](auto& p) { p.arch = "sm90a"; }, GEMVJIT_INVALID_ARGUMENT, "sm90a"},
      {[](auto& p) { p.arch = ""; }, GEMVJIT_INVALID_ARGUMENT, "sm_"},
      {[](auto& p) { p.arch = "sm_75"; }, GEMVJIT_UNSUPPORTED, "sm_80"},
      {[](auto& p) { p.n = 0; }, GEMVJIT_INVALID_SHAPE, "positive"},
      {[](auto& p) { p.n = -8; }, GEMVJIT_INVALID_SHAPE, "positive"},
      {[](auto& p) { p.k = INT64_MAX; }, GEMVJIT_INVALID_SHAPE, "at most"},
      {[](auto& p) { p.k = 24; }, GEMVJIT_INVALID_SHAPE, "multiple of 16"},
      {[](auto& p) { p.silu_mul = 1, p.n = 24; }, GEMVJIT_INVALID_SHAPE, "multiple of 16"},
      {[](auto& p) { p.family = GEMVJIT_DEQUANTIZE_ROWS, p.silu_mul = 1; }, GEMVJIT_UNSUPPORTED, "silu_mul"},
      {[](auto& p) { p.family = GEMVJIT_DEQUANTIZE_ROWS, p.nt = 1; }, GEMVJIT_INVALID_ARGUMENT, "nt 1"},
  };
  for (const Case& one : cases) {
    gemvjit_problem bad = problem(GEMVJIT_NVFP4_GEMV, 64, 64);
    one.spoil(bad);
    char reason[256] = "";
    EXPECT_EQ(gemvjit_supported(context, &bad, reason, sizeof reason), one.status) << one.message;
    EXPECT_NE(std::string(reason).find(one.message), std::string::npos) << reason;
    EXPECT_EQ(warm(context, {bad}), one.status) << one.message;
    EXPECT_TRUE(last_error_has(one.message));
  }
  EXPECT_TRUE(compilers.compiled().empty());
}

TEST_F(ApiProblemTest, TheReasonIsCutToFit) {
  gemvjit_context* context = open();
  gemvjit_problem bad = problem(GEMVJIT_NVFP4_GEMV, 60, 64);
  char reason[8];
  std::memset(reason, 'x', sizeof reason);
  EXPECT_EQ(gemvjit_supported(context, &bad, reason, sizeof reason), GEMVJIT_INVALID_SHAPE);
  EXPECT_EQ(std::strlen(reason), 7u);
  EXPECT_EQ(gemvjit_supported(context, &bad, reason, 0), GEMVJIT_INVALID_SHAPE);
  bad.n = 64;
  EXPECT_EQ(gemvjit_supported(context, &bad, reason, sizeof reason), GEMVJIT_OK);
  EXPECT_STREQ(reason, "");
}

TEST_F(ApiProblemTest, QuestionsAnswer) {
  gemvjit_context* context = open();
  gemvjit_problem tuned = problem(GEMVJIT_NVFP4_GEMV, 4096, 4096);
  tuned.allow_untuned = 0;
  std::int32_t nt = -1, is_tuned = -1;
  EXPECT_EQ(gemvjit_pick_nt(context, &tuned, 9, &nt), GEMVJIT_OK);
  EXPECT_EQ(nt, 2);
  EXPECT_EQ(gemvjit_pick_nt(context, &tuned, 33, &nt), GEMVJIT_OK);
  EXPECT_EQ(nt, 0);
  EXPECT_EQ(gemvjit_tuned(context, &tuned, &is_tuned), GEMVJIT_OK);
  EXPECT_EQ(is_tuned, 1);
  EXPECT_EQ(gemvjit_pick_nt(context, &tuned, 1, nullptr), GEMVJIT_INVALID_ARGUMENT);
  EXPECT_EQ(gemvjit_tuned(context, nullptr, &is_tuned), GEMVJIT_INVALID_ARGUMENT);
  char text[32];
  size_t length = 0;
  EXPECT_EQ(gemvjit_explain(context, &tuned, 1, text, sizeof text, &length), GEMVJIT_OK);
  EXPECT_EQ(std::strlen(text), sizeof text - 1);
  EXPECT_GT(length, sizeof text);
  std::string whole(length + 1, 'x');
  EXPECT_EQ(gemvjit_explain(context, &tuned, 1, whole.data(), whole.size(), nullptr), GEMVJIT_OK);
  EXPECT_EQ(std::strlen(whole.c_str()), length);
  EXPECT_EQ(gemvjit_explain(context, &tuned, 1, nullptr, 5, nullptr), GEMVJIT_INVALID_ARGUMENT);
}

// What a callback keeps of one kernel.
struct Kernel {
  std::string key, digest, arch, flags, match, path, error;
  gemvjit_kernel_info info;
};
int keep(void* user, const gemvjit_kernel_info* info) {
  static_cast<std::vector<Kernel>*>(user)->push_back(
      {info->key, info->digest, info->arch, info->flags_text, info->match, info->path, info->error, *info});
  return 0;
}

TEST_F(ApiProblemTest, WarmupTellsOfEachKernelAndEachProblem) {
  gemvjit_context* context = open();
  std::vector<gemvjit_problem> problems = {problem(GEMVJIT_NVFP4_GEMV, 4096, 4096), problem(GEMVJIT_BF16_GEMV, 60, 64),
                                           problem(GEMVJIT_DEQUANTIZE_ROWS, 7, 48)};
  std::vector<gemvjit_status> statuses(problems.size(), GEMVJIT_INTERNAL_ERROR);
  std::vector<Kernel> kernels;
  gemvjit_warmup_options run{};
  run.struct_size = sizeof run;
  run.on_kernel = keep;
  run.user = &kernels;
  run.problem_status = statuses.data();
  EXPECT_EQ(gemvjit_warmup(context, problems.data(), problems.size(), &run), GEMVJIT_INVALID_SHAPE);
  EXPECT_EQ(statuses, (std::vector<gemvjit_status>{GEMVJIT_OK, GEMVJIT_INVALID_SHAPE, GEMVJIT_OK}));
  ASSERT_EQ(kernels.size(), 4u);
  for (const Kernel& kernel : kernels) {
    EXPECT_EQ(kernel.info.struct_size, sizeof(gemvjit_kernel_info));
    EXPECT_EQ(kernel.info.outcome, GEMVJIT_OUTCOME_COMPILED);
    EXPECT_EQ(kernel.info.status, GEMVJIT_OK);
    EXPECT_EQ(kernel.error, "");
    EXPECT_EQ(kernel.arch, "sm_90a");
    EXPECT_EQ(kernel.digest.size(), 64u);
    EXPECT_EQ(kernel.key.find(fmt::format("n{}-k{}-nt{}-f", kernel.info.n, kernel.info.k, kernel.info.nt)), 0u);
    EXPECT_EQ(kernel.info.registers, 64u);
    EXPECT_EQ(kernel.info.spill_bytes, 12u);
    EXPECT_EQ(kernel.info.total, 4u);
    EXPECT_GE(kernel.info.milliseconds, 0.0);
    if (kernel.info.family == GEMVJIT_DEQUANTIZE_ROWS) {
      EXPECT_EQ(kernel.info.problem_index, 2u);
      EXPECT_EQ(kernel.info.smem_bytes, 16u);
    } else {
      EXPECT_EQ(kernel.match, "exact");
      EXPECT_GT(kernel.info.smem_bytes, 16u);
      EXPECT_NE(kernel.flags.find("warps_k="), std::string::npos);
    }
  }
  // All of it is in the cache now, but for the one that cannot be.
  kernels.clear();
  EXPECT_EQ(gemvjit_check(context, problems.data(), problems.size(), keep, &kernels), GEMVJIT_INVALID_SHAPE);
  ASSERT_EQ(kernels.size(), 4u);
  for (const Kernel& kernel : kernels) EXPECT_EQ(kernel.info.outcome, GEMVJIT_OUTCOME_CACHED);
  EXPECT_EQ(gemvjit_check(context, problems.data(), 1, nullptr, nullptr), GEMVJIT_OK);
}

TEST_F(ApiProblemTest, AFailedKernelSaysWhy) {
  compilers.refuse = [](const Recipe&) { return Status(StatusCode::compile_failed, "line 3: nonsense"); };
  gemvjit_context* context = open();
  gemvjit_problem one = problem(GEMVJIT_NVFP4_GEMV, 64, 64);
  one.nt = 1;
  std::vector<Kernel> kernels;
  gemvjit_warmup_options run{};
  run.struct_size = sizeof run;
  run.on_kernel = keep;
  run.user = &kernels;
  EXPECT_EQ(gemvjit_warmup(context, &one, 1, &run), GEMVJIT_COMPILE_FAILED);
  EXPECT_TRUE(last_error_has("line 3: nonsense"));
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_EQ(kernels[0].info.outcome, GEMVJIT_OUTCOME_FAILED);
  EXPECT_EQ(kernels[0].info.status, GEMVJIT_COMPILE_FAILED);
  EXPECT_NE(kernels[0].error.find("line 3: nonsense"), std::string::npos);
  EXPECT_EQ(kernels[0].digest.size(), 64u);
}

TEST_F(ApiProblemTest, PlanAndCheckOfWhatIsNotThere) {
  gemvjit_context* context = open();
  const gemvjit_problem one = problem(GEMVJIT_NVFP4_GEMV, 64, 64);
  std::vector<Kernel> kernels;
  EXPECT_EQ(gemvjit_plan(context, &one, 1, keep, &kernels), GEMVJIT_OK);
  EXPECT_EQ(kernels.size(), 3u);
  EXPECT_EQ(gemvjit_check(context, &one, 1, keep, &kernels), GEMVJIT_NOT_READY);
  ASSERT_EQ(kernels.size(), 6u);
  for (const Kernel& kernel : kernels) EXPECT_EQ(kernel.info.outcome, GEMVJIT_OUTCOME_MISSING);
  EXPECT_EQ(kernels[0].key, kernels[3].key);
  const auto stop = [](void*, const gemvjit_kernel_info*) { return 1; };
  EXPECT_EQ(gemvjit_plan(context, &one, 1, stop, nullptr), GEMVJIT_CANCELLED);
}

TEST_F(ApiProblemTest, BadWarmupArguments) {
  gemvjit_context* context = open();
  const gemvjit_problem one = problem(GEMVJIT_NVFP4_GEMV, 64, 64);
  EXPECT_EQ(gemvjit_warmup(context, nullptr, 1, nullptr), GEMVJIT_INVALID_ARGUMENT);
  EXPECT_EQ(gemvjit_warmup(context, nullptr, 0, nullptr), GEMVJIT_OK);
  gemvjit_warmup_options run{};
  EXPECT_EQ(gemvjit_warmup(context, &one, 1, &run), GEMVJIT_INVALID_ARGUMENT);
  run.struct_size = sizeof run;
  run.level = 3;
  EXPECT_EQ(gemvjit_warmup(context, &one, 1, &run), GEMVJIT_INVALID_ARGUMENT);
  run.level = 0;
  run.require_cache = 2;
  EXPECT_EQ(gemvjit_warmup(context, &one, 1, &run), GEMVJIT_INVALID_ARGUMENT);
  EXPECT_TRUE(compilers.compiled().empty());
}

TEST(Swizzle, FollowsTheFormulaAndZeroesPadding) {
  const std::int64_t n = 130, k = 80;  // 5 columns: padded to 256 x 8
  const size_t size = gemvjit_swizzled_scale_bytes(n, k);
  ASSERT_EQ(size, 256u * 8);
  std::vector<unsigned char> rows(static_cast<size_t>(n) * 5), swizzled(size, 0xEE), seen(size, 0);
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<unsigned char>(1 + i % 250);
  ASSERT_EQ(gemvjit_swizzle_blockscale(rows.data(), n, k, swizzled.data(), size), GEMVJIT_OK);
  for (size_t r = 0; r < 130; ++r) {
    for (size_t c = 0; c < 5; ++c) {
      // Tiles of 128 x 4, row-major; in a tile 32 groups of 16 bytes, a group holds rows r, r+32, r+64, r+96.
      const size_t tile = r / 128 * 2 + c / 4;
      const size_t at = tile * 512 + r % 32 * 16 + r % 128 / 32 * 4 + c % 4;
      EXPECT_EQ(swizzled[at], rows[r * 5 + c]) << r << " " << c;
      seen[at] = 1;
    }
  }
  for (size_t i = 0; i < size; ++i) {
    if (seen[i] == 0) {
      EXPECT_EQ(swizzled[i], 0) << i;
    }
  }
}

TEST(Swizzle, RefusesWhatDoesNotFit) {
  unsigned char rows[64] = {}, swizzled[512] = {};
  EXPECT_EQ(gemvjit_swizzle_blockscale(rows, 16, 64, swizzled, 512), GEMVJIT_OK);
  EXPECT_EQ(gemvjit_swizzle_blockscale(rows, 16, 64, swizzled, 511), GEMVJIT_INVALID_ARGUMENT);
  EXPECT_TRUE(last_error_has("512"));
  EXPECT_EQ(gemvjit_swizzle_blockscale(rows, 16, 60, swizzled, 512), GEMVJIT_INVALID_SHAPE);
  EXPECT_EQ(gemvjit_swizzle_blockscale(rows, 0, 64, swizzled, 512), GEMVJIT_INVALID_SHAPE);
  EXPECT_EQ(gemvjit_swizzle_blockscale(rows, INT64_MAX, INT64_MAX - 15, swizzled, 512), GEMVJIT_INVALID_SHAPE);
  EXPECT_EQ(gemvjit_swizzle_blockscale(nullptr, 16, 64, swizzled, 512), GEMVJIT_INVALID_ARGUMENT);
  EXPECT_EQ(gemvjit_swizzle_blockscale(rows, 16, 64, nullptr, 512), GEMVJIT_INVALID_ARGUMENT);
  EXPECT_EQ(gemvjit_swizzled_scale_bytes(-1, 64), 0u);
  EXPECT_EQ(gemvjit_swizzled_scale_bytes(INT64_MAX, INT64_MAX), 0u);
  EXPECT_EQ(gemvjit_swizzled_scale_bytes(8, 16), 512u);
}

}  // namespace
}  // namespace gemvjit::test
