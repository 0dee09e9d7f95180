// Keys, trust directories and entries for tests of signatures.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cache/signatures.h"
#include "tests/support/ed25519_keys.h"

namespace gemvjit::test {

// A pair of keys made from one byte.
struct KeyPair {
  Bytes secret, key;
  std::string id;
};

inline KeyPair key_pair(const Ed25519& ed25519, std::uint8_t seed) {
  KeyPair pair;
  pair.secret.assign(32, seed);
  const auto signer = *ed25519.read_private_key(private_pem(pair.secret));
  pair.key.assign(signer->public_key().begin(), signer->public_key().end());
  pair.id = key_id(signer->public_key());
  return pair;
}

// Folder "trust" with the keys of seeds 1 ("one.pub") and 2 ("two.pub"); private keys "<seed>.key" of 1, 2 and 3.
class SigningFiles {
 public:
  explicit SigningFiles(const TempDir& dir, const Ed25519& ed25519) {
    const char* const names[] = {"one", "two", "three"};
    for (std::uint8_t seed = 1; seed <= 3; ++seed) {
      pairs.push_back(key_pair(ed25519, seed));
      write_key(dir, std::to_string(seed) + ".key", private_pem(pairs.back().secret), 0600);
      if (seed < 3) {
        write_key(dir, std::string("trust/") + names[seed - 1] + ".pub", public_pem(pairs.back().key), 0644);
      }
    }
    trust = dir.path("trust");
    std::filesystem::permissions(trust, std::filesystem::perms(0755));
  }
  std::vector<KeyPair> pairs;
  std::string trust;
};

}  // namespace gemvjit::test
