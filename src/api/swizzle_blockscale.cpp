#include "src/api/api_support.h"
#include "src/runtime/blockscale.h"

namespace api = gemvjit::api;
using gemvjit::Status;

size_t gemvjit_swizzled_scale_bytes(int64_t n, int64_t k) { return gemvjit::swizzled_size(n, k); }

gemvjit_status gemvjit_swizzle_blockscale(const void* row_major, int64_t n, int64_t k, void* swizzled,
                                          size_t swizzled_size) {
  return api::guarded([&] {
    if (row_major == nullptr) return api::invalid("gemvjit_swizzle_blockscale: row_major is null");
    if (swizzled == nullptr) return api::invalid("gemvjit_swizzle_blockscale: swizzled is null");
    const Status status = gemvjit::swizzle_blockscale(static_cast<const std::uint8_t*>(row_major), n, k,
                                                      static_cast<std::uint8_t*>(swizzled), swizzled_size);
    return status ? status : Status(status.code(), "gemvjit_swizzle_blockscale: " + status.message());
  });
}
