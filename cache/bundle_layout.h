// What reader and writer of bundles share: the fixed parts of the format (bundle.h has the grammar).
#pragma once

#include <string_view>

#include "cache/bundle.h"
#include "src/base/binary_fields.h"

namespace gemvjit::bundle_layout {

inline constexpr std::string_view magic = "GEMVJITB";
inline constexpr std::string_view end_magic = "GJBEND\r\n";
inline constexpr std::uint64_t header_bytes = 8 + 4 + 4;
inline constexpr std::uint64_t footer_bytes = 8 + 8 + 8 + sizeof(Digest) + 8;

// What a bundle's signature signs (signature_block.h has the grammar).
inline Bytes signing_message(std::uint64_t index_offset, std::uint64_t index_size, std::uint64_t count,
                             const Digest& index_sha) {
  constexpr std::string_view domain = "gemvjit bundle signature 1\n";
  Bytes message;
  FieldWriter out(message);
  out.raw(domain.data(), domain.size());
  out.number(bundle_format_version);
  out.number(index_offset);
  out.number(index_size);
  out.number(count);
  out.raw(index_sha.data(), index_sha.size());
  return message;
}

// The order of the index.
inline bool comes_before(const EntryId& a, const EntryId& b) {
  const std::string first = a.key.text(), second = b.key.text();
  return first != second ? first < second : a.digest < b.digest;
}

}  // namespace gemvjit::bundle_layout
