#include "src/base/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <memory>
#include <new>
#include <system_error>

namespace gemvjit {
namespace {

// Closes what it holds. Errors of close() matter only to a writer, which calls fsync first and so has seen them.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  int release() {
    const int fd = fd_;
    fd_ = -1;
    return fd;
  }

 private:
  int fd_;
};

std::string error_text(int error) { return std::generic_category().message(error); }

Status io_failure(std::string_view what, const std::string& path, int error) {
  return {StatusCode::io_error, fmt::format("cannot {} {}: {}", what, path, error_text(error))};
}

bool is_directory(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

std::string_view kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
  return "no regular file";
}

Status write_all(int fd, const void* data, std::size_t size, const std::string& path) {
  const auto* bytes = static_cast<const std::uint8_t*>(data);
  while (size > 0) {
    const ssize_t written = ::write(fd, bytes, size);
    if (written < 0) {
      if (errno == EINTR) continue;
      return io_failure("write", path, errno);
    }
    bytes += written;
    size -= static_cast<std::size_t>(written);
  }
  return Status::ok();
}

std::string temporary_file_name() {
  std::uint64_t random = 0;
  if (::getrandom(&random, sizeof random, 0) != static_cast<ssize_t>(sizeof random)) {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    random = static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(now.tv_nsec);
  }
  return fmt::format("{}{}-{:016x}", temporary_file_prefix, ::getpid(), random);
}

// Write the temporary and move it to its name. The caller removes the temporary if this fails.
Status write_and_rename(int directory_fd, int fd, const std::string& temporary, const std::string& directory,
                        const std::string& name, const void* data, std::size_t size) {
  GEMVJIT_TRY(write_all(fd, data, size, directory + "/" + temporary));
  // Before the rename: after a crash the name must not stand for a file whose bytes never reached the disk.
  if (::fsync(fd) != 0) return io_failure("fsync", directory + "/" + temporary, errno);
  if (::renameat(directory_fd, temporary.c_str(), directory_fd, name.c_str()) != 0) {
    return io_failure("rename a temporary file to", directory + "/" + name, errno);
  }
  return Status::ok();
}

}  // namespace

Result<Bytes> read_file(const std::string& path, std::size_t limit) {
  limit = std::min<std::size_t>(limit, PTRDIFF_MAX);  // so that limit + 1 is a number
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file.is_open()) {
    if (errno == ENOENT) return Status(StatusCode::not_found, fmt::format("there is no file {}", path));
    if (errno == ELOOP) return Status(StatusCode::io_error, fmt::format("{} is a symbolic link, not followed", path));
    return io_failure("open", path, errno);
  }
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) return io_failure("examine", path, errno);
  if (!S_ISREG(info.st_mode)) {
    return Status(StatusCode::io_error, fmt::format("{} is {}, expected a regular file", path, kind_of(info.st_mode)));
  }
  const Status too_large(StatusCode::io_error, fmt::format("{} is larger than the limit of {} bytes", path, limit));
  if (static_cast<std::uint64_t>(info.st_size) > limit) return too_large;
  try {
    // One byte more than the file had: the read that fills no more proves the end; a file that grew is read on.
    Bytes bytes(static_cast<std::size_t>(info.st_size) + 1);
    std::size_t filled = 0;
    for (;;) {
      const ssize_t got = ::read(file.get(), bytes.data() + filled, bytes.size() - filled);
      if (got < 0) {
        if (errno == EINTR) continue;
        return io_failure("read", path, errno);
      }
      if (got == 0) break;
      filled += static_cast<std::size_t>(got);
      if (filled > limit) return too_large;
      if (filled == bytes.size()) bytes.resize(std::min(2 * bytes.size(), limit + 1));
    }
    bytes.resize(filled);
    return bytes;
  } catch (const std::bad_alloc&) {
    return Status(StatusCode::out_of_memory, fmt::format("no memory for the {} bytes of {}", info.st_size, path));
  }
}

Status make_directories(const std::string& directory) {
  if (directory.empty()) return {StatusCode::io_error, "cannot make a directory of the empty name"};
  if (is_directory(directory)) return Status::ok();
  for (std::size_t end = 0; end != std::string::npos;) {
    end = directory.find('/', end + 1);
    const std::string part = directory.substr(0, end);
    if (::mkdir(part.c_str(), 0700) == 0) continue;
    const int error = errno;
    if (is_directory(part)) continue;
    if (error == EEXIST) {
      return {StatusCode::io_error,
              fmt::format("cannot make directory {}: {} is there and is no directory", directory, part)};
    }
    return {StatusCode::io_error, fmt::format("cannot make directory {}: {}: {}", directory, part, error_text(error))};
  }
  return Status::ok();
}

Status publish_file(const std::string& directory, const std::string& name, const void* data, std::size_t size) {
  if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos) {
    return {StatusCode::io_error, fmt::format("cannot publish in {}: \"{}\" is no file name", directory, name)};
  }
  const Descriptor folder(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.is_open()) return io_failure("open directory", directory, errno);

  std::string temporary;
  int fd = -1;
  for (int attempt = 0; attempt < 16 && fd < 0; ++attempt) {
    temporary = temporary_file_name();
    fd = ::openat(folder.get(), temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0 && errno != EEXIST && errno != EINTR) break;
  }
  if (fd < 0) return io_failure("create a file in", directory, errno);

  Descriptor file(fd);
  Status status = write_and_rename(folder.get(), file.get(), temporary, directory, name, data, size);
  if (!status) {
    ::unlinkat(folder.get(), temporary.c_str(), 0);
    return status;
  }
  // Some file systems cannot sync a directory and say so; there is nothing more to be had from them.
  if (::fsync(folder.get()) != 0 && errno != EINVAL && errno != ENOTSUP) {
    return io_failure("fsync directory", directory, errno);
  }
  return Status::ok();
}

Result<std::vector<std::string>> list_directory(const std::string& directory) {
  Descriptor folder(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.is_open()) {
    if (errno == ENOENT) return Status(StatusCode::not_found, fmt::format("there is no directory {}", directory));
    return io_failure("open directory", directory, errno);
  }
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::fdopendir(folder.get()), ::closedir);
  if (!stream) return io_failure("read directory", directory, errno);
  folder.release();  // the stream closes it

  std::vector<std::string> names;
  for (;;) {
    errno = 0;
    const dirent* item = ::readdir(stream.get());
    if (item == nullptr) break;
    const std::string_view name = item->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  if (errno != 0) return io_failure("read directory", directory, errno);
  std::sort(names.begin(), names.end());
  return names;
}

Status remove_file(const std::string& path) {
  if (::unlink(path.c_str()) == 0 || errno == ENOENT || errno == ENOTDIR) return Status::ok();
  return io_failure("remove", path, errno);
}

}  // namespace gemvjit
