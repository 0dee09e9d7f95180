// B125. The global scale is applied to the FP32 sum: far from 1 it costs no bit of the block scales. Powers of two show
// it best, since the result is then the one for 1 with another exponent, bit for bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/gpu_fixture.h"
#include "tools/verification/number_formats.h"

namespace gemvjit::test {
namespace {

constexpr int kPowers[] = {-20, 20};

// A value times 2^power: exact, as long as neither leaves the normal numbers.
std::uint16_t times_power(std::uint16_t bits, int power) {
  return reference::bf16_bits(std::ldexp(double{reference::bf16_to_float(bits)}, power));
}

class GlobalScale : public GpuTest {
 protected:
  static ProblemShape shape(std::int64_t m, bool silu_mul) { return {GEMVJIT_NVFP4_GEMV, m, 272, 1040, silu_mul}; }
};

TEST_F(GlobalScale, TwoToTheMinus20And20ScaleTheResultExactly) {
  TileConfig cluster;
  cluster.warps_k = 4, cluster.cluster_k = 4, cluster.stages = 2;
  TileConfig dealt;
  dealt.stages = 2, dealt.x_path = kXDealt;
  const TileConfig* const tiles[] = {nullptr, &cluster, &dealt};
  for (const TileConfig* tile : tiles) {
    GpuContext context(tile);
    for (const std::int64_t m : {2, 13, 32}) context.add(shape(m, false), nt_of(m), true);
    ASSERT_TRUE(context.warm());
    for (const std::int64_t m : {2, 13, 32}) {
      HostProblem problem = random_problem(shape(m, false), 25, 0xFF);
      problem.global_scale = 1;
      const auto plain = run_checked(context, problem, problem.expected(), kPdl, "global scale 1");
      ASSERT_FALSE(plain.empty());
      for (const int power : kPowers) {
        for (const float sign : {1.f, -1.f}) {
          problem.global_scale = std::ldexp(sign, power);
          const std::string what = "global scale " + std::to_string(problem.global_scale);
          auto want = plain;
          for (std::uint16_t& bits : want)
            bits = static_cast<std::uint16_t>(times_power(bits, power) ^ (sign < 0 ? 0x8000 : 0));
          EXPECT_EQ(run_checked(context, problem, problem.expected(), kPdl, what), want) << what;
        }
      }
    }
  }
}

// Gate and up are rounded to BF16 with the global scale in them, and SiLU is not linear: within bounds, and no NaN
// where the gate's exponential has no room.
TEST_F(GlobalScale, TwoToTheMinus20And20WithSiluMul) {
  GpuContext context;
  for (const std::int64_t m : {2, 13, 32}) context.add(shape(m, true), nt_of(m), true);
  ASSERT_TRUE(context.warm());
  for (const std::int64_t m : {2, 13, 32}) {
    HostProblem problem = random_problem(shape(m, true), 26, 0xFF);
    for (const int power : kPowers) {
      problem.global_scale = std::ldexp(1.f, power);
      (void)run_checked(context, problem, problem.expected(), kPdl, "2^" + std::to_string(power));
    }
  }
}

// As ranges of rows of one weight, where the kernel reads the scale in another way.
TEST_F(GlobalScale, TwoToTheMinus20And20SideBySide) {
  const ProblemShape both = shape(5, false);
  HostProblem problem = random_problem(both, 27, 0xFF);
  problem.global_scale = 1;
  GpuContext context;
  context.add(both, 1, true);
  context.add(both, 1, true, true);
  ASSERT_TRUE(context.warm());
  auto want = run_checked(context, problem, problem.expected(), kPdl, "global scale 1");
  ASSERT_FALSE(want.empty());
  const std::int64_t middle = 136;
  for (std::size_t i = 0; i < want.size(); ++i) {
    want[i] = times_power(want[i], kPowers[static_cast<std::int64_t>(i) % both.n < middle ? 0 : 1]);
  }
  const float values[] = {std::ldexp(1.f, kPowers[0]), std::ldexp(1.f, kPowers[1])};
  auto device = DeviceProblem::create(gpu(), problem);
  auto scales = DeviceBuffer::from(gpu(), std::span<const float>(values));
  ASSERT_TRUE(device && scales);
  device->use_segments({{middle, scales->as<float>()}, {both.n, scales->as<float>() + 1}});
  ASSERT_EQ(device->launch(context.get(), stream(), true), GEMVJIT_OK) << gemvjit_last_error();
  synchronize();
  const auto got = device->output();
  ASSERT_TRUE(got);
  EXPECT_EQ(*got, want);
}

// Negative control, without a device: the global scale folded into the block scales, which are E4M3, is far out of
// bounds. 2^-20 leaves nothing of them, 2^20 makes each the largest there is.
TEST(GlobalScaleControl, FoldedIntoTheBlockScalesItIsOutOfBounds) {
  for (const int power : kPowers) {
    HostProblem problem = random_problem({GEMVJIT_NVFP4_GEMV, 2, 48, 256, false}, 28);
    problem.global_scale = std::ldexp(1.f, power);
    const reference::Expected expected = problem.expected();
    HostProblem folded = problem;
    folded.global_scale = 1;
    for (std::uint8_t& scale : folded.scales) scale = power < 0 || scale == 0 ? 0 : 0x7E;
    const reference::Expected wrong = folded.expected();
    std::vector<std::uint16_t> bits(wrong.value.size());
    std::transform(wrong.value.begin(), wrong.value.end(), bits.begin(), reference::bf16_bits);
    const reference::Comparison comparison = reference::compare(expected, bits);
    EXPECT_FALSE(comparison.within_bounds) << power;
    EXPECT_GT(comparison.bad, static_cast<std::int64_t>(bits.size() * 9 / 10)) << power;
  }
}

}  // namespace
}  // namespace gemvjit::test
