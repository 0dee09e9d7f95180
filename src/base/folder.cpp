#include "src/base/folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string_view>
#include <system_error>

namespace gemvjit {
namespace {

constexpr mode_t private_mode = 0700;

Status io_failure(std::string_view what, const std::string& path, int error) {
  return {StatusCode::io_error, fmt::format("cannot {} {}: {}", what, path, std::generic_category().message(error))};
}

bool is_one_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string_view::npos;
}

// A file system without modes refuses to set any; what counts is the mode that the folder has.
Status set_mode(int fd, mode_t mode, const std::string& path) {
  if (::fchmod(fd, mode) == 0) return Status::ok();
  const int error = errno;
  struct stat info {};
  if (::fstat(fd, &info) == 0 && (info.st_mode & 0777) == (mode & 0777)) return Status::ok();
  return io_failure("set the mode of", path, error);
}

// Give the new folder its name, which must be free.
int rename_to_free_name(int from, const char* name, int to, const char* new_name) {
  if (::renameat2(from, name, to, new_name, RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS && errno != ENOTSUP && errno != EPERM) return errno;
  // A plain rename of a folder takes the place of an empty folder at the most.
  return ::renameat(from, name, to, new_name) == 0 ? 0 : errno;
}

}  // namespace

Result<Folder> Folder::open(const std::string& path) {
  Descriptor folder(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (folder.is_open()) return Folder(std::move(folder), path);
  if (errno == ENOENT) return Status(StatusCode::not_found, fmt::format("there is no directory {}", path));
  return io_failure("open directory", path, errno);
}

Result<Folder> Folder::open_checked(const std::string& path) { return walk(path, std::nullopt); }

Result<Folder> Folder::make(const std::string& path, mode_t mode) {
  if (path.empty()) return Status(StatusCode::io_error, "cannot make a directory of the empty name");
  Result<Folder> folder = walk(path, mode);
  if (folder) return folder;
  return Status(StatusCode::io_error, fmt::format("cannot make directory {}: {}", path, folder.status().message()));
}

// Part by part, links included, so that each step is taken where the last one was examined.
Result<Folder> Folder::walk(const std::string& path, std::optional<mode_t> mode) {
  constexpr int most_links = 40;  // as the kernel follows
  std::vector<std::string> left;  // the next part last
  const auto add_parts = [&left](std::string_view text) {
    for (std::size_t end = text.size(); end != 0;) {
      const std::size_t slash = text.rfind('/', end - 1);
      const std::size_t begin = slash == std::string_view::npos ? 0 : slash + 1;
      if (end > begin && text.substr(begin, end - begin) != ".") left.emplace_back(text.substr(begin, end - begin));
      end = slash == std::string_view::npos ? 0 : slash;
    }
  };
  add_parts(path);
  Result<Folder> at = open(path.starts_with('/') ? "/" : ".");
  std::size_t after_link = SIZE_MAX;  // so many parts are left behind those that a link brought
  for (int links = 0; at && !left.empty();) {
    const std::string part = left.back();
    left.pop_back();
    const bool is_of_link = left.size() >= after_link;
    if (!is_of_link) after_link = SIZE_MAX;
    if (part == "..") {
      at = at->open_name(part, 0);
      continue;
    }
    Descriptor found = at->open_file(part, O_PATH);
    if (!found.is_open()) {
      // Where a link leads must be there: a folder is not made at another place than the one that was named.
      const bool is_made = errno == ENOENT && mode && !is_of_link;
      at = is_made ? at->make_folder(part, *mode) : at->open_folder(part);
      continue;
    }
    struct stat info {};
    if (::fstat(found.get(), &info) != 0) return io_failure("examine", at->path_of(part), errno);
    if (!S_ISLNK(info.st_mode)) {
      at = S_ISDIR(info.st_mode) ? Folder(std::move(found), at->path_of(part)) : at->open_folder(part);
      continue;
    }
    if (info.st_uid != ::geteuid() && info.st_uid != 0) {
      return Status(StatusCode::io_error, fmt::format("{} is a link of user {}", at->path_of(part), info.st_uid));
    }
    std::array<char, PATH_MAX> target{};
    const ssize_t size = ::readlinkat(found.get(), "", target.data(), target.size());
    if (size <= 0 || ++links > most_links) {
      return Status(StatusCode::io_error, at->path_of(part) + " is a link that cannot be followed");
    }
    if (target.front() == '/') at = open("/");
    if (!is_of_link) after_link = left.size();
    add_parts(std::string_view(target.data(), static_cast<std::size_t>(size)));
  }
  if (at) at->path_ = path;
  return at;
}

Result<Folder> Folder::open_name(const std::string& name, int flags) const {
  Descriptor folder(::openat(descriptor(), name.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC | flags));
  if (folder.is_open()) return Folder(std::move(folder), path_of(name));
  const int error = errno;
  const std::string path = path_of(name);
  if (error == ENOENT) {
    struct stat info {};
    if (::fstatat(descriptor(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(info.st_mode)) {
      return Status(StatusCode::io_error, fmt::format("{} is there and is a link that leads nowhere", path));
    }
    return Status(StatusCode::not_found, fmt::format("there is no directory {}", path));
  }
  if (error == ENOTDIR || error == ELOOP) {
    struct stat info {};
    const bool is_link =
        ::fstatat(descriptor(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(info.st_mode);
    return Status(StatusCode::io_error, is_link && (flags & O_NOFOLLOW) != 0
                                            ? fmt::format("{} is not trusted: it is a link", path)
                                            : fmt::format("{} is there and is no directory", path));
  }
  return io_failure("open directory", path, error);
}

Result<Folder> Folder::open_folder(const std::string& name) const {
  if (!is_one_name(name)) return Status(StatusCode::io_error, fmt::format("\"{}\" is no name of a folder", name));
  return open_name(name, O_NOFOLLOW);
}

Result<Folder> Folder::open_folder_through_link(const std::string& name) const {
  if (!is_one_name(name)) return Status(StatusCode::io_error, fmt::format("\"{}\" is no name of a folder", name));
  return open_name(name, 0);
}

Result<Folder> Folder::make_folder(const std::string& name, mode_t mode) const {
  Result<Folder> there = open_folder(name);
  if (there || there.status().code() != StatusCode::not_found) return there;
  GEMVJIT_TRY(mode == private_mode ? make_private(name) : make_for_others(name, mode));
  return open_folder(name);
}

// Readable by nobody else from the first moment. The umask may have taken rights of its own user; they are given back
// to a folder of this user that nobody else has a right to, so that it does no harm if that is another one by now.
Status Folder::make_private(const std::string& name) const {
  if (::mkdirat(descriptor(), name.c_str(), private_mode) != 0) {
    return errno == EEXIST ? Status::ok() : io_failure("make directory", path_of(name), errno);
  }
  return undo_umask(name);
}

Status Folder::undo_umask(const std::string& name) const {
  GEMVJIT_TRY_ASSIGN(const Folder made, open_folder(name));
  GEMVJIT_TRY_ASSIGN(const struct stat info, made.examine());
  if ((info.st_mode & 0777) == private_mode || info.st_uid != ::geteuid() || (info.st_mode & 077) != 0) {
    return Status::ok();
  }
  // fchmod takes no O_PATH descriptor, and without rights there is no other.
  const std::string link = fmt::format("/proc/self/fd/{}", made.descriptor());
  if (::fchmodat(AT_FDCWD, link.c_str(), private_mode, 0) == 0) return Status::ok();
  return io_failure("set the mode of", path_of(name), errno);
}

// Mode and group are given to a folder that was made in a private one, where nobody else can put another in its place
// meanwhile; only then it moves to its name.
Status Folder::make_for_others(const std::string& name, mode_t mode) const {
  std::string temporary;
  int error = EEXIST;
  for (unsigned attempt = 0; attempt < 16 && error == EEXIST; ++attempt) {
    temporary = temporary_file_name(attempt);
    struct stat info {};
    if (::fstatat(descriptor(), temporary.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0) continue;
    const Status made = make_private(temporary);
    if (!made) return made;
    error = 0;
  }
  if (error != 0) return io_failure("make directory", path_of(temporary), error);

  const auto build = [&]() -> Status {
    GEMVJIT_TRY_ASSIGN(const struct stat own, examine());
    GEMVJIT_TRY_ASSIGN(const Folder inner, open_folder(temporary));
    GEMVJIT_TRY_ASSIGN(const struct stat info, inner.examine());
    if (info.st_uid != ::geteuid() || (info.st_mode & 077) != 0) {
      return {StatusCode::io_error, fmt::format("{} was exchanged while it was made", inner.path())};
    }
    // Another folder of this user's may have come in the place of the temporary: what is in it is not ours to change.
    if (::mkdirat(inner.descriptor(), name.c_str(), private_mode) != 0) {
      return io_failure("make directory", inner.path_of(name), errno);
    }
    GEMVJIT_TRY(inner.undo_umask(name));
    const Descriptor made(::openat(inner.descriptor(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    Status status = made.is_open() ? Status::ok() : io_failure("open directory", inner.path_of(name), errno);
    // Of no effect where this user is not in that group.
    if (status) (void)!::fchown(made.get(), static_cast<uid_t>(-1), own.st_gid);
    if (status) status = set_mode(made.get(), mode, path_of(name));
    if (status) {
      const int moved = rename_to_free_name(inner.descriptor(), name.c_str(), descriptor(), name.c_str());
      if (moved == 0) return status;
      // EEXIST, ENOTEMPTY: another was faster, and the caller looks at that one.
      if (moved != EEXIST && moved != ENOTEMPTY) status = io_failure("make directory", path_of(name), moved);
    }
    (void)::unlinkat(inner.descriptor(), name.c_str(), AT_REMOVEDIR);
    return status;
  };
  const Status built = build();
  (void)::unlinkat(descriptor(), temporary.c_str(), AT_REMOVEDIR);
  return built;
}

Result<struct stat> Folder::examine(const std::string& name) const {
  struct stat info {};
  if (::fstatat(descriptor(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0) return info;
  if (errno == ENOENT) return Status(StatusCode::not_found, fmt::format("there is no file {}", path_of(name)));
  return io_failure("examine", path_of(name), errno);
}

Result<struct stat> Folder::examine() const {
  struct stat info {};
  if (::fstat(descriptor(), &info) == 0) return info;
  return io_failure("examine", path_, errno);
}

Result<std::vector<std::string>> Folder::list() const {
  Descriptor folder(::openat(descriptor(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.is_open()) return io_failure("open directory", path_, errno);
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::fdopendir(folder.get()), ::closedir);
  if (!stream) return io_failure("read directory", path_, errno);
  folder.release();  // the stream closes it

  std::vector<std::string> names;
  for (;;) {
    errno = 0;
    const dirent* item = ::readdir(stream.get());
    if (item == nullptr) break;
    const std::string_view name = item->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  if (errno != 0) return io_failure("read directory", path_, errno);
  std::sort(names.begin(), names.end());
  return names;
}

Descriptor Folder::open_file(const std::string& name, int flags, mode_t mode) const {
  return Descriptor(::openat(descriptor(), name.c_str(), flags | O_NOFOLLOW | O_CLOEXEC, mode));
}

Status Folder::remove(const std::string& name) const {
  if (::unlinkat(descriptor(), name.c_str(), 0) == 0 || errno == ENOENT) return Status::ok();
  return io_failure("remove", path_of(name), errno);
}

Status Folder::move(const std::string& name, const Folder& to, const std::string& new_name) const {
  if (::renameat(descriptor(), name.c_str(), to.descriptor(), new_name.c_str()) == 0) return Status::ok();
  const int error = errno;
  if (error == ENOENT) return {StatusCode::not_found, fmt::format("there is no file {}", path_of(name))};
  return {StatusCode::io_error, fmt::format("cannot move {} to {}: {}", path_of(name), to.path_of(new_name),
                                            std::generic_category().message(error))};
}

Status Folder::sync() const {
  const Descriptor folder(::openat(descriptor(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.is_open()) return io_failure("open directory", path_, errno);
  if (::fsync(folder.get()) == 0 || errno == EINVAL || errno == ENOTSUP) return Status::ok();
  return io_failure("fsync directory", path_, errno);
}

}  // namespace gemvjit
