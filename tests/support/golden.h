// The golden cases of tests/golden: inputs as raw little-endian files, a float64 result and the largest permitted error
// of each element, made from the formats' definitions by a program that shares no code with this repository.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/verification/reference.h"

namespace gemvjit {

struct GoldenCase {
  std::string name;
  bool nvfp4 = false;
  std::int64_t m = 0, n = 0, k = 0, x_stride = 0;
  bool silu_mul = false;
  float global_scale = 1;

  std::vector<std::uint16_t> x;            // [m, x_stride]
  std::vector<std::uint8_t> codes;         // nvfp4: [n, k/2]
  std::vector<std::uint8_t> scales;        // nvfp4: swizzled, with the case's own padding
  std::vector<std::uint8_t> row_scales;    // nvfp4: [n, k/16]
  std::vector<std::uint16_t> dequantized;  // nvfp4: [n, k]
  std::vector<std::uint16_t> weight;       // bf16: [n, k]
  reference::Expected expected;

  std::int64_t columns() const { return silu_mul ? n / 2 : n; }
  reference::Activations activations() const { return {m, x_stride, x.data()}; }
  reference::Nvfp4Weight nvfp4_weight() const {
    return {n, k, codes.data(), scales.data(), reference::ScaleLayout::swizzled, global_scale};
  }
  reference::Bf16Weight bf16_weight() const { return {n, k, weight.data()}; }
  // What the reference of this repository makes of the inputs.
  reference::Expected recompute() const;
};

// The names in cases.json, in order. Throws std::runtime_error if the folder cannot be read: a test without its data
// must not pass.
std::vector<std::string> golden_names();
// Throws as above, also for a file of the wrong size.
GoldenCase load_golden(const std::string& name);
// The 256 x 16 products of every scale code and every E2M1 code, as BF16.
std::vector<std::uint16_t> golden_products();

// For INSTANTIATE_TEST_SUITE_P.
inline std::ostream& operator<<(std::ostream& out, const GoldenCase& golden) { return out << golden.name; }

}  // namespace gemvjit
