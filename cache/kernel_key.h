// KernelKey: the one name of a kernel, everywhere. Plain data; any room above may include it.
//
// Text form:  n4096-k4096-nt1-f0000000000002022-sm_90a
//   n, k   decimal, the weight's rows and columns (elements)
//   nt     decimal, 8-token tiles (M <= 8*nt); 0 for a kernel without tokens
//   f      16 hex digits, the flags word; src/catalog/kernel_flags.h gives its bits names
//   arch   sm_<number><suffix>, suffix '', 'a' (this chip only) or 'f' (its family)
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "src/base/status.h"

namespace gemvjit {

// A compile target. `sm` is 10 * major + minor.
struct Arch {
  int sm = 0;
  char suffix = 0;  // 0, 'a' or 'f'

  std::string text() const;  // "sm_90a"
  // The inverse of text() for sm 1 to 9999; invalid_argument, with what is accepted, for all else. Whether such an
  // architecture exists is for the catalog to say.
  static Result<Arch> parse(std::string_view text);
  auto operator<=>(const Arch&) const = default;
};

struct KernelKey {
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::int32_t nt = 0;
  std::uint64_t flags = 0;
  Arch arch;

  std::string text() const;
  // The inverse of text(); invalid_argument for anything text() would not write, and for negative numbers.
  static Result<KernelKey> parse(std::string_view text);
  auto operator<=>(const KernelKey&) const = default;
};

struct KernelKeyHash {
  std::size_t operator()(const KernelKey& key) const;
};

}  // namespace gemvjit
