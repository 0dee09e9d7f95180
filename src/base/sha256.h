// SHA-256 (FIPS 180-4): names cache entries by content and guards them against damage. Not a hot path.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace gemvjit {

using Digest = std::array<std::uint8_t, 32>;

class Sha256 {
 public:
  Sha256();
  void update(const void* data, std::size_t size);
  void update(std::string_view text) { update(text.data(), text.size()); }
  // A piece of a structured message: tag, length and bytes, so that neighbouring pieces cannot run into each other.
  void update_tagged(std::string_view tag, std::string_view bytes);
  Digest finish();  // once; the object is used up

  static Digest of(const void* data, std::size_t size);

 private:
  void block(const std::uint8_t* bytes);
  std::array<std::uint32_t, 8> state_;
  std::array<std::uint8_t, 64> buffer_{};
  std::uint64_t length_ = 0;
};

std::string to_hex(const Digest& digest);              // 64 lower-case digits
bool from_hex(std::string_view text, Digest& digest);  // exactly 64 hex digits, either case

}  // namespace gemvjit
