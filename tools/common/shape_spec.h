// ShapeSpec: what --shape takes, NxK[:nvfp4|:bf16|:dequant|:swizzle][:silu][:segments].
#pragma once

#include <cstdint>
#include <string_view>

#include "src/base/status.h"

namespace gemvjit::tools {

enum class ShapeFamily { nvfp4, bf16, dequant, swizzle };
std::string_view shape_family_name(ShapeFamily family);  // as in --shape

struct ShapeSpec {
  std::int64_t n = 0, k = 0;
  ShapeFamily family = ShapeFamily::nvfp4;
  bool silu_mul = false;
  bool scale_segments = false;
  bool operator==(const ShapeSpec&) const = default;
};

// Only the spelling is checked here, so that zero, negative and odd sizes reach the library, which names the rule they
// break. invalid_argument with what is accepted; also for a number that does not fit 64 bits.
Result<ShapeSpec> parse_shape(std::string_view text);

}  // namespace gemvjit::tools
