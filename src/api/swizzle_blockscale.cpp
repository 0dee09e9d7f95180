// The scale layout on the host.
#include <cstring>

#include "kernels/shared/nvfp4_layout.h"
#include "src/api/api_support.h"

namespace api = gemvjit::api;
using gemvjit::Status;

namespace {

// The bound of the shape rules (check_problem), which keeps every product of sizes inside 64 bits.
bool too_large(int64_t n, int64_t k) { return n > (int64_t{1} << 31) || k > (int64_t{1} << 31); }

Status swizzle(const void* row_major, int64_t n, int64_t k, void* swizzled, size_t swizzled_size) {
  if (row_major == nullptr || swizzled == nullptr) {
    return api::invalid(
        fmt::format("gemvjit_swizzle_blockscale: {} is null", row_major == nullptr ? "row_major" : "swizzled"));
  }
  if (n <= 0 || k <= 0 || k % 16 != 0 || too_large(n, k)) {
    return {
        gemvjit::StatusCode::invalid_shape,
        fmt::format("gemvjit_swizzle_blockscale: n={} k={}: both must be positive and at most 2^31, k a multiple of 16",
                    n, k)};
  }
  const size_t expected = gemvjit_swizzled_scale_bytes(n, k);
  if (swizzled_size != expected) {
    return api::invalid(fmt::format("gemvjit_swizzle_blockscale: swizzled_size is {}, n={} k={} takes {}",
                                    swizzled_size, n, k, expected));
  }
  const auto* from = static_cast<const unsigned char*>(row_major);
  auto* to = static_cast<unsigned char*>(swizzled);
  std::memset(to, 0, expected);
  const long long columns = gemvjit::scale_columns(k);
  const long long padded_columns = gemvjit::padded_scale_columns(k);
  for (long long row = 0; row < n; ++row) {
    for (long long column = 0; column < columns; ++column) {
      to[gemvjit::swizzled_scale_offset(row, column, padded_columns)] = from[row * columns + column];
    }
  }
  return Status::ok();
}

}  // namespace

size_t gemvjit_swizzled_scale_bytes(int64_t n, int64_t k) {
  if (n <= 0 || k <= 0 || too_large(n, k)) return 0;
  return static_cast<size_t>(gemvjit::swizzled_scale_bytes(n, k));
}

gemvjit_status gemvjit_swizzle_blockscale(const void* row_major, int64_t n, int64_t k, void* swizzled,
                                          size_t swizzled_size) {
  return api::guarded([&] { return swizzle(row_major, n, k, swizzled, swizzled_size); });
}
