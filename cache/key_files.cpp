#include "cache/key_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <system_error>

#include "cache/root_safety.h"
#include "src/base/files.h"
#include "src/base/secret_file.h"

namespace gemvjit {
namespace {

Status io_failure(const char* doing, const std::string& path, int error) {
  return {StatusCode::io_error, fmt::format("cannot {} {}: {}", doing, path, std::generic_category().message(error))};
}

Result<Ed25519PublicKey> load_public_key(const std::string& file, const Ed25519& ed25519) {
  GEMVJIT_TRY(check_trust_path(file));
  // Mounted configurations are links; where they lead was just checked.
  char real[PATH_MAX];
  if (::realpath(file.c_str(), real) == nullptr) return io_failure("find", file, errno);
  GEMVJIT_TRY_ASSIGN(const Bytes pem, read_file(real, key_file_limit));
  Result<Ed25519PublicKey> key = ed25519.read_public_key(pem);
  if (!key) return Status(key.status().code(), fmt::format("{}: {}", file, key.status().message()));
  return key;
}

void load_folder(const std::string& folder, bool must_exist, const Ed25519& ed25519, TrustedKeys& trusted) {
  const auto names = list_directory(folder);
  if (!names) {
    if (must_exist || names.status().code() != StatusCode::not_found) trusted.problems.push_back(names.status());
    return;
  }
  if (const Status safe = check_trust_path(folder); !safe) {
    trusted.problems.push_back(safe);
    return;
  }
  for (const std::string& name : *names) {
    if (!name.ends_with(trusted_key_suffix)) continue;
    if (trusted.keys.size() >= trusted_key_limit) {
      trusted.problems.push_back(
          {StatusCode::invalid_argument, fmt::format("{}: more than {} keys", folder, trusted_key_limit)});
      return;
    }
    const std::string file = folder + "/" + name;
    const auto key = load_public_key(file, ed25519);
    if (!key) {
      trusted.problems.push_back(key.status());
      continue;
    }
    const bool known = std::any_of(trusted.keys.begin(), trusted.keys.end(),
                                   [&](const TrustedKey& other) { return other.key == *key; });
    if (!known) trusted.keys.push_back({*key, file});
  }
}

}  // namespace

TrustedKeys load_trusted_keys(const std::vector<std::string>& folders, bool must_exist, const Ed25519& ed25519) {
  TrustedKeys trusted;
  for (const std::string& folder : folders) load_folder(folder, must_exist, ed25519, trusted);
  return trusted;
}

Result<std::shared_ptr<const Ed25519Signer>> load_signing_key(const std::string& file, const Ed25519& ed25519) {
  constexpr const char* what = "the signing key";
  GEMVJIT_TRY_ASSIGN(const SecretFile secret, SecretFile::read(file, key_file_limit, what));
  auto key = ed25519.read_private_key(secret.bytes());
  if (!key) {
    return Status(StatusCode::invalid_argument,
                  fmt::format("{} {} is not used: {}", what, file, key.status().message()));
  }
  return key;
}

}  // namespace gemvjit
