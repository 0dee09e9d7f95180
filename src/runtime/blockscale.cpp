#include "src/runtime/blockscale.h"

#include <fmt/format.h>

#include <cstring>

#include "kernels/shared/gemv_geometry.h"
#include "kernels/shared/nvfp4_layout.h"

namespace gemvjit {
namespace {

constexpr std::int64_t largest = std::int64_t{1} << 31;  // keeps the product of both inside 64 bits

}  // namespace

std::size_t swizzled_size(std::int64_t n, std::int64_t k) {
  if (n <= 0 || k <= 0 || n > largest || k > largest) return 0;
  return static_cast<std::size_t>(swizzled_scale_bytes(n, k));
}

Status swizzle_blockscale(const std::uint8_t* row_major, std::int64_t n, std::int64_t k, std::uint8_t* swizzled,
                          std::size_t size) {
  const std::size_t expected = swizzled_size(n, k);
  if (expected == 0 || k % kScaleBlockK != 0) {
    return {StatusCode::invalid_shape,
            fmt::format("n={} k={}: both must be positive and at most 2^31, k a multiple of {}", n, k, kScaleBlockK)};
  }
  if (size != expected) {
    return {StatusCode::invalid_argument, fmt::format("swizzled_size is {}, n={} k={} takes {}", size, n, k, expected)};
  }
  std::memset(swizzled, 0, expected);
  const long long columns = scale_columns(k);
  const long long padded_columns = padded_scale_columns(k);
  for (long long row = 0; row < n; ++row) {
    for (long long column = 0; column < columns; ++column) {
      swizzled[swizzled_scale_offset(row, column, padded_columns)] = row_major[row * columns + column];
    }
  }
  return Status::ok();
}

}  // namespace gemvjit
