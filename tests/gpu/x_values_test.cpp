// Activations far from 1, NaN among them, and where x lies, for every way that x and weights travel.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <ostream>

#include "kernels/shared/gemv_geometry.h"
#include "tests/support/gpu_fixture.h"
#include "tools/verification/number_formats.h"

namespace gemvjit::test {
namespace {

struct Way {
  const char* name;
  TileConfig tile;
};
void PrintTo(const Way& way, std::ostream* out) { *out << way.name; }

class XValuesTest : public GpuTest, public testing::WithParamInterface<Way> {
 protected:
  // K fits no step, and for two tokens it is more than dealt x holds at a time.
  static ProblemShape shape(std::int64_t m) { return {GEMVJIT_NVFP4_GEMV, m, 128, 9248, false}; }
  static std::vector<std::uint16_t> check(const HostProblem& problem, const RunOptions& options, const char* what) {
    GpuContext context(&GetParam().tile);
    if (context.get() == nullptr) return {};  // a failure already
    context.add(problem.shape, nt_of(problem.shape.m), true);
    if (!context.warm()) return {};
    return run_checked(context, problem, problem.expected(), options, what);
  }
  // Multiplies a token's x by 2^up, exactly.
  static void scale_token(HostProblem& problem, std::int64_t token, int up) {
    for (std::int64_t k = 0; k < problem.shape.k; ++k) {
      std::uint16_t& x = problem.x[static_cast<std::size_t>(token * problem.shape.x_stride + k)];
      if ((x & 0x7f80) == 0) continue;
      const int exponent = (x >> 7 & 0xff) + up;
      ASSERT_TRUE(exponent > 0 && exponent < 255);
      x = static_cast<std::uint16_t>((x & 0x807f) | exponent << 7);
    }
  }
};

// FP32 sums of 9248 products have room for this much on both sides; the global scale brings the result back.
TEST_P(XValuesTest, LargeAndSmall) {
  for (const std::int64_t m : {1, 2, 5}) {
    for (const int up : {100, 40, -40, -90}) {
      HostProblem problem = random_problem(shape(m), 91, 0xFF);
      for (std::int64_t token = 0; token < m; ++token) scale_token(problem, token, up);
      problem.global_scale = std::ldexp(1.0f, -up);
      check(problem, kPdl, ("2^" + std::to_string(up)).c_str());
    }
  }
}

// A token's result does not depend on its neighbours'.
TEST_P(XValuesTest, TokensOfDifferentSize) {
  for (const std::int64_t m : {2, 5}) {
    HostProblem problem = random_problem(shape(m), 92, 0xFF);
    problem.global_scale = 1;
    const auto alike = check(problem, kPdl, "alike");
    scale_token(problem, 0, 80);
    const auto apart = check(problem, kPdl, "apart");
    ASSERT_EQ(alike.size(), apart.size());
    EXPECT_TRUE(std::equal(alike.begin() + problem.columns(), alike.end(), apart.begin() + problem.columns()));
  }
}

TEST_P(XValuesTest, NanIsOfItsTokenAndItsRowAlone) {
  for (const std::int64_t m : {1, 2, 5}) {
    HostProblem problem = random_problem(shape(m), 93, 0xFF);
    problem.x[static_cast<std::size_t>((m - 1) * problem.shape.x_stride + 4321)] = 0x7fc1;
    // A NaN scale in row 17, 3 blocks before the end.
    problem.scales[reference::scale_offset(17, problem.shape.k / 16 - 3, problem.shape.k)] = 0x7f;
    const auto out = check(problem, kPdl, "NaN");
    ASSERT_FALSE(out.empty());
    const auto nans = std::count_if(out.begin(), out.end(), reference::bf16_is_nan);
    EXPECT_EQ(nans, problem.columns() + (m - 1)) << "the last token, and one row of the others";
  }
}

TEST_P(XValuesTest, OddBaseAndStrideGiveTheSameBits) {
  for (const std::int64_t m : {1, 2, 5}) {
    const HostProblem problem = random_problem(shape(m), 94, 0xFF);
    const auto aligned = check(problem, kPdl, "aligned");
    ProblemShape strided = shape(m);
    strided.x_stride = strided.k + 3;
    HostProblem odd = problem;
    odd.shape.x_stride = strided.x_stride;
    odd.x.assign(static_cast<std::size_t>(m * strided.x_stride), 0xFFFF);
    for (std::int64_t token = 0; token < m; ++token) {
      std::copy_n(problem.x.begin() + token * problem.shape.x_stride, problem.shape.k,
                  odd.x.begin() + token * strided.x_stride);
    }
    EXPECT_EQ(check(odd, {true, {6, 2}}, "odd"), aligned);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Ways, XValuesTest,
    testing::Values(Way{"direct", {.warps_k = 8, .stages = 2}}, Way{"async", {.variant = 1, .warps_k = 8, .stages = 3}},
                    Way{"staged", {.variant = 1, .warps_k = 8, .stages = 3, .x_path = 3}},
                    Way{"ring", {.variant = 1, .warps_k = 8, .stages = 2, .x_path = kXRing}},
                    Way{"dealt_direct", {.warps_k = 8, .row_tiles = 2, .stages = 2, .x_path = kXDealt}},
                    Way{"dealt_async", {.variant = 1, .warps_k = 4, .warps_n = 2, .stages = 3, .x_path = kXDealt}},
                    Way{"wgmma", {.variant = 2, .warps_k = 2, .warps_n = 4, .stages = 2, .x_path = 3}}),
    [](const auto& way) { return way.param.name; });

}  // namespace
}  // namespace gemvjit::test
