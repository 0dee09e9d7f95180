// Ed25519 keys as PEM files, made from 32 bytes without OpenSSL (RFC 8410 has the few fixed bytes in front).
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <memory>
#include <string>
#include <string_view>

#include "src/base/ed25519.h"
#include "src/base/files.h"
#include "tests/support/temp_dir.h"

namespace gemvjit::test {

// Skips where there is no libcrypto.
class WithLibcrypto : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = Ed25519::open();
    if (!opened) GTEST_SKIP() << opened.status().message();
    ed25519_ = *opened;
  }
  std::shared_ptr<const Ed25519> ed25519_;
};

inline Bytes from_hex_text(std::string_view text) {
  Bytes bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    bytes.push_back(static_cast<std::uint8_t>(std::stoi(std::string(text.substr(i, 2)), nullptr, 16)));
  }
  return bytes;
}

inline Bytes pem(const std::string& label, const Bytes& der) {
  constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string body;
  for (std::size_t i = 0; i < der.size(); i += 3) {
    unsigned word = 0;
    for (std::size_t j = 0; j < 3; ++j) word = word << 8 | (i + j < der.size() ? der[i + j] : 0u);
    for (std::size_t j = 0; j < 4; ++j) body += i + j > der.size() ? '=' : digits[word >> (18 - 6 * j) & 63];
  }
  std::string text = "-----BEGIN " + label + "-----\n";
  for (std::size_t i = 0; i < body.size(); i += 64) text += body.substr(i, 64) + "\n";
  text += "-----END " + label + "-----\n";
  return Bytes(text.begin(), text.end());
}

inline Bytes with_prefix(std::string_view prefix, const Bytes& raw) {
  Bytes der = from_hex_text(prefix);
  der.insert(der.end(), raw.begin(), raw.end());
  return der;
}

inline Bytes public_der(const Bytes& key) { return with_prefix("302a300506032b6570032100", key); }
inline Bytes public_pem(const Bytes& key) { return pem("PUBLIC KEY", public_der(key)); }
inline Bytes private_pem(const Bytes& secret) {
  return pem("PRIVATE KEY", with_prefix("302e020100300506032b657004220420", secret));
}

// Writes `content` as a file below the folder, with the mode.
inline std::string write_key(const TempDir& dir, const std::string& name, const Bytes& content, mode_t mode) {
  const std::string path = dir.write(name, std::string(content.begin(), content.end()));
  ::chmod(path.c_str(), mode);
  return path;
}

}  // namespace gemvjit::test
