#include "src/base/secret_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "src/base/descriptor.h"

namespace gemvjit {

Result<SecretFile> SecretFile::read(const std::string& path, std::size_t limit, std::string_view what) {
  const auto failure = [&](const char* doing) {
    const std::string reason = std::generic_category().message(errno);
    return Status(StatusCode::io_error, fmt::format("cannot {} {} {}: {}", doing, what, path, reason));
  };
  const auto refuse = [&](const std::string& reason) {
    return Status(StatusCode::invalid_argument, fmt::format("{} {} is not used: {}", what, path, reason));
  };
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!file.is_open()) return failure("open");
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) return failure("examine");
  if (!S_ISREG(info.st_mode)) return refuse("it is no regular file");
  if (info.st_uid != ::geteuid() && info.st_uid != 0) return refuse("it belongs to another user");
  if ((info.st_mode & 077) != 0) {
    return refuse(fmt::format("its mode {:04o} gives others a right to it (chmod 600)", info.st_mode & 07777u));
  }
  SecretFile secret;
  // Room for one byte more than is allowed, made once: a growing vector would leave copies behind.
  secret.bytes_.resize(limit + 1);
  std::size_t filled = 0;
  while (filled < secret.bytes_.size()) {
    const ssize_t got = ::read(file.get(), secret.bytes_.data() + filled, secret.bytes_.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failure("read");
    if (got == 0) break;
    filled += static_cast<std::size_t>(got);
  }
  if (filled > limit) return refuse(fmt::format("it is larger than {} bytes", limit));
  secret.bytes_.resize(filled);
  return secret;
}

SecretFile::~SecretFile() {
  if (!bytes_.empty()) ::explicit_bzero(bytes_.data(), bytes_.size());
}

}  // namespace gemvjit
