// The number formats and layouts of the contract, decoded from their definitions on the CPU in float64: E2M1 codes,
// E4M3 block scales, BF16, and the 128x4 scale layout. Made for checking the library: nothing here is shared with the
// kernels or with the library, so that an error in one does not hide in the other. Pure functions, any thread.
#pragma once

#include <cstdint>

namespace gemvjit::reference {

// E2M1: sign, 2 exponent bits (bias 1), 1 mantissa bit; no infinity, no NaN. Only the low 4 bits of `code` count.
double e2m1_value(unsigned code);
// E4M3FN: sign, 4 exponent bits (bias 7), 3 mantissa bits; NaN is 0x7F and 0xFF, no infinity. Low 8 bits count.
double e4m3_value(unsigned code);

// BF16 is the upper half of an FP32.
float bf16_to_float(std::uint16_t bits);
// Rounds once, to nearest, ties to even, with BF16's subnormals and overflow to infinity; NaN stays NaN.
double round_to_bf16(double value);
// The bits of round_to_bf16(value); every NaN becomes 0x7FC0.
std::uint16_t bf16_bits(double value);
inline bool bf16_is_nan(std::uint16_t bits) { return (bits & 0x7FFFu) > 0x7F80u; }

// Where the swizzled layout keeps the scale of weight row `row` and k block `column` (16 k each) of an [n, k] weight,
// and how many bytes it has. Written from the layout's definition as a permutation of axes: the padded matrix
// [row tiles][4 groups][32 rows][column tiles][4 columns] is stored as [row tiles][column tiles][32][4 groups][4].
std::int64_t scale_offset(std::int64_t row, std::int64_t column, std::int64_t k);
std::int64_t scale_bytes(std::int64_t n, std::int64_t k);

}  // namespace gemvjit::reference
