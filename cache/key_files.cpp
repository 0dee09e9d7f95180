#include "cache/key_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <system_error>

#include "cache/root_safety.h"
#include "src/base/files.h"

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

// An opened private key file; what was read of it is wiped.
class SecretFile {
 public:
  explicit SecretFile(const std::string& path)
      : path_(path), fd_(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)), error_(errno) {}
  ~SecretFile() {
    if (!bytes_.empty()) ::explicit_bzero(bytes_.data(), bytes_.size());
    if (fd_ >= 0) ::close(fd_);
  }
  SecretFile(const SecretFile&) = delete;
  SecretFile& operator=(const SecretFile&) = delete;

  Status read() {
    if (fd_ < 0) return io_failure("open the signing key", path_, error_);
    struct stat info {};
    if (::fstat(fd_, &info) != 0) return io_failure("examine the signing key", path_, errno);
    if (!S_ISREG(info.st_mode)) return refuse("it is no regular file");
    if (info.st_uid != ::geteuid() && info.st_uid != 0) return refuse("it belongs to another user");
    if ((info.st_mode & 077) != 0) {
      return refuse(fmt::format("its mode {:04o} gives others a right to it (chmod 600)", info.st_mode & 07777u));
    }
    // Room for one byte more than is allowed, made once: a growing vector would leave copies behind.
    bytes_.resize(key_file_limit + 1);
    std::size_t filled = 0;
    while (filled < bytes_.size()) {
      const ssize_t got = ::read(fd_, bytes_.data() + filled, bytes_.size() - filled);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return io_failure("read the signing key", path_, errno);
      if (got == 0) break;
      filled += static_cast<std::size_t>(got);
    }
    if (filled > key_file_limit) return refuse("it is too large for a key");
    bytes_.resize(filled);
    return Status::ok();
  }
  Status refuse(const std::string& reason) const {
    return {StatusCode::invalid_argument, fmt::format("the signing key {} is not used: {}", path_, reason)};
  }
  const Bytes& bytes() const { return bytes_; }

 private:
  std::string path_;
  int fd_;
  int error_;
  Bytes bytes_;
};

}  // namespace

TrustedKeys load_trusted_keys(const std::vector<std::string>& folders, bool must_exist, const Ed25519& ed25519) {
  TrustedKeys trusted;
  for (const std::string& folder : folders) load_folder(folder, must_exist, ed25519, trusted);
  return trusted;
}

Result<std::shared_ptr<const Ed25519Signer>> load_signing_key(const std::string& file, const Ed25519& ed25519) {
  SecretFile secret(file);
  GEMVJIT_TRY(secret.read());
  auto key = ed25519.read_private_key(secret.bytes());
  if (!key) return secret.refuse(key.status().message());
  return key;
}

}  // namespace gemvjit
