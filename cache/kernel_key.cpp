#include "cache/kernel_key.h"

#include <fmt/format.h>

#include <charconv>

namespace gemvjit {
namespace {

// Take `prefix` and a number in `base` off the front of `text`. Leading zeros and signs are left to the caller's
// comparison with text(), which alone decides what is accepted.
template <typename Number>
bool take_number(std::string_view& text, std::string_view prefix, int base, Number& number) {
  if (!text.starts_with(prefix)) return false;
  const char* begin = text.data() + prefix.size();
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(begin, end, number, base);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(stop - text.data()));
  return true;
}

Status not_an_arch(std::string_view text) {
  return {StatusCode::invalid_argument,
          fmt::format("\"{}\" is no architecture; expected sm_<number>, sm_<number>a or sm_<number>f, such as sm_90a",
                      text)};
}

Status not_a_key(std::string_view text) {
  return {StatusCode::invalid_argument,
          fmt::format("\"{}\" is no kernel key; expected n<N>-k<K>-nt<NT>-f<16 hex digits>-<arch>, such as "
                      "n4096-k4096-nt1-f0000000000002022-sm_90a",
                      text)};
}

// The finalizer of splitmix64 (Steele, Lea, Flood 2014): every input bit reaches every output bit.
std::uint64_t mix(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15u;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

}  // namespace

std::string Arch::text() const {
  std::string result = fmt::format("sm_{}", sm);
  if (suffix != 0) result += suffix;
  return result;
}

Result<Arch> Arch::parse(std::string_view text) {
  Arch arch;
  std::string_view rest = text;
  if (!take_number(rest, "sm_", 10, arch.sm) || arch.sm < 1 || arch.sm > 9999) return not_an_arch(text);
  if (rest == "a" || rest == "f") {
    arch.suffix = rest[0];
  } else if (!rest.empty()) {
    return not_an_arch(text);
  }
  if (arch.text() != text) return not_an_arch(text);
  return arch;
}

std::string KernelKey::text() const { return fmt::format("n{}-k{}-nt{}-f{:016x}-{}", n, k, nt, flags, arch.text()); }

Result<KernelKey> KernelKey::parse(std::string_view text) {
  KernelKey key;
  std::string_view rest = text;
  if (!take_number(rest, "n", 10, key.n) || !take_number(rest, "-k", 10, key.k) ||
      !take_number(rest, "-nt", 10, key.nt) || !take_number(rest, "-f", 16, key.flags) || !rest.starts_with("-") ||
      key.n < 0 || key.k < 0 || key.nt < 0) {
    return not_a_key(text);
  }
  Result<Arch> arch = Arch::parse(rest.substr(1));
  if (!arch) return not_a_key(text);
  key.arch = *arch;
  // One spelling for each key: names of files are compared as text.
  if (key.text() != text) return not_a_key(text);
  return key;
}

std::size_t KernelKeyHash::operator()(const KernelKey& key) const {
  std::uint64_t hash = mix(static_cast<std::uint64_t>(key.n));
  hash = mix(hash ^ static_cast<std::uint64_t>(key.k));
  hash = mix(hash ^ key.flags);
  const std::uint64_t small = static_cast<std::uint64_t>(static_cast<std::uint32_t>(key.nt)) << 32 |
                              static_cast<std::uint64_t>(static_cast<std::uint32_t>(key.arch.sm)) << 8 |
                              static_cast<std::uint8_t>(key.arch.suffix);
  return static_cast<std::size_t>(mix(hash ^ small));
}

}  // namespace gemvjit
