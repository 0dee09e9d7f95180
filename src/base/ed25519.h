// Ed25519 (RFC 8032) by OpenSSL's libcrypto, which is opened with dlopen when it is first asked for: the library needs
// no OpenSSL where nothing is signed or verified, and its headers are not needed to build.
//
// Threads: every function from any thread. Messages of errors name no key and hold nothing of one. What OpenSSL had in
// its queue of errors stays as it was: the process may use the same libcrypto for other things.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "src/base/files.h"
#include "src/base/status.h"

namespace gemvjit {

using Ed25519PublicKey = std::array<std::uint8_t, 32>;
using Ed25519Signature = std::array<std::uint8_t, 64>;

inline constexpr const char* default_libcrypto = "libcrypto.so.3";

// A private key, which never leaves libcrypto.
class Ed25519Signer {
 public:
  virtual ~Ed25519Signer() = default;
  virtual const Ed25519PublicKey& public_key() const = 0;
  virtual Result<Ed25519Signature> sign(const Bytes& message) const = 0;
};

class Ed25519 {
 public:
  // unsupported, naming the file and what the loader says, without a usable libcrypto of OpenSSL 3. Opened once for
  // each name and never closed.
  static Result<std::shared_ptr<const Ed25519>> open(const std::string& libcrypto = default_libcrypto);

  // "-----BEGIN PUBLIC KEY-----", as `openssl pkey -pubout` writes it. invalid_argument for anything else, for a key of
  // another kind, for more than one key, and for a key that is none or that anybody can sign for (ed25519_point.h).
  Result<Ed25519PublicKey> read_public_key(const Bytes& pem) const;
  // "-----BEGIN PRIVATE KEY-----", as `openssl genpkey -algorithm ed25519` writes it. invalid_argument for anything
  // else, and for more than one key; one with a passphrase is refused, nobody is asked for it. The caller wipes `pem`.
  Result<std::shared_ptr<const Ed25519Signer>> read_private_key(const Bytes& pem) const;
  // Whether `signature` is that of `message` by `key`. False, too, where there is no memory to find out.
  bool verify(const Ed25519PublicKey& key, const Bytes& message, const Ed25519Signature& signature) const;

  struct Functions;  // libcrypto's

 private:
  explicit Ed25519(std::shared_ptr<const Functions> functions) : functions_(std::move(functions)) {}
  std::shared_ptr<const Functions> functions_;
};

}  // namespace gemvjit
