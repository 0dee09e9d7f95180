// The operations of the contract on the CPU in float64, with the largest permitted error of each element, and the
// comparison of a BF16 result against them. Used by the tests and by gemvjit-verify; slow and plain on purpose.
//
// PERMITTED ERROR. For a GEMV with exact value v and S = |global_scale| * sum over k of |x * w|:
//     e(v, S) = 2^-8 * |v|  +  2^-19 * S
// The first term is the one rounding to BF16 (8 significant bits: half a unit is at most 2^-8 of the value), the second
// FP32 accumulation in any order.
//
// With silu_mul, gate g and up u are rounded to BF16 first, then v = silu(g) * u is rounded once more. Let eg and eu be
// e() of g and u, with the rounded g and u as values and their own S. If the kernel has g' and u' within these,
//     |silu(g') u' - silu(g) u|  <=  |silu(g') - silu(g)| |u'|  +  |silu(g)| |u' - u|
//                                <=  L eg (|u| + eu)  +  |silu(g)| eu,         L = max |silu'| = 1.0998...
// and rounding the product adds 2^-8 |v|. One factor of 1.2 covers L, what the last rounding makes of the error terms
// (1 + 2^-8), and the error of SiLU in FP32 (some 2^-22 relative):
//     e = 1.2 * (eg * (|u| + eu) + |silu(g)| * eu)  +  2^-8 * |v|
// g' can also be the BF16 next to g, where FP32 error moves it over a rounding boundary: up to 2^-7 |g| away. That too
// is within e as long as only one of g and u does it, since 2 |g| silu'(g) <= 1.2 (|g| + |silu(g)|) for every g.
//
// Threads: functions are pure and use all cores of the machine for large problems. Pointers are host pointers that
// the caller owns and that must stay as they are for the call.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace gemvjit::reference {

enum class ScaleLayout { row_major, swizzled };

// An NVFP4 weight as ModelOpt stores it: codes uint8 [n, k/2], even k in the low nibble; one E4M3 scale for 16 k.
struct Nvfp4Weight {
  std::int64_t n = 0, k = 0;
  const std::uint8_t* codes = nullptr;
  const std::uint8_t* scales = nullptr;
  ScaleLayout layout = ScaleLayout::swizzled;
  double global_scale = 1;  // multiplier; the float's value
};

// BF16 [n, k], row-major.
struct Bf16Weight {
  std::int64_t n = 0, k = 0;
  const std::uint16_t* values = nullptr;
};

// BF16 [m, k] with a row stride in elements.
struct Activations {
  std::int64_t m = 0, row_stride = 0;
  const std::uint16_t* values = nullptr;
};

// Values and permitted errors, [m, columns]; columns is n, or n/2 with silu_mul. Not rounded at the end.
struct Expected {
  std::int64_t m = 0, columns = 0;
  std::vector<double> value, bound;
};

Expected nvfp4_gemv(const Nvfp4Weight& weight, const Activations& x, bool silu_mul);
Expected bf16_gemv(const Bf16Weight& weight, const Activations& x, bool silu_mul);
// The exact products e2m1 * e4m3 as BF16 [n, k], without the global scale; -0 stays -0, NaN becomes 0x7FC0.
std::vector<std::uint16_t> dequantize(const Nvfp4Weight& weight);

// Row-major scales [n, k/16] to the swizzled layout; padding bytes get `padding`.
std::vector<std::uint8_t> swizzle_scales(std::span<const std::uint8_t> row_major, std::int64_t n, std::int64_t k,
                                         std::uint8_t padding);

// How a result compares: worst is the largest error over its permitted error (1 is the limit).
struct Comparison {
  bool within_bounds = true;
  double worst = 0;
  std::int64_t bad = 0;   // elements out of bounds, or NaN where there should be none, or the other way round
  std::string first_bad;  // "[m 3, n 17]: got 1.5, expected 1.25 +- 0.01"; empty if none
};
Comparison compare(const Expected& expected, std::span<const std::uint16_t> got);

// Calls body(i) for i in [0, count) on all cores; `cost` is the rough number of operations of one call, so that small
// work stays on the calling thread.
void parallel_for(std::int64_t count, std::int64_t cost, const std::function<void(std::int64_t)>& body);

}  // namespace gemvjit::reference
