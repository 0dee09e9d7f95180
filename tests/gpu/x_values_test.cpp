// Activations far from 1, NaN among them, and where x lies, for every way that x and weights travel.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <ostream>

#include "kernels/shared/gemv_geometry.h"
#include "src/catalog/catalog.h"
#include "tests/support/gpu_fixture.h"
#include "tools/verification/number_formats.h"

namespace gemvjit::test {
namespace {

// K fits no step, and for two tokens it is more than dealt x holds at a time.
struct Way {
  const char* name;
  TileConfig tile;
  std::int64_t n = 128, k = 9248;
};
void PrintTo(const Way& way, std::ostream* out) { *out << way.name; }

class XValuesTest : public GpuTest, public testing::WithParamInterface<Way> {
 protected:
  static ProblemShape shape(std::int64_t m) { return {GEMVJIT_NVFP4_GEMV, m, GetParam().n, GetParam().k, false}; }
  // One, two and more tokens; all sizes of the token tiles for the variant whose x has a layout for each.
  static std::vector<std::int64_t> tokens() {
    if (GetParam().tile.variant == kWgmmaVariant) return {1, 2, 5, 12, 20};
    return {1, 2, 5};
  }
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
  for (const std::int64_t m : tokens()) {
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
  for (const std::int64_t m : tokens()) {
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

// Inf times 0 is NaN, Inf times anything else Inf, for its token alone.
TEST_P(XValuesTest, InfIsOfItsTokenAlone) {
  for (const std::int64_t m : tokens()) {
    HostProblem problem = random_problem(shape(m), 95, 0xFF);
    problem.x[static_cast<std::size_t>((m - 1) * problem.shape.x_stride + 1234)] = 0xff80;
    const auto out = check(problem, kPdl, "Inf");
    ASSERT_FALSE(out.empty());
    const auto is_inf = [](std::uint16_t bits) { return (bits & 0x7fff) == 0x7f80; };
    const auto last = out.end() - problem.columns();
    EXPECT_EQ(std::count_if(out.begin(), last, is_inf) + std::count_if(out.begin(), last, reference::bf16_is_nan), 0);
    EXPECT_GT(std::count_if(last, out.end(), is_inf), problem.columns() / 2);
  }
}

TEST_P(XValuesTest, OddBaseAndStrideGiveTheSameBits) {
  for (const std::int64_t m : tokens()) {
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

// A shape that cannot have the tile would silently get another one. Needs no device.
class XValuesShapes : public testing::TestWithParam<Way> {};

TEST_P(XValuesShapes, CanHaveTheTile) {
  const Way& way = GetParam();
  for (const int nt : {1, 2, 4}) {
    if (nt > 1 && way.tile.variant != kWgmmaVariant) continue;
    const auto key = make_key({Family::nvfp4_gemv, way.n, way.k, false, true}, nt, way.tile, true, {90, 'a'});
    EXPECT_TRUE(key) << key.status().message();
  }
}

const auto kWays = testing::Values(
    Way{"direct", {.warps_k = 8, .stages = 2}}, Way{"async", {.variant = 1, .warps_k = 8, .stages = 3}},
    Way{"staged", {.variant = 1, .warps_k = 8, .stages = 3, .x_path = 3}},
    Way{"ring", {.variant = 1, .warps_k = 8, .stages = 2, .x_path = kXRing}},
    Way{"dealt_direct", {.warps_k = 8, .row_tiles = 2, .stages = 2, .x_path = kXDealt}},
    Way{"dealt_async", {.variant = 1, .warps_k = 4, .warps_n = 2, .stages = 3, .x_path = kXDealt}},
    // In chunks with several row groups a CTA, and in a cluster; 8 rows at the end.
    Way{"dealt_rounds", {.warps_k = 4, .stages = 2, .x_path = kXDealt, .rounds = 3}, 136},
    Way{"dealt_cluster", {.warps_k = 4, .cluster_k = 2, .stages = 2, .x_path = kXDealt}, 128, 18496},
    Way{"dealt_async_cluster_rounds",
        {.variant = 1, .warps_k = 8, .cluster_k = 2, .stages = 2, .x_path = kXDealt, .rounds = 2},
        128,
        18496},
    Way{"wgmma", {.variant = 2, .warps_k = 2, .warps_n = 4, .stages = 2, .x_path = 3}},
    Way{"wgmma_tail", {.variant = 2, .warps_k = 2, .warps_n = 4, .stages = 2, .x_path = 4}, 136},
    Way{"wgmma_cluster_rounds",
        {.variant = 2, .warps_k = 1, .warps_n = 4, .cluster_k = 2, .stages = 2, .x_path = 3, .rounds = 2},
        136});

std::string name_of(const testing::TestParamInfo<Way>& way) { return way.param.name; }
INSTANTIATE_TEST_SUITE_P(Ways, XValuesTest, kWays, name_of);
INSTANTIATE_TEST_SUITE_P(Ways, XValuesShapes, kWays, name_of);

}  // namespace
}  // namespace gemvjit::test
