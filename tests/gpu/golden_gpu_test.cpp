// The golden cases through the kernels: every nt that covers M, with and without PDL, and the same mistakes as in
// tests/reference/golden_test.cpp fed to the kernel, which must show. B119, B122: both layouts of scales, both
// conventions of the global scale, with results that were made from the formats' definitions.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/gpu_fixture.h"
#include "tools/verification/number_formats.h"

namespace gemvjit::test {
namespace {

class GoldenGpuTest : public GpuTest, public testing::WithParamInterface<std::string> {
 protected:
  const GoldenCase golden_ = load_golden(GetParam());
};

TEST_P(GoldenGpuTest, EveryCoveringNtAndPdl) {
  const HostProblem problem = problem_of(golden_);
  {
    GpuContext compile_all;  // at once; the contexts of one nt then find it in the cache
    compile_all.add(problem.shape, 0, true);
    compile_all.add(problem.shape, 0, false);
    ASSERT_TRUE(compile_all.warm());
  }
  for (const int nt : {1, 2, 4}) {
    if (nt < nt_of(golden_.m)) continue;
    GpuContext context;
    context.add(problem.shape, nt, true);
    context.add(problem.shape, nt, false);
    ASSERT_TRUE(context.warm());
    const std::string what = GetParam() + " nt " + std::to_string(nt);
    const auto plain = run_checked(context, problem, golden_.expected, kPlain, what);
    EXPECT_EQ(plain, run_checked(context, problem, golden_.expected, kPlain, what)) << "two runs differ";
    EXPECT_EQ(plain, run_checked(context, problem, golden_.expected, kPdl, what)) << "PDL changes bits";
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, GoldenGpuTest, testing::ValuesIn(golden_names()),
                         [](const auto& p) { return p.param; });

std::vector<std::string> nvfp4_names() {
  std::vector<std::string> names = golden_names();
  std::erase_if(names, [](const std::string& name) { return !name.starts_with("nvfp4"); });
  return names;
}

// Inputs that are wrong on purpose: the comparison must fail, or it proves nothing where it passes.
class GoldenGpuNegativeControl : public GpuTest, public testing::WithParamInterface<std::string> {
 protected:
  void expect_caught(const HostProblem& problem, const std::string& what) {
    GpuContext context;
    context.add(problem.shape, nt_of(problem.shape.m), true);
    ASSERT_TRUE(context.warm());
    const auto output = run(context, problem, {}, what);
    ASSERT_FALSE(output.empty());
    EXPECT_FALSE(reference::compare(golden_.expected, output).within_bounds) << what << " was not seen";
  }
  const GoldenCase golden_ = load_golden(GetParam());
};

TEST_P(GoldenGpuNegativeControl, SwappedNibbles) {
  HostProblem problem = problem_of(golden_);
  for (auto& byte : problem.weight) byte = static_cast<std::uint8_t>(byte << 4 | byte >> 4);
  expect_caught(problem, "swapped nibbles");
}

TEST_P(GoldenGpuNegativeControl, UnswizzledScales) {
  HostProblem problem = problem_of(golden_);
  std::fill(problem.scales.begin(), problem.scales.end(), std::uint8_t{0});
  std::copy(golden_.row_scales.begin(), golden_.row_scales.end(), problem.scales.begin());
  expect_caught(problem, "row-major scales");
}

TEST_P(GoldenGpuNegativeControl, ScalesShiftedByOneBlock) {
  HostProblem problem = problem_of(golden_);
  const std::int64_t columns = golden_.k / 16;
  for (std::int64_t row = 0; row < golden_.n; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      problem.scales[reference::scale_offset(row, column, golden_.k)] =
          golden_.row_scales[row * columns + (column + 1) % columns];
    }
  }
  expect_caught(problem, "shifted scales");
}

TEST_P(GoldenGpuNegativeControl, GlobalScaleTakenAsDivisor) {
  HostProblem problem = problem_of(golden_);
  problem.global_scale = 1 / problem.global_scale;
  expect_caught(problem, "reciprocal global scale");
}

INSTANTIATE_TEST_SUITE_P(Cases, GoldenGpuNegativeControl, testing::ValuesIn(nvfp4_names()),
                         [](const auto& p) { return p.param; });

// BF16 as well: one weight of one row.
TEST_F(GpuTest, Bf16SeesOneWrongWeight) {
  const GoldenCase golden = load_golden("bf16_m12");
  HostProblem problem = problem_of(golden);
  problem.weight[1] ^= 0x80;  // the sign of weight [0, 0]
  GpuContext context;
  context.add(problem.shape, 2, true);
  ASSERT_TRUE(context.warm());
  const auto output = run(context, problem, {}, "one wrong sign");
  const reference::Comparison comparison = reference::compare(golden.expected, output);
  EXPECT_FALSE(comparison.within_bounds);
  EXPECT_LE(comparison.bad, golden.m) << "only column 0 may be wrong";
}

}  // namespace
}  // namespace gemvjit::test
