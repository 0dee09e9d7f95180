#include "tools/verification/number_formats.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <limits>

namespace gemvjit::reference {
namespace {

// A small float of `exponent_bits` and `mantissa_bits` below a sign bit, with subnormals and no special values.
double small_float(unsigned code, int exponent_bits, int mantissa_bits, int bias) {
  const unsigned mantissa = code & ((1u << mantissa_bits) - 1);
  const unsigned exponent = (code >> mantissa_bits) & ((1u << exponent_bits) - 1);
  const bool negative = (code >> (exponent_bits + mantissa_bits)) & 1;
  const double fraction = std::ldexp(mantissa, -mantissa_bits);
  const double magnitude =
      exponent == 0 ? std::ldexp(fraction, 1 - bias) : std::ldexp(1.0 + fraction, static_cast<int>(exponent) - bias);
  return negative ? -magnitude : magnitude;
}

std::array<double, 16> e2m1_table() {
  std::array<double, 16> table{};
  for (unsigned code = 0; code < 16; ++code) table[code] = small_float(code, 2, 1, 1);
  return table;
}

std::array<double, 256> e4m3_table() {
  std::array<double, 256> table{};
  for (unsigned code = 0; code < 256; ++code) {
    table[code] = (code & 0x7F) == 0x7F ? std::numeric_limits<double>::quiet_NaN() : small_float(code, 4, 3, 7);
  }
  return table;
}

constexpr int kBf16Digits = 8;           // significant bits, the hidden one included
constexpr int kBf16MinFrexp = -125;      // std::frexp's exponent of 2^-126, the smallest normal
constexpr std::int64_t kGroupRows = 32;  // scale rows of a group
constexpr std::int64_t kGroups = 4;      // groups of a row tile
constexpr std::int64_t kTileColumns = 4;

}  // namespace

double e2m1_value(unsigned code) {
  static const std::array<double, 16> table = e2m1_table();
  return table[code & 15];
}

double e4m3_value(unsigned code) {
  static const std::array<double, 256> table = e4m3_table();
  return table[code & 255];
}

float bf16_to_float(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

double round_to_bf16(double value) {
  if (!std::isfinite(value) || value == 0) return value;
  int exponent = 0;
  (void)std::frexp(value, &exponent);
  const int quantum = std::max(exponent, kBf16MinFrexp) - kBf16Digits;
  // nearbyint rounds ties to even in the default rounding mode; scaling by a power of two is exact.
  const double rounded = std::ldexp(std::nearbyint(std::ldexp(value, -quantum)), quantum);
  if (std::fabs(rounded) >= std::ldexp(1.0, 128)) {
    return std::copysign(std::numeric_limits<double>::infinity(), value);
  }
  return rounded;
}

std::uint16_t bf16_bits(double value) {
  if (std::isnan(value)) return 0x7FC0;
  const auto exact = static_cast<float>(round_to_bf16(value));
  return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(exact) >> 16);
}

std::int64_t scale_offset(std::int64_t row, std::int64_t column, std::int64_t k) {
  const std::int64_t column_tiles = (k / 16 + kTileColumns - 1) / kTileColumns;
  const std::int64_t row_in_group = row % kGroupRows;
  const std::int64_t group = row / kGroupRows % kGroups;
  const std::int64_t row_tile = row / (kGroupRows * kGroups);
  std::int64_t offset = row_tile;
  offset = offset * column_tiles + column / kTileColumns;
  offset = offset * kGroupRows + row_in_group;
  offset = offset * kGroups + group;
  return offset * kTileColumns + column % kTileColumns;
}

std::int64_t scale_bytes(std::int64_t n, std::int64_t k) {
  const std::int64_t row_tiles = (n + kGroupRows * kGroups - 1) / (kGroupRows * kGroups);
  const std::int64_t column_tiles = (k / 16 + kTileColumns - 1) / kTileColumns;
  return row_tiles * column_tiles * kGroupRows * kGroups * kTileColumns;
}

}  // namespace gemvjit::reference
