// Little-endian fields of this project's file formats, written one after another and read back with every size checked.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

#include "src/base/files.h"

namespace gemvjit {

template <typename Number>
std::array<std::uint8_t, sizeof(Number)> little_endian(Number value) {
  const auto bits = static_cast<std::make_unsigned_t<Number>>(value);
  std::array<std::uint8_t, sizeof(Number)> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::uint8_t>(static_cast<std::uint64_t>(bits) >> (8 * i));
  }
  return bytes;
}

class FieldWriter {
 public:
  explicit FieldWriter(Bytes& out) : out_(out) {}

  template <typename Number>
  void number(Number value) {
    const auto bytes = little_endian(value);
    raw(bytes.data(), bytes.size());
  }
  void raw(const void* data, std::size_t size) {
    if (size == 0) return;
    const std::size_t begin = out_.size();
    out_.resize(begin + size);
    std::memcpy(out_.data() + begin, data, size);
  }
  void string(std::string_view text) {
    number(static_cast<std::uint32_t>(text.size()));
    raw(text.data(), text.size());
  }

 private:
  Bytes& out_;
};

// Reads fields off [data, data + size). After the first one that does not fit, nothing is read any more and ok() is
// false: the caller looks once, at the end.
class FieldReader {
 public:
  FieldReader(const std::uint8_t* data, std::size_t size) : data_(data), left_(size) {}

  template <typename Number>
  void number(Number& value) {
    std::uint64_t bits = 0;
    if (!claim(sizeof(Number))) return;
    for (std::size_t i = 0; i < sizeof(Number); ++i) bits |= std::uint64_t{data_[i]} << (8 * i);
    value = static_cast<Number>(bits);
    advance(sizeof(Number));
  }
  void raw(void* out, std::size_t size) {
    if (!claim(size)) return;
    std::memcpy(out, data_, size);
    advance(size);
  }
  // The next bytes where they are, and past them; nullptr if there are not so many.
  const std::uint8_t* take(std::size_t size) {
    if (!claim(size)) return nullptr;
    const std::uint8_t* taken = data_;
    advance(size);
    return taken;
  }
  void string(std::string& text, std::size_t limit) {
    std::uint32_t size = 0;
    number(size);
    if (size > limit) ok_ = false;
    if (!claim(size)) return;
    text.assign(reinterpret_cast<const char*>(data_), size);
    advance(size);
  }
  bool ok() const { return ok_; }
  std::size_t left() const { return left_; }

 private:
  bool claim(std::size_t size) {
    ok_ = ok_ && size <= left_;
    return ok_;
  }
  void advance(std::size_t size) {
    data_ += size;
    left_ -= size;
  }

  const std::uint8_t* data_;
  std::size_t left_;
  bool ok_ = true;
};

}  // namespace gemvjit
