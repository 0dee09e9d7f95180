#include "src/base/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <new>
#include <system_error>

#include "src/base/descriptor.h"

namespace gemvjit {
namespace {

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

// The umask may have taken bits of mode 0700 from a directory that was just made.
Status undo_umask(const std::string& made) {
  struct stat info {};
  if (::lstat(made.c_str(), &info) != 0) {
    if (errno == ENOENT) return Status::ok();  // removed again by somebody; the next step says so
    return io_failure("examine directory", made, errno);
  }
  if (!S_ISDIR(info.st_mode) || (info.st_mode & 0700) == 0700) return Status::ok();
  if (::chmod(made.c_str(), 0700) != 0) return io_failure("set the mode of directory", made, errno);
  return Status::ok();
}

// mkdir gives no bit that the umask takes, and no setgid bit. Others must not meet the folder before it has its mode
// and its group, so it is made under another name. The answer is an errno.
int make_with_mode(const std::string& path, mode_t mode) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) == 0) return EEXIST;
  const std::string parent = split_path(path).folder;
  std::string temporary;
  int error = EEXIST;
  for (unsigned attempt = 0; attempt < 16 && error == EEXIST; ++attempt) {
    temporary = parent + "/" + temporary_file_name(attempt);
    error = ::mkdir(temporary.c_str(), 0700) == 0 ? 0 : errno;
  }
  if (error != 0) return error;
  // Of no effect where this user is not in that group; and a file system without modes refuses the mode that it has.
  if (::stat(parent.c_str(), &info) == 0) (void)!::chown(temporary.c_str(), static_cast<uid_t>(-1), info.st_gid);
  if (::chmod(temporary.c_str(), mode) != 0) {
    error = errno;
    if (::stat(temporary.c_str(), &info) == 0 && (info.st_mode & 0777) == (mode & 0777)) error = 0;
  }
  if (error == 0) {
    const int done = ::renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, path.c_str(), RENAME_NOREPLACE);
    error = done == 0 ? 0 : errno;
    // A plain rename takes the place of an empty folder at the most.
    if (error == EINVAL || error == ENOSYS || error == ENOTSUP || error == EPERM) {
      error = std::rename(temporary.c_str(), path.c_str()) == 0 ? 0 : errno;
    }
  }
  if (error != 0) (void)::rmdir(temporary.c_str());
  return error;
}

}  // namespace

Result<Bytes> read_file(const std::string& path, std::size_t limit) { return read_file(path, limit, nullptr); }

Result<Bytes> read_file(const std::string& path, std::size_t limit,
                        const std::function<Status(const struct stat& info)>& check) {
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
  if (check) GEMVJIT_TRY(check(info));
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

Status make_directories(const std::string& directory, mode_t mode) {
  if (directory.empty()) return {StatusCode::io_error, "cannot make a directory of the empty name"};
  if (is_directory(directory)) return Status::ok();
  for (std::size_t end = 0; end != std::string::npos;) {
    end = directory.find('/', end + 1);
    const std::string part = directory.substr(0, end);
    int error = 0;
    if (mode != 0700) {
      error = make_with_mode(part, mode);
    } else if (::mkdir(part.c_str(), 0700) == 0) {
      GEMVJIT_TRY(undo_umask(part));
    } else {
      error = errno;
    }
    if (error == 0) continue;
    if (is_directory(part)) continue;
    if (error == EEXIST) {
      return {StatusCode::io_error,
              fmt::format("cannot make directory {}: {} is there and is no directory", directory, part)};
    }
    return {StatusCode::io_error, fmt::format("cannot make directory {}: {}: {}", directory, part, error_text(error))};
  }
  return Status::ok();
}

std::string user_config_folder(const std::string& xdg_config_home, const std::string& home) {
  if (xdg_config_home.starts_with('/')) return xdg_config_home + "/gemvjit";
  return home.starts_with('/') ? home + "/.config/gemvjit" : "";
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
