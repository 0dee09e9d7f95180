#include "tools/common/printable.h"

#include <fmt/format.h>

#include <cstdint>

namespace gemvjit::tools {
namespace {

constexpr std::size_t longest = 120;  // bytes

// Length of the UTF-8 character at the start of the text, with its code point; 0 if there is none.
std::size_t decode(std::string_view text, std::uint32_t& point) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(text[i])); };
  const std::uint32_t first = byte(0);
  const std::size_t size = first < 0x80 ? 1 : first >> 5 == 6 ? 2 : first >> 4 == 14 ? 3 : first >> 3 == 30 ? 4 : 0;
  if (size == 0 || size > text.size()) return 0;
  point = size == 1 ? first : first & (0x7fu >> size);
  for (std::size_t i = 1; i < size; ++i) {
    if (byte(i) >> 6 != 2) return 0;
    point = point << 6 | (byte(i) & 0x3f);
  }
  constexpr std::uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
  return point < smallest[size] || point > 0x10ffff || point >> 11 == 0x1b ? 0 : size;
}

std::string escaped(std::uint32_t point, std::string_view bytes) {
  if (point == '\n') return "\\n";
  if (point == '\t') return "\\t";
  if (point == '\\') return "\\\\";
  if (point < 0x20 || (point >= 0x7f && point < 0xa0)) return fmt::format("\\x{:02x}", point);
  if ((point >= 0x2028 && point <= 0x202e) || (point >= 0x2066 && point <= 0x2069))
    return fmt::format("\\u{:04x}", point);
  return std::string(bytes);
}

// Each character as `piece` has it; a byte that is none as \xff.
template <typename Piece>
std::string replace(std::string_view text, const Piece& piece) {
  std::string result;
  while (!text.empty()) {
    std::uint32_t point = 0;
    const std::size_t size = decode(text, point);
    result +=
        size == 0 ? fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0])) : piece(point, text.substr(0, size));
    text.remove_prefix(size == 0 ? 1 : size);
  }
  return result;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    std::uint32_t point = 0;
    const std::size_t size = decode(text, point);
    const std::string piece = size == 0 ? fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]))
                                        : escaped(point, text.substr(0, size));
    if (result.size() + piece.size() > longest) return result + "...";
    result += piece;
    text.remove_prefix(size == 0 ? 1 : size);
  }
  return result;
}

std::string printable_message(std::string_view text) {
  return replace(text, [](std::uint32_t point, std::string_view bytes) {
    const bool stays = point == '\n' || point == '\t' || point == '\\';
    return stays ? std::string(bytes) : escaped(point, bytes);
  });
}

std::string printable_line(std::string_view text) {
  return replace(text, [](std::uint32_t point, std::string_view bytes) {
    return point == '\\' ? std::string(bytes) : escaped(point, bytes);
  });
}

std::string valid_utf8(std::string_view text) {
  return replace(text, [](std::uint32_t, std::string_view bytes) { return std::string(bytes); });
}

}  // namespace gemvjit::tools
