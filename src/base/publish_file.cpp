#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <system_error>

#include "src/base/descriptor.h"
#include "src/base/files.h"
#include "src/base/folder.h"

namespace gemvjit {
namespace {

Status io_failure(std::string_view what, const std::string& path, int error) {
  return {StatusCode::io_error, fmt::format("cannot {} {}: {}", what, path, std::generic_category().message(error))};
}

// One publication under way: the folder, the temporary in it, and the name that it is to get.
struct Target {
  const Folder& folder;
  const std::string& name;
  std::string temporary;

  int at() const { return folder.descriptor(); }
  std::string temporary_path() const { return folder.path_of(temporary); }
  std::string path() const { return folder.path_of(name); }
};

Status write_all(int fd, const void* data, std::size_t size, const std::string& path) {
  const auto* bytes = static_cast<const std::uint8_t*>(data);
  while (size > 0) {
    const ssize_t written = ::write(fd, bytes, size);
    if (written < 0) {
      if (errno == EINTR) continue;
      return io_failure("write", path, errno);
    }
    if (written == 0) return io_failure("write", path, ENOSPC);  // or this would go on for ever
    bytes += written;
    size -= static_cast<std::size_t>(written);
  }
  return Status::ok();
}

// What the file system gives back for what it was given. A file system that loses bytes without an error is caught
// here, before the name stands for them.
Status read_back(int fd, const void* data, std::size_t size, const std::string& path) {
  const auto* expected = static_cast<const std::uint8_t*>(data);
  std::array<std::uint8_t, 16384> piece{};
  std::size_t at = 0;
  for (;;) {
    const ssize_t got = ::pread(fd, piece.data(), piece.size(), static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return io_failure("read back", path, errno);
    const auto count = static_cast<std::size_t>(got);
    if (count == 0 && at == size) return Status::ok();
    if (count == 0 || count > size - at || std::memcmp(piece.data(), expected + at, count) != 0) {
      return {StatusCode::io_error, fmt::format("{} does not hold what was written to it", path)};
    }
    at += count;
  }
}

Status set_mode(int fd, mode_t mode, const std::string& path) {
  if (::fchmod(fd, mode) == 0) return Status::ok();
  const int error = errno;
  // A file system without modes refuses; what counts is the mode that the file has.
  struct stat info {};
  if (::fstat(fd, &info) == 0 && (info.st_mode & 0777) == mode) return Status::ok();
  return io_failure("set the mode of", path, error);
}

Status fill(const Target& target, Descriptor& file, const void* data, std::size_t size, mode_t mode) {
  const std::string path = target.temporary_path();
  if (mode != 0) GEMVJIT_TRY(set_mode(file.get(), mode, path));
  GEMVJIT_TRY(write_all(file.get(), data, size, path));
  // Before the name: after a crash it must not stand for a file whose bytes never reached the disk.
  if (::fsync(file.get()) != 0) return io_failure("fsync", path, errno);
  GEMVJIT_TRY(read_back(file.get(), data, size, path));
  if (const int error = file.close(); error != 0) return io_failure("close", path, error);  // NFS tells the rest here
  return Status::ok();
}

Result<Published> replace(const Target& target) {
  if (::renameat(target.at(), target.temporary.c_str(), target.at(), target.name.c_str()) == 0) {
    return Published::whole;
  }
  return io_failure("rename a temporary file to", target.path(), errno);
}

// Link the name to the temporary's file. unsupported where the file system has no links.
Result<Published> link_name(const Target& target) {
  const int result =
      ::linkat(target.at(), target.temporary.c_str(), target.at(), target.name.c_str(), 0) == 0 ? 0 : errno;
  if (result == EPERM || result == ENOTSUP || result == ENOSYS || result == EMLINK) {
    return Status(StatusCode::unsupported, "no links");
  }
  if (result != 0 && result != EEXIST) return io_failure("link a temporary file to", target.path(), result);
  // NFS may say EEXIST of a link that it made, when the first answer was lost: the file then has two names.
  struct stat info {};
  const bool ours =
      result == 0 ||
      (::fstatat(target.at(), target.temporary.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 && info.st_nlink == 2);
  if (!ours) return Published::already_there;
  if (::unlinkat(target.at(), target.temporary.c_str(), 0) != 0 && errno != ENOENT) {
    return io_failure("remove", target.temporary_path(), errno);
  }
  return Published::whole;
}

// Move the temporary to the name unless that is taken, by whichever way the file system has.
Result<Published> move_to_free_name(const Target& target) {
  if (::renameat2(target.at(), target.temporary.c_str(), target.at(), target.name.c_str(), RENAME_NOREPLACE) == 0) {
    return Published::whole;
  }
  if (errno == EEXIST) return Published::already_there;
  // EPERM: also by filters of system calls that do not know this one; where it is meant, the next way says so, too.
  if (errno != EINVAL && errno != ENOSYS && errno != ENOTSUP && errno != EPERM) {
    return io_failure("rename a temporary file to", target.path(), errno);
  }
  auto linked = link_name(target);
  if (linked || linked.status().code() != StatusCode::unsupported) return linked;
  struct stat info {};
  if (::fstatat(target.at(), target.name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0) return Published::already_there;
  if (errno != ENOENT) return io_failure("examine", target.path(), errno);
  return replace(target);
}

}  // namespace

std::string temporary_file_name(unsigned attempt) {
  std::uint64_t random = 0;
  if (::getrandom(&random, sizeof random, 0) != static_cast<ssize_t>(sizeof random)) {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    random = static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(now.tv_nsec);
  }
  return fmt::format("{}{}-{:016x}", temporary_file_prefix, ::getpid(), random + attempt);
}

Result<Published> Folder::publish(const std::string& name, const void* data, std::size_t size,
                                  const PublishOptions& options) const {
  if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos) {
    return Status(StatusCode::io_error, fmt::format("cannot publish in {}: \"{}\" is no file name", path_, name));
  }
  Target target{*this, name, ""};
  Descriptor file(-1);
  for (unsigned attempt = 0; attempt < 16 && !file.is_open(); ++attempt) {
    target.temporary = temporary_file_name(attempt);
    file = open_file(target.temporary, O_RDWR | O_CREAT | O_EXCL, options.mode != 0 ? 0600 : 0644);
    if (!file.is_open() && errno != EEXIST && errno != EINTR) break;
  }
  if (!file.is_open()) return io_failure("create a file in", path_, errno);

  const Status filled = fill(target, file, data, size, options.mode);
  Result<Published> published = Published::whole;
  if (!filled) {
    published = filled;
  } else {
    published = options.replace ? replace(target) : move_to_free_name(target);
  }
  if (!published || *published == Published::already_there) {
    ::unlinkat(target.at(), target.temporary.c_str(), 0);  // if this fails too, the sweep of old temporaries has it
    return published;
  }
  GEMVJIT_TRY(sync());
  return published;
}

Result<Published> publish_file(const std::string& directory, const std::string& name, const void* data,
                               std::size_t size, const PublishOptions& options) {
  GEMVJIT_TRY_ASSIGN(const Folder folder, Folder::open(directory));
  return folder.publish(name, data, size, options);
}

Status publish_file(const std::string& directory, const std::string& name, const void* data, std::size_t size) {
  return publish_file(directory, name, data, size, PublishOptions{}).status();
}

}  // namespace gemvjit
