#include "cache/entry_guard.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace gemvjit {
namespace {

constexpr uid_t root_user = 0;
constexpr int folders_below_root = 3;

Status refuse(const std::string& path, const std::string& reason) {
  return {StatusCode::io_error, fmt::format("{} is not trusted: {}", path, reason)};
}

}  // namespace

EntryGuard EntryGuard::of_cache(CacheTrust trust) {
  return {trust == CacheTrust::shared ? Kind::shared : Kind::owner, ::geteuid(), ::getegid()};
}

EntryGuard EntryGuard::of_anyone() { return {Kind::links, ::geteuid(), ::getegid()}; }

EntryGuard EntryGuard::of_layer() { return {Kind::layer, ::geteuid(), ::getegid()}; }

WriteRule EntryGuard::rule() const {
  const bool shared = kind == Kind::shared;
  return {.user = user,
          .group = shared                ? GroupWrite::any
                   : kind == Kind::layer ? GroupWrite::if_private
                                         : GroupWrite::never,
          .any_owner = shared};
}

Status EntryGuard::check_file(const std::string& path, const struct stat& info) const {
  if (kind == Kind::links) return Status::ok();
  const std::string danger = who_else_may_write(path, info, rule());
  return danger.empty() ? Status::ok() : refuse(path, danger);
}

Status EntryGuard::check_file(int fd, const std::string& path, const struct stat& info) const {
  if (kind == Kind::links) return Status::ok();
  const std::string danger = who_else_may_write(fd, info, rule());
  return danger.empty() ? Status::ok() : refuse(path, danger);
}

Status EntryGuard::check_folder(const std::string& folder) const {
  struct stat info {};
  if (::lstat(folder.c_str(), &info) != 0) {
    if (errno == ENOENT) return Status::ok();
    return refuse(folder, fmt::format("it cannot be examined: {}", std::generic_category().message(errno)));
  }
  if (S_ISLNK(info.st_mode)) {
    if (kind != Kind::layer) return refuse(folder, "it is a link");
    if (info.st_uid != user && info.st_uid != root_user) {
      return refuse(folder, fmt::format("it is a link of user {}", info.st_uid));
    }
    if (::stat(folder.c_str(), &info) != 0) return Status::ok();  // leads nowhere: nothing is read through it
  }
  return S_ISDIR(info.st_mode) ? check_file(folder, info) : Status::ok();
}

Status EntryGuard::check_way(const std::string& entry_path) const {
  std::string folder = entry_path;
  for (int i = 0; i < folders_below_root; ++i) {
    const std::size_t slash = folder.rfind('/');
    if (slash == std::string::npos || slash == 0) return Status::ok();
    folder.resize(slash);
    GEMVJIT_TRY(check_folder(folder));
  }
  return Status::ok();
}

}  // namespace gemvjit
