#include "src/base/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <system_error>

#include "src/base/folder.h"

namespace gemvjit {
namespace {

std::string error_text(int error) { return std::generic_category().message(error); }

Status io_failure(std::string_view what, const std::string& path, int error) {
  return {StatusCode::io_error, fmt::format("cannot {} {}: {}", what, path, error_text(error))};
}

std::string_view kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
  return "no regular file";
}

Result<Bytes> read_open_file(const Descriptor& file, int error, const std::string& path, std::size_t limit,
                             const FileCheck& check) {
  limit = std::min<std::size_t>(limit, PTRDIFF_MAX);  // so that limit + 1 is a number
  if (!file.is_open()) {
    if (error == ENOENT) return Status(StatusCode::not_found, fmt::format("there is no file {}", path));
    if (error == ELOOP) return Status(StatusCode::io_error, fmt::format("{} is a symbolic link, not followed", path));
    return io_failure("open", path, error);
  }
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) return io_failure("examine", path, errno);
  if (!S_ISREG(info.st_mode)) {
    return Status(StatusCode::io_error, fmt::format("{} is {}, expected a regular file", path, kind_of(info.st_mode)));
  }
  if (check) GEMVJIT_TRY(check(file.get(), info));
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
    // Fewer bytes than the file has, by its own account: a network file system in the middle of a change, or worse.
    if (filled < static_cast<std::uint64_t>(info.st_size)) {
      return Status(StatusCode::io_error, fmt::format("{} ended after {} of its {} bytes", path, filled, info.st_size));
    }
    bytes.resize(filled);
    return bytes;
  } catch (const std::bad_alloc&) {
    return Status(StatusCode::out_of_memory, fmt::format("no memory for the {} bytes of {}", info.st_size, path));
  }
}

}  // namespace

Result<Bytes> read_file(const std::string& path, std::size_t limit, const FileCheck& check) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  return read_open_file(file, errno, path, limit, check);
}

Result<Bytes> Folder::read_file(const std::string& name, std::size_t limit, const FileCheck& check) const {
  const Descriptor file = open_file(name, O_RDONLY | O_NONBLOCK);
  return read_open_file(file, errno, path_of(name), limit, check);
}

Status make_directories(const std::string& directory) { return Folder::make(directory, 0700).status(); }

std::string user_config_folder(const std::string& xdg_config_home, const std::string& home) {
  if (xdg_config_home.starts_with('/')) return xdg_config_home + "/gemvjit";
  return home.starts_with('/') ? home + "/.config/gemvjit" : "";
}

std::string without_end_slashes(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

SplitPath split_path(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return {".", path};
  return {slash == 0 ? "/" : path.substr(0, slash), path.substr(slash + 1)};
}

Status check_replaceable(const std::string& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0 || S_ISREG(info.st_mode)) return Status::ok();
  return {StatusCode::io_error, fmt::format("{} is {}: it is not replaced", path, kind_of(info.st_mode))};
}

Result<std::vector<std::string>> list_directory(const std::string& directory) {
  GEMVJIT_TRY_ASSIGN(const Folder folder, Folder::open(directory));
  return folder.list();
}

bool is_no_folder(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 ? !S_ISDIR(info.st_mode) : errno == ENOENT || errno == ENOTDIR;
}

Status remove_file(const std::string& path) {
  const SplitPath split = split_path(path);
  const Result<Folder> folder = Folder::open(split.folder);
  if (!folder) return is_no_folder(split.folder) ? Status::ok() : folder.status();
  return folder->remove(split.name);
}

}  // namespace gemvjit
