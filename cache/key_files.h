// The key files of signatures: public keys of whom we trust, in folders; and the private key to sign with.
//
// Threads: any. Reads only.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "src/base/ed25519.h"

namespace gemvjit {

inline constexpr std::size_t trusted_key_limit = 1024;    // keys of all folders
inline constexpr std::size_t key_file_limit = 16u << 10;  // bytes of a file
inline constexpr std::string_view trusted_key_suffix = ".pub";

struct TrustedKey {
  Ed25519PublicKey key{};
  std::string file;  // whole path
};

struct TrustedKeys {
  std::vector<TrustedKey> keys;  // in the order of folders and names, each key once
  std::vector<Status> problems;  // folders and files that were passed over, and why
};

// The keys in *.pub files, PEM public keys, of the folders. A folder that is not there has none,
// which is a problem only if it `must_exist`. One that somebody
// other than this user and root may write, or whose way others could bend, is passed over (root_safety.h), and so is
// such a file: who can put a key there can have any kernel run.
TrustedKeys load_trusted_keys(const std::vector<std::string>& folders, bool must_exist, const Ed25519& ed25519);

// The private key in a PEM file, which is read as src/base/secret_file.h says. invalid_argument for what is no key.
// Messages name the file only.
Result<std::shared_ptr<const Ed25519Signer>> load_signing_key(const std::string& file, const Ed25519& ed25519);

}  // namespace gemvjit
