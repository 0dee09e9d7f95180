// Where tensors lie and what surrounds them must not matter: bases, strides, padding, poison, NaN scales.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "tests/support/gpu_fixture.h"
#include "tools/verification/number_formats.h"

namespace gemvjit::test {
namespace {

class MemoryLayoutTest : public GpuTest, public testing::WithParamInterface<gemvjit_family> {};

HostProblem with_stride(const HostProblem& from, std::int64_t stride) {
  HostProblem to = from;
  to.shape.x_stride = stride;
  to.x.assign(static_cast<std::size_t>(from.shape.m * stride), 0xFFFF);
  for (std::int64_t i = 0; i < from.shape.m; ++i) {
    for (std::int64_t j = 0; j < from.shape.k; ++j) to.x[i * stride + j] = from.x[i * from.shape.x_stride + j];
  }
  return to;
}

// B134: x and out at every even distance from 16 bytes, 2, 4 and 8 among them, and rows of x that begin at odd
// elements.
TEST_P(MemoryLayoutTest, OddBasesAndStridesGiveTheSameBits) {
  for (const bool silu_mul : {false, true}) {
    // One K that fits the fast path and one that does not.
    for (const std::int64_t k : {512, 432}) {
      const ProblemShape shape{GetParam(), 13, 80, k, silu_mul};
      const HostProblem problem = random_problem(shape, 5, 0xFF);
      const reference::Expected expected = problem.expected();
      GpuContext context;
      context.add(shape, 2, true);
      ASSERT_TRUE(context.warm());
      const auto aligned = run_checked(context, problem, expected, {}, "aligned");
      for (std::size_t x_offset = 0; x_offset < 16; x_offset += 2) {
        for (const std::int64_t stride : {k, k + 1, k + 2, k + 7, k + 8, 2 * k + 3}) {
          const std::size_t out_offset = (x_offset * 3 + static_cast<std::size_t>(stride) * 2) % 16;
          const auto output = run_checked(context, with_stride(problem, stride), expected,
                                          {true, {x_offset, out_offset}}, "x + " + std::to_string(x_offset));
          EXPECT_EQ(output, aligned) << "x + " << x_offset << ", out + " << out_offset << ", stride " << stride;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Families, MemoryLayoutTest, testing::Values(GEMVJIT_NVFP4_GEMV, GEMVJIT_BF16_GEMV),
                         [](const auto& p) { return p.param == GEMVJIT_NVFP4_GEMV ? "nvfp4" : "bf16"; });

class ScalePaddingTest : public GpuTest {};

// B116.
TEST_F(ScalePaddingTest, ContentDoesNotMatter) {
  struct Shape {
    std::int64_t n, k;
  };
  // Padding rows only, padding columns only, both, and a K whose tail is half a step.
  for (const Shape& s : {Shape{72, 256}, Shape{128, 336}, Shape{200, 80}, Shape{8, 16}, Shape{136, 1504}}) {
    for (const bool silu_mul : {false, true}) {
      if (silu_mul && s.n % 16 != 0) continue;
      const ProblemShape shape{GEMVJIT_NVFP4_GEMV, 9, s.n, s.k, silu_mul};
      const HostProblem clean = random_problem(shape, 11, 0x00);
      const reference::Expected expected = clean.expected();
      GpuContext context;
      context.add(shape, 2, true);
      ASSERT_TRUE(context.warm());
      const auto bits = run_checked(context, clean, expected, {}, "zero padding");
      for (const int padding : {0xFF, 0x7F, 0x7E, 0x80}) {
        const HostProblem dirty = random_problem(shape, 11, static_cast<std::uint8_t>(padding));
        EXPECT_EQ(bits, run_checked(context, dirty, expected, {}, "padding " + std::to_string(padding)));
      }
    }
  }
}

TEST_F(ScalePaddingTest, DequantizeIgnoresItToo) {
  for (const std::int64_t k : {16, 80, 336, 1504}) {
    const std::int64_t n = 41;  // any N is good for dequantize_rows
    const HostProblem problem = random_problem({GEMVJIT_NVFP4_GEMV, 0, n, k, false}, 3, 0xFF);
    const auto output = dequantize(problem, true);
    EXPECT_EQ(output, reference::dequantize(problem.nvfp4_weight())) << "K=" << k;
    EXPECT_EQ(output, dequantize(problem, false)) << "K=" << k << ": PDL changes bits";
  }
}

class NanScaleTest : public GpuTest {};

// B124: what one NaN among the scales may do.
TEST_F(NanScaleTest, PoisonsJustItsRows) {
  for (const int code : {0x7F, 0xFF}) {
    for (const bool silu_mul : {false, true}) {
      const ProblemShape shape{GEMVJIT_NVFP4_GEMV, 17, 160, 1056, silu_mul};
      HostProblem problem = random_problem(shape, 21, 0);
      // First and last block, and one in the middle; codes of that block may be zero and still give NaN.
      for (const auto& [row, block] : {std::pair{3, 0}, {40, 65}, {95, 31}, {159, 33}}) {
        problem.scales[reference::scale_offset(row, block, shape.k)] = static_cast<std::uint8_t>(code);
        for (int byte = 0; byte < 8; ++byte) problem.weight[row * shape.k / 2 + block * 8 + byte] = 0;
      }
      const reference::Expected expected = problem.expected();
      const auto nans =
          std::count_if(expected.value.begin(), expected.value.end(), [](double v) { return std::isnan(v); });
      ASSERT_EQ(nans, 4 * shape.m);  // with silu_mul rows 3, 40, 15 (of 95) and 79 (of 159) of the 80
      for (const int nt : {4}) {
        GpuContext context;
        context.add(shape, nt, true);
        ASSERT_TRUE(context.warm());
        (void)run_checked(context, problem, expected, {}, "scale " + std::to_string(code));
      }
    }
  }
}

class DequantizeTest : public GpuTest {};

void expect_same_or_nan(const std::vector<std::uint16_t>& got, const std::vector<std::uint16_t>& want,
                        const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (reference::bf16_is_nan(want[i])) {
      ASSERT_TRUE(reference::bf16_is_nan(got[i])) << what << ", element " << i;
    } else {
      ASSERT_EQ(got[i], want[i]) << what << ", element " << i;
    }
  }
}

// Row s holds all 16 codes under scale byte s; the result is the table of products, -0 included.
TEST_F(DequantizeTest, AllProductsBitExactly) {
  HostProblem problem = random_problem({GEMVJIT_NVFP4_GEMV, 0, 256, 16, false}, 1, 0xFF);
  std::vector<std::uint8_t> row_scales(256);
  for (unsigned scale = 0; scale < 256; ++scale) {
    row_scales[scale] = static_cast<std::uint8_t>(scale);
    for (unsigned byte = 0; byte < 8; ++byte) {
      problem.weight[scale * 8 + byte] = static_cast<std::uint8_t>((2 * byte + 1) << 4 | 2 * byte);
    }
  }
  problem.scales = reference::swizzle_scales(row_scales, 256, 16, 0xFF);
  const std::vector<std::uint16_t> want = golden_products();
  ASSERT_EQ(want[0x38 * 16 + 8], 0x8000) << "1 * -0 is -0";
  expect_same_or_nan(dequantize(problem, true), want, "products");
}

TEST_F(DequantizeTest, GoldenCases) {
  for (const std::string& name : golden_names()) {
    const GoldenCase golden = load_golden(name);
    if (golden.nvfp4) expect_same_or_nan(dequantize(problem_of(golden), true), golden.dequantized, name);
  }
}

// The GEMV's own decoder on every scale and code: a one-hot x picks one weight of each row, and one product is exact in
// FP32, so the result is the product times the global scale, rounded once.
TEST_F(DequantizeTest, GemvDecodesAllProductsExactly) {
  HostProblem problem = random_problem({GEMVJIT_NVFP4_GEMV, 16, 256, 16, false}, 1, 0xFF);
  problem.global_scale = 1;
  std::fill(problem.x.begin(), problem.x.end(), std::uint16_t{0});
  std::vector<std::uint8_t> row_scales(256);
  for (unsigned scale = 0; scale < 256; ++scale) row_scales[scale] = static_cast<std::uint8_t>(scale);
  for (unsigned code = 0; code < 16; ++code) problem.x[code * 16 + code] = 0x3F80;
  for (unsigned row = 0; row < 256; ++row) {
    for (unsigned byte = 0; byte < 8; ++byte) {
      problem.weight[row * 8 + byte] = static_cast<std::uint8_t>((2 * byte + 1) << 4 | 2 * byte);
    }
  }
  problem.scales = reference::swizzle_scales(row_scales, 256, 16, 0xFF);
  GpuContext context;
  context.add(problem.shape, 2, true);
  ASSERT_TRUE(context.warm());
  const auto output = run(context, problem, {}, "one-hot");
  const std::vector<std::uint16_t> products = golden_products();
  ASSERT_EQ(output.size(), 16u * 256u);
  for (unsigned code = 0; code < 16; ++code) {
    for (unsigned scale = 0; scale < 256; ++scale) {
      const std::uint16_t want = products[scale * 16 + code], got = output[code * 256 + scale];
      if (reference::bf16_is_nan(want)) {
        ASSERT_TRUE(reference::bf16_is_nan(got)) << scale << " " << code;
      } else {
        ASSERT_EQ(reference::bf16_to_float(got), reference::bf16_to_float(want)) << scale << " " << code;
      }
    }
  }
}

}  // namespace
}  // namespace gemvjit::test
