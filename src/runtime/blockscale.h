// The scale layout on the host.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/base/status.h"

namespace gemvjit {

// Bytes of the 128x4-swizzled scales of an [n, k] weight; 0 for sizes that are not positive or beyond all bounds.
std::size_t swizzled_size(std::int64_t n, std::int64_t k);

// Row-major [n, k/16] to the 128x4 layout; padding becomes zeros. invalid_shape, or invalid_argument for a `size` that
// is not swizzled_size(n, k).
Status swizzle_blockscale(const std::uint8_t* row_major, std::int64_t n, std::int64_t k, std::uint8_t* swizzled,
                          std::size_t size);

}  // namespace gemvjit
