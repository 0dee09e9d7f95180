// The reference against the golden cases, and controls that show the cases would catch the classic mistakes. B119,
// B122.
#include "tests/support/golden.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

#include "tools/verification/number_formats.h"
#include "tools/verification/reference.h"

namespace gemvjit {
namespace {

class GoldenReferenceTest : public testing::TestWithParam<std::string> {
 protected:
  const GoldenCase golden_ = load_golden(GetParam());
};

std::vector<std::uint16_t> rounded(const reference::Expected& expected) {
  std::vector<std::uint16_t> out(expected.value.size());
  std::transform(expected.value.begin(), expected.value.end(), out.begin(), reference::bf16_bits);
  return out;
}

TEST_P(GoldenReferenceTest, ValuesAndBoundsAgree) {
  const reference::Expected mine = golden_.recompute();
  ASSERT_EQ(mine.value.size(), golden_.expected.value.size());
  for (std::size_t i = 0; i < mine.value.size(); ++i) {
    const double want = golden_.expected.value[i], bound = golden_.expected.bound[i];
    if (std::isnan(want)) {
      ASSERT_TRUE(std::isnan(mine.value[i])) << i;
      continue;
    }
    // Float64 sums in another order; far below what BF16 could show.
    ASSERT_NEAR(mine.value[i], want, 1e-12 * std::max(bound, std::fabs(want))) << i;
    ASSERT_NEAR(mine.bound[i], bound, 1e-9 * bound) << i;
  }
}

TEST_P(GoldenReferenceTest, ItsOwnRoundedResultIsWithinBounds) {
  const reference::Comparison comparison = reference::compare(golden_.expected, rounded(golden_.recompute()));
  EXPECT_TRUE(comparison.within_bounds) << comparison.first_bad;
  EXPECT_GT(comparison.worst, 0);
}

TEST_P(GoldenReferenceTest, RowMajorScalesSwizzleToTheStoredOnes) {
  if (!golden_.nvfp4) return;  // no scales
  for (std::int64_t row = 0; row < golden_.n; ++row) {
    for (std::int64_t column = 0; column < golden_.k / 16; ++column) {
      ASSERT_EQ(golden_.scales[reference::scale_offset(row, column, golden_.k)],
                golden_.row_scales[row * (golden_.k / 16) + column]);
    }
  }
  reference::Nvfp4Weight row_major = golden_.nvfp4_weight();
  row_major.scales = golden_.row_scales.data();
  row_major.layout = reference::ScaleLayout::row_major;
  EXPECT_EQ(reference::dequantize(row_major), reference::dequantize(golden_.nvfp4_weight()));
}

TEST_P(GoldenReferenceTest, DequantizesBitExactly) {
  if (!golden_.nvfp4) return;  // nothing to dequantize
  const std::vector<std::uint16_t> mine = reference::dequantize(golden_.nvfp4_weight());
  for (std::size_t i = 0; i < mine.size(); ++i) {
    if (reference::bf16_is_nan(golden_.dequantized[i])) {
      ASSERT_TRUE(reference::bf16_is_nan(mine[i])) << i;
    } else {
      ASSERT_EQ(mine[i], golden_.dequantized[i]) << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, GoldenReferenceTest, testing::ValuesIn(golden_names()),
                         [](const auto& p) { return p.param; });

TEST(GoldenProducts, AllScalesTimesAllCodes) {
  const std::vector<std::uint16_t> products = golden_products();
  for (unsigned scale = 0; scale < 256; ++scale) {
    for (unsigned code = 0; code < 16; ++code) {
      const std::uint16_t want = products[scale * 16 + code];
      const double exact = reference::e4m3_value(scale) * reference::e2m1_value(code);
      if (std::isnan(exact)) {
        ASSERT_TRUE(reference::bf16_is_nan(want)) << scale << " " << code;
        continue;
      }
      ASSERT_EQ(reference::round_to_bf16(exact), exact) << "not exact in BF16: " << scale << " " << code;
      ASSERT_EQ(reference::bf16_bits(exact), want) << scale << " " << code;
    }
  }
}

// Each of these must be caught by every NVFP4 case.
class GoldenNegativeControl : public testing::TestWithParam<std::string> {
 protected:
  bool caught() const { return !reference::compare(golden_.expected, rounded(golden_.recompute())).within_bounds; }
  GoldenCase golden_ = load_golden(GetParam());
};

TEST_P(GoldenNegativeControl, SwappedNibbles) {
  for (auto& byte : golden_.codes) byte = static_cast<std::uint8_t>(byte << 4 | byte >> 4);
  EXPECT_TRUE(caught());
}

TEST_P(GoldenNegativeControl, UnswizzledScales) {
  // As if the checkpoint's buffer were handed over as it is; what lies behind it is zero.
  std::fill(golden_.scales.begin(), golden_.scales.end(), std::uint8_t{0});
  std::copy(golden_.row_scales.begin(), golden_.row_scales.end(), golden_.scales.begin());
  EXPECT_TRUE(caught());
}

TEST_P(GoldenNegativeControl, ScalesShiftedByOneBlock) {
  const std::int64_t columns = golden_.k / 16;
  for (std::int64_t row = 0; row < golden_.n; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      golden_.scales[reference::scale_offset(row, column, golden_.k)] =
          golden_.row_scales[row * columns + (column + 1) % columns];
    }
  }
  EXPECT_TRUE(caught());
}

TEST_P(GoldenNegativeControl, GlobalScaleTakenAsDivisor) {
  golden_.global_scale = 1 / golden_.global_scale;
  EXPECT_TRUE(caught());
}

TEST_P(GoldenNegativeControl, PaddingOfXCounted) {
  if (golden_.x_stride == golden_.k) return;  // no padding between rows
  golden_.x_stride = golden_.k;
  EXPECT_TRUE(caught());
}

std::vector<std::string> nvfp4_names() {
  std::vector<std::string> names = golden_names();
  std::erase_if(names, [](const std::string& name) { return !name.starts_with("nvfp4"); });
  return names;
}

INSTANTIATE_TEST_SUITE_P(Cases, GoldenNegativeControl, testing::ValuesIn(nvfp4_names()),
                         [](const auto& p) { return p.param; });

TEST(Compare, SeesOneWrongElement) {
  reference::Expected expected{1, 3, {1.0, std::nan(""), -2.0}, {0.01, 0.01, 0.01}};
  EXPECT_TRUE(reference::compare(expected, std::vector<std::uint16_t>{0x3F80, 0x7FC0, 0xC000}).within_bounds);
  EXPECT_FALSE(reference::compare(expected, std::vector<std::uint16_t>{0x3F80, 0x7FC0, 0x4000}).within_bounds);
  EXPECT_FALSE(reference::compare(expected, std::vector<std::uint16_t>{0x3F80, 0x3F80, 0xC000}).within_bounds);
  EXPECT_FALSE(reference::compare(expected, std::vector<std::uint16_t>{0x7FC0, 0x7FC0, 0xC000}).within_bounds);
  EXPECT_FALSE(reference::compare(expected, std::vector<std::uint16_t>{0x3F80, 0x7FC0}).within_bounds);
  // Inf is right only where it is expected, with its sign.
  reference::Expected infinite = expected;
  infinite.value[0] = infinite.bound[0] = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(reference::compare(infinite, std::vector<std::uint16_t>{0x7F80, 0x7FC0, 0xC000}).within_bounds);
  EXPECT_FALSE(reference::compare(infinite, std::vector<std::uint16_t>{0xFF80, 0x7FC0, 0xC000}).within_bounds);
  EXPECT_FALSE(reference::compare(infinite, std::vector<std::uint16_t>{0x7F7F, 0x7FC0, 0xC000}).within_bounds);
  EXPECT_FALSE(reference::compare(infinite, std::vector<std::uint16_t>{0x7FC0, 0x7FC0, 0xC000}).within_bounds);
  EXPECT_FALSE(reference::compare(expected, std::vector<std::uint16_t>{0x7F80, 0x7FC0, 0xC000}).within_bounds);
  const auto comparison = reference::compare(expected, std::vector<std::uint16_t>{0x3F80, 0x7FC0, 0x4000});
  EXPECT_EQ(comparison.bad, 1);
  EXPECT_NE(comparison.first_bad.find("[m 0, n 2]"), std::string::npos) << comparison.first_bad;
}

TEST(ParallelFor, CallsEachIndexOnce) {
  std::vector<std::atomic<int>> calls(1000);
  reference::parallel_for(1000, 1 << 20, [&](std::int64_t i) { calls[i].fetch_add(1); });
  for (const auto& count : calls) EXPECT_EQ(count.load(), 1);
}

}  // namespace
}  // namespace gemvjit
