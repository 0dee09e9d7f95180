#include "cache/entry_guard.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/folder.h"

namespace gemvjit {
namespace {

constexpr uid_t root_user = 0;

Status refuse(const std::string& path, const std::string& reason) {
  return {StatusCode::io_error, fmt::format("{} is not trusted: {}", path, reason)};
}

}  // namespace

EntryGuard EntryGuard::of_cache(CacheTrust trust) {
  return {trust == CacheTrust::shared ? Kind::shared : Kind::owner, ::geteuid()};
}

EntryGuard EntryGuard::of_anyone() { return {Kind::anyone, ::geteuid()}; }

EntryGuard EntryGuard::of_layer() { return {Kind::layer, ::geteuid()}; }

Status EntryGuard::check_file(const std::string& path, int descriptor, const struct stat& info) const {
  if (kind == Kind::anyone) return Status::ok();
  WriteRule rule;
  rule.user = user;
  rule.any_owner = kind == Kind::shared;
  rule.group = kind == Kind::shared  ? GroupWrite::any
               : kind == Kind::layer ? GroupWrite::if_private
                                     : GroupWrite::never;
  const std::string danger = who_else_may_write(descriptor, info, rule);
  return danger.empty() ? Status::ok() : refuse(path, danger);
}

Status EntryGuard::check_folder(const Folder& folder) const {
  if (kind == Kind::anyone) return Status::ok();
  GEMVJIT_TRY_ASSIGN(const struct stat info, folder.examine());
  return check_file(folder.path(), folder.descriptor(), info);
}

Status EntryGuard::check_link(const std::string& path, const struct stat& info) const {
  if (info.st_uid == user || info.st_uid == root_user) return Status::ok();
  return refuse(path, fmt::format("it is a link of user {}", info.st_uid));
}

}  // namespace gemvjit
