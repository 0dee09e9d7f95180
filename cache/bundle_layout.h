// What reader and writer of bundles share: the fixed parts of the format (bundle.h has the grammar).
#pragma once

#include <string_view>

#include "cache/bundle.h"

namespace gemvjit::bundle_layout {

inline constexpr std::string_view magic = "GEMVJITB";
inline constexpr std::string_view end_magic = "GJBEND\r\n";
inline constexpr std::uint64_t header_bytes = 8 + 4 + 4;
inline constexpr std::uint64_t footer_bytes = 8 + 8 + 8 + sizeof(Digest) + 8;

// The order of the index.
inline bool comes_before(const EntryId& a, const EntryId& b) {
  const std::string first = a.key.text(), second = b.key.text();
  return first != second ? first < second : a.digest < b.digest;
}

}  // namespace gemvjit::bundle_layout
