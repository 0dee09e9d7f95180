// B76: a sealed service that meets a shape it was not warmed for says so at once, to whoever watches, and compiles
// nothing.
#include <algorithm>
#include <chrono>

#include "tests/api/api_fixture.h"

namespace gemvjit::test {
namespace {

class MissEvent : public ApiTest {
 protected:
  MissEvent() {
    options.on_launch_miss = [this](const LaunchMiss& miss) { misses.push_back(miss); };
    misses.reserve(20'000);
  }
  std::vector<LaunchMiss> misses;
};

TEST_F(MissEvent, SaysWhatWasMissed) {
  gemvjit_context* const context = open();
  gemvjit_problem nt1 = problem(GEMVJIT_NVFP4_GEMV, 1024, 1024);
  nt1.nt = 1;
  ASSERT_EQ(warm(context, {nt1}), GEMVJIT_OK);
  gemvjit_nvfp4_gemv_args args = nvfp4_args(5, 1024, 1024);
  EXPECT_EQ(gemvjit_nvfp4_gemv(context, &args, nullptr), GEMVJIT_OK);
  EXPECT_TRUE(misses.empty());

  args.m = 9;  // no nt covers it
  EXPECT_EQ(gemvjit_nvfp4_gemv(context, &args, nullptr), GEMVJIT_M_NOT_COVERED);
  args.m = 3;
  args.silu_mul = 1;
  EXPECT_EQ(gemvjit_nvfp4_gemv(context, &args, nullptr), GEMVJIT_NOT_READY);
  ASSERT_EQ(gemvjit_seal(context), GEMVJIT_OK);
  const gemvjit_bf16_gemv_args bf16 = bf16_args(2, 512, 256);
  EXPECT_EQ(gemvjit_bf16_gemv(context, &bf16, nullptr), GEMVJIT_NOT_READY);

  ASSERT_EQ(misses.size(), 3u);
  EXPECT_EQ(misses[0].code, StatusCode::m_not_covered);
  EXPECT_EQ(misses[0].m, 9);
  EXPECT_FALSE(misses[0].sealed);
  EXPECT_EQ(misses[1].shape, (LaunchShape{1024, 1024, Family::nvfp4_gemv, true, true, false}));
  EXPECT_EQ(misses[2].shape, (LaunchShape{512, 256, Family::bf16_gemv, false, true, false}));
  EXPECT_EQ(misses[2].m, 2);
  EXPECT_TRUE(misses[2].sealed);
}

// A shape that no kernel can have is the caller's mistake, and no miss.
TEST_F(MissEvent, AWrongShapeIsNone) {
  gemvjit_context* const context = open();
  const gemvjit_nvfp4_gemv_args args = nvfp4_args(1, 1023, 1024);
  EXPECT_EQ(gemvjit_nvfp4_gemv(context, &args, nullptr), GEMVJIT_INVALID_SHAPE);
  EXPECT_TRUE(misses.empty());
  gemvjit_stats_data stats{};
  stats.struct_size = sizeof stats;
  ASSERT_EQ(gemvjit_stats(context, &stats), GEMVJIT_OK);
  EXPECT_EQ(stats.launch_misses, 0u);
}

// Under 10 us, message and event included: the fastest of many, since a busy machine takes the thread away at times.
TEST_F(MissEvent, AMissAfterTheSealTakesMicroseconds) {
  gemvjit_context* const context = open();
  ASSERT_EQ(warm(context, {problem(GEMVJIT_NVFP4_GEMV, 1024, 1024)}), GEMVJIT_OK);
  ASSERT_EQ(gemvjit_seal(context), GEMVJIT_OK);
  const gemvjit_nvfp4_gemv_args args = nvfp4_args(1, 2048, 2048);
  recording.forget_calls();
  std::vector<double> microseconds;
  for (int i = 0; i < 2000; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    const gemvjit_status status = gemvjit_nvfp4_gemv(context, &args, nullptr);
    microseconds.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count());
    ASSERT_EQ(status, GEMVJIT_NOT_READY);
  }
  std::nth_element(microseconds.begin(), microseconds.begin() + 1000, microseconds.end());
#ifdef GEMVJIT_BUILT_WITH_SANITIZER
  constexpr double limit = 100;
#else
  constexpr double limit = 10;
#endif
  EXPECT_LT(microseconds[1000], limit);
  EXPECT_EQ(misses.size(), 2000u);
  EXPECT_TRUE(recording.calls().empty());  // the driver is not asked
  gemvjit_stats_data stats{};
  stats.struct_size = sizeof stats;
  ASSERT_EQ(gemvjit_stats(context, &stats), GEMVJIT_OK);
  EXPECT_EQ(stats.launch_misses, 2000u);
  EXPECT_EQ(compilers.compiled().size(), 3u);  // the warmup's own
}

}  // namespace
}  // namespace gemvjit::test
