#include "tools/common/regular_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace gemvjit::tools {

Result<RegularFile> RegularFile::open(const std::string& path) {
  RegularFile file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK), 0);
  if (!file.file_.is_open()) {
    return Status(errno == ENOENT ? StatusCode::not_found : StatusCode::io_error,
                  fmt::format("{}: cannot be opened: {}", path, std::strerror(errno)));
  }
  struct stat info {};
  if (::fstat(file.file_.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return Status(StatusCode::invalid_argument, fmt::format("{}: is not a regular file", path));
  }
  file.bytes_ = static_cast<std::uint64_t>(info.st_size);
  return file;
}

bool RegularFile::read_at(std::uint64_t offset, void* out, std::size_t size) const {
  if (offset > bytes_ || size > bytes_ - offset) return false;
  char* at = static_cast<char*>(out);
  while (size > 0) {
    const ssize_t got = ::pread(file_.get(), at, size, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    offset += static_cast<std::uint64_t>(got);
    size -= static_cast<std::size_t>(got);
  }
  return true;
}

Result<std::string> RegularFile::read_all(const std::string& path, std::uint64_t limit) {
  GEMVJIT_TRY_ASSIGN(const RegularFile file, open(path));
  if (file.bytes() > limit) {
    return Status(StatusCode::invalid_argument,
                  fmt::format("{}: has {} bytes, more than the limit of {}", path, file.bytes(), limit));
  }
  std::string text(file.bytes(), '\0');
  if (!file.read_at(0, text.data(), text.size())) {
    return Status(StatusCode::io_error, fmt::format("{}: cannot be read", path));
  }
  return text;
}

}  // namespace gemvjit::tools
