#include "tools/verification/number_formats.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <set>

#include "kernels/shared/nvfp4_layout.h"

namespace gemvjit {
namespace {

TEST(NumberFormats, E2m1HasItsSixteenValues) {
  const std::array<double, 8> magnitudes = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  for (unsigned code = 0; code < 16; ++code) {
    EXPECT_EQ(std::fabs(reference::e2m1_value(code)), magnitudes[code & 7]) << code;
    EXPECT_EQ(std::signbit(reference::e2m1_value(code)), code >= 8) << code;
  }
}

TEST(NumberFormats, E4m3HasItsLandmarks) {
  const auto value = [](unsigned code) { return reference::e4m3_value(code); };
  EXPECT_EQ(value(0x00), 0);
  EXPECT_EQ(value(0x01), std::ldexp(1, -9));
  EXPECT_EQ(value(0x07), std::ldexp(7, -9));
  EXPECT_EQ(value(0x08), std::ldexp(1, -6));
  EXPECT_EQ(value(0x30), 0.5);
  EXPECT_EQ(value(0x38), 1);
  EXPECT_EQ(value(0x70), 128);
  EXPECT_EQ(value(0x7E), 448);
  EXPECT_TRUE(std::isnan(value(0x7F)));
  EXPECT_TRUE(std::isnan(value(0xFF)));
  for (unsigned code = 1; code < 0x7F; ++code) {
    EXPECT_GT(value(code), value(code - 1)) << code;
    EXPECT_EQ(value(code | 0x80), -value(code)) << code;
  }
}

TEST(NumberFormats, Bf16RoundsToNearestEven) {
  EXPECT_EQ(reference::bf16_bits(1.0), 0x3F80);
  EXPECT_EQ(reference::bf16_bits(1.0 + 1.0 / 256), 0x3F80);  // tie, even below
  EXPECT_EQ(reference::bf16_bits(1.0 + 3.0 / 256), 0x3F82);  // tie, even above
  EXPECT_EQ(reference::bf16_bits(1.0 + 1.0 / 256 + 1e-12), 0x3F81);
  EXPECT_EQ(reference::bf16_bits(-0.0), 0x8000);
  EXPECT_EQ(reference::bf16_bits(std::ldexp(1, -133)), 0x0001);
  EXPECT_EQ(reference::bf16_bits(std::ldexp(1, -134)), 0x0000);  // tie, even below
  EXPECT_EQ(reference::bf16_bits(3.4e38), 0x7F80);               // above the largest finite value by more than half
  EXPECT_EQ(reference::bf16_bits(std::numeric_limits<double>::infinity()), 0x7F80);
  EXPECT_EQ(reference::bf16_bits(std::nan("")), 0x7FC0);
  EXPECT_TRUE(reference::bf16_is_nan(0xFFFF));
  EXPECT_FALSE(reference::bf16_is_nan(0xFF80));
}

TEST(NumberFormats, EveryBf16ValueKeepsItsBits) {
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    const auto narrow = static_cast<std::uint16_t>(bits);
    if (reference::bf16_is_nan(narrow)) continue;
    ASSERT_EQ(reference::bf16_bits(reference::bf16_to_float(narrow)), narrow);
  }
}

struct ScaleShape {
  std::int64_t rows, columns;
};

class ScaleLayoutTest : public testing::TestWithParam<ScaleShape> {};

// Two implementations that share nothing: the kernels' closed formula and the reference's permutation of axes.
TEST_P(ScaleLayoutTest, ReferenceAndKernelsAgree) {
  const auto [rows, columns] = GetParam();
  const std::int64_t k = columns * 16;
  EXPECT_EQ(reference::scale_bytes(rows, k), swizzled_scale_bytes(rows, k));
  std::set<std::int64_t> seen;
  for (std::int64_t row = 0; row < padded_scale_rows(rows); ++row) {
    for (std::int64_t column = 0; column < padded_scale_columns(k); ++column) {
      const std::int64_t offset = reference::scale_offset(row, column, k);
      ASSERT_EQ(offset, swizzled_scale_offset(row, column, padded_scale_columns(k))) << row << ", " << column;
      ASSERT_GE(offset, 0);
      ASSERT_LT(offset, reference::scale_bytes(rows, k));
      seen.insert(offset);
      // The documented inverse.
      const std::int64_t tile = offset / 512, inside = offset % 512, tiles = padded_scale_columns(k) / 4;
      ASSERT_EQ(tile % tiles * 4 + inside % 4, column);
      ASSERT_EQ(tile / tiles * 128 + inside / 4 % 4 * 32 + inside / 16, row);
    }
  }
  EXPECT_EQ(static_cast<std::int64_t>(seen.size()), reference::scale_bytes(rows, k)) << "not a bijection";
}

// Negative control: a layout that is not swizzled is another one wherever there is more than a row of scales.
TEST_P(ScaleLayoutTest, RowMajorIsAnother) {
  const auto [rows, columns] = GetParam();
  std::int64_t differ = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      const std::int64_t row_major = row * padded_scale_columns(columns * 16) + column;
      differ += reference::scale_offset(row, column, columns * 16) != row_major ? 1 : 0;
    }
  }
  EXPECT_EQ(differ > 0, rows > 1);
}

INSTANTIATE_TEST_SUITE_P(Shapes, ScaleLayoutTest,
                         testing::Values(ScaleShape{1, 1}, ScaleShape{129, 5}, ScaleShape{2112, 448},
                                         ScaleShape{464, 168}, ScaleShape{2880, 29}, ScaleShape{128, 4}),
                         [](const auto& p) {
                           return std::to_string(p.param.rows) + "x" + std::to_string(p.param.columns);
                         });

}  // namespace
}  // namespace gemvjit
