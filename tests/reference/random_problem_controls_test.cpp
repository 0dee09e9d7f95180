// Negative controls of the tests that run random problems on a device (tests/gpu: edges, tile sweep, x values, memory
// layout, large, graphs, warm and launch): what these compare with must catch each classic mistake, on problems made
// as theirs are. Here the float64 reference plays the device, so that no GPU is needed.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "tests/support/gpu_problem.h"
#include "tools/verification/number_formats.h"

namespace gemvjit::test {
namespace {

using Mistake = std::function<void(HostProblem&)>;

std::vector<std::uint16_t> rounded(const reference::Expected& expected) {
  std::vector<std::uint16_t> out(expected.value.size());
  std::transform(expected.value.begin(), expected.value.end(), out.begin(), reference::bf16_bits);
  return out;
}

// Whether a device that makes the mistake would fail the comparison.
bool caught(const HostProblem& problem, const Mistake& mistake) {
  HostProblem wrong = problem;
  mistake(wrong);
  return !reference::compare(problem.expected(), rounded(wrong.expected())).within_bounds;
}

const ProblemShape kShapes[] = {
    {GEMVJIT_NVFP4_GEMV, 1, 8, 16, false},     {GEMVJIT_NVFP4_GEMV, 13, 80, 432, false},
    {GEMVJIT_NVFP4_GEMV, 32, 160, 1056, true}, {GEMVJIT_NVFP4_GEMV, 5, 128, 9248, false},
    {GEMVJIT_BF16_GEMV, 9, 80, 512, false},    {GEMVJIT_BF16_GEMV, 32, 48, 1504, true},
};

bool is_nvfp4(const ProblemShape& shape) { return shape.family == GEMVJIT_NVFP4_GEMV; }

TEST(RandomProblems, ARightResultPasses) {
  for (const ProblemShape& shape : kShapes) {
    EXPECT_FALSE(caught(random_problem(shape, 7, 0xFF), [](HostProblem&) {})) << shape.text();
  }
}

TEST(RandomProblems, WrongWeightsAreCaught) {
  for (const ProblemShape& shape : kShapes) {
    const HostProblem problem = random_problem(shape, 7, 0xFF);
    if (is_nvfp4(shape)) {
      EXPECT_TRUE(caught(problem,
                         [](HostProblem& p) {
                           for (auto& byte : p.weight) byte = static_cast<std::uint8_t>(byte << 4 | byte >> 4);
                         }))
          << "swapped nibbles, " << shape.text();
    }
    EXPECT_TRUE(caught(problem,
                       [](HostProblem& p) {
                         std::rotate(p.weight.begin(),
                                     p.weight.begin() + static_cast<std::ptrdiff_t>(p.weight.size()) / p.shape.n,
                                     p.weight.end());
                       }))
        << "rows moved by one, " << shape.text();
  }
}

TEST(RandomProblems, WrongScalesAreCaught) {
  for (const ProblemShape& shape : kShapes) {
    if (!is_nvfp4(shape)) continue;
    const HostProblem problem = random_problem(shape, 7, 0xFF);
    if (shape.n * shape.k > 128) {
      EXPECT_TRUE(caught(problem,
                         [](HostProblem& p) { std::copy(p.row_scales.begin(), p.row_scales.end(), p.scales.begin()); }))
          << "row-major scales, " << shape.text();
    }
    EXPECT_TRUE(caught(problem, [](HostProblem& p) { p.global_scale *= 1.0f + 1.0f / 32; }))
        << "a global scale 3 % off, " << shape.text();
    EXPECT_TRUE(
        caught(problem,
               [](HostProblem& p) {
                 const std::int64_t row = p.shape.n - 1;
                 p.scales[static_cast<std::size_t>(reference::scale_offset(row, p.shape.k / 16 - 1, p.shape.k))] = 0x7F;
               }))
        << "a NaN scale that is not expected, " << shape.text();
  }
}

TEST(RandomProblems, WrongActivationsAreCaught) {
  for (const ProblemShape& shape : kShapes) {
    const HostProblem problem = random_problem(shape, 7, 0xFF);
    EXPECT_TRUE(caught(problem,
                       [](HostProblem& p) {
                         std::swap_ranges(p.x.begin(), p.x.begin() + p.shape.k / 2, p.x.begin() + p.shape.k / 2);
                       }))
        << "halves of K exchanged, " << shape.text();
    if (shape.m > 1) {
      EXPECT_TRUE(caught(problem,
                         [](HostProblem& p) {
                           std::swap_ranges(p.x.begin(), p.x.begin() + p.shape.k, p.x.begin() + p.shape.x_stride);
                         }))
          << "tokens exchanged, " << shape.text();
    }
  }
}

// A single output that is one unit of BF16 too far off, for every shape.
TEST(RandomProblems, OneWrongElementIsCaught) {
  for (const ProblemShape& shape : kShapes) {
    const reference::Expected expected = random_problem(shape, 7, 0xFF).expected();
    auto out = rounded(expected);
    out.back() ^= 0x8000;
    out.back() |= 0x4000;
    EXPECT_FALSE(reference::compare(expected, out).within_bounds) << shape.text();
  }
}

}  // namespace
}  // namespace gemvjit::test
