#include "cache/root_safety.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <optional>
#include <system_error>
#include <vector>

#include "cache/layout.h"
#include "src/base/files.h"
#include "src/base/write_access.h"

namespace gemvjit {
namespace {

constexpr uid_t root_user = 0;

Status refuse(const std::string& root, std::string reason) {
  return {StatusCode::cache_not_writable, fmt::format("{} is not used: {}", root, reason)};
}

// For what is found on the way to it, or below it.
Status refuse_for(const std::string& root, const std::string& path, const std::string& reason) {
  return refuse(root, path == root ? reason : fmt::format("{}: {}", path, reason));
}

// "/a/b" gives "/", "/a", "/a/b"; a relative path is taken from the current directory.
std::vector<std::string> prefixes_of(std::string path) {
  if (path.empty() || path.front() != '/') {
    char here[PATH_MAX];
    if (::getcwd(here, sizeof here) != nullptr) path = std::string(here) + "/" + path;
  }
  std::vector<std::string> prefixes = {"/"};
  for (std::size_t end = 0; end != std::string::npos;) {
    end = path.find('/', end + 1);
    const std::string prefix = path.substr(0, end);
    if (!prefix.empty() && prefix.back() != '/') prefixes.push_back(prefix);
  }
  return prefixes;
}

// For whom a path is examined.
struct Examination {
  uid_t user;
  CacheTrust trust;
  std::optional<gid_t> shared_with = std::nullopt;  // a shared root's group: it may write on the way as well

  bool trusts(uid_t owner) const { return owner == user || owner == root_user; }
};

bool is_of_process(gid_t group) {
  if (group == ::getegid()) return true;
  std::vector<gid_t> groups(static_cast<std::size_t>(std::max(0, ::getgroups(0, nullptr))));
  const int count = ::getgroups(static_cast<int>(groups.size()), groups.data());
  groups.resize(static_cast<std::size_t>(std::max(0, count)));
  return std::find(groups.begin(), groups.end(), group) != groups.end();
}

// A folder on the way: whoever can rename what is in it can put another folder in the cache's place.
std::string danger_on_the_way(const std::string& path, const struct stat& info, const Examination& of) {
  return who_else_may_write(
      path, info, {.user = of.user, .group = GroupWrite::if_private, .leads_on = true, .shared_with = of.shared_with});
}

// The cache's own folders.
std::string danger_of_folder(const std::string& path, const struct stat& info, const Examination& of) {
  if (!S_ISDIR(info.st_mode)) return "";  // of no use, but no danger: the store says so
  const bool shared = of.trust == CacheTrust::shared;
  if (!shared && info.st_uid != of.user) {
    return fmt::format("it belongs to user {}, not to {} (declare it shared, or name another folder)", info.st_uid,
                       of.user);
  }
  // Who may put kernels there is in the group, and so is who made it: else anybody could make one for others to find.
  if (shared && !of.trusts(info.st_uid) && !is_of_process(info.st_gid)) {
    return fmt::format("it belongs to user {} and group {}, of which this process is not", info.st_uid, info.st_gid);
  }
  const WriteRule rule{.user = of.user, .group = shared ? GroupWrite::any : GroupWrite::never, .any_owner = shared};
  const std::string danger = who_else_may_write(path, info, rule);
  if (danger.empty() || shared) return danger;
  // Whether the group alone stands against it.
  const bool for_group = who_else_may_write(path, info, {.user = of.user, .group = GroupWrite::any}).empty();
  return for_group ? danger + ", or declare it shared" : danger;
}

// The group of what is there of the path, which what is made below it gets.
std::optional<gid_t> group_of(std::string path) {
  struct stat info {};
  while (::stat(path.c_str(), &info) != 0) {
    const std::size_t slash = path.find_last_of('/');
    if (errno != ENOENT || slash == std::string::npos || slash == 0) return std::nullopt;
    path.resize(slash);
  }
  return info.st_gid;
}

// What a link says, from where it is; "" if it cannot be read.
std::string target_of(const std::string& link) {
  char text[PATH_MAX];
  const ssize_t size = ::readlink(link.c_str(), text, sizeof text);
  if (size <= 0 || size == sizeof text) return "";
  const std::string target(text, static_cast<std::size_t>(size));
  return target.front() == '/' ? target : link.substr(0, link.rfind('/') + 1) + target;
}

// `leads_on`: the path is only on the way to the cache folder.
Status check(const std::string& root, const Examination& of, bool leads_on) {
  const std::vector<std::string> prefixes = prefixes_of(root);
  for (std::size_t i = 0; i < prefixes.size(); ++i) {
    const std::string& path = prefixes[i];
    struct stat info {};
    if (::lstat(path.c_str(), &info) != 0) {
      if (errno == ENOENT) return Status::ok();  // it will be made, with mode 0700
      return refuse(root, fmt::format("{} cannot be examined: {}", path, std::generic_category().message(errno)));
    }
    if (S_ISLNK(info.st_mode)) {
      if (!of.trusts(info.st_uid)) {
        return refuse(root, fmt::format("{} is a link of user {}", path, info.st_uid));
      }
      if (::stat(path.c_str(), &info) != 0) {
        return refuse(root, fmt::format("the link {} leads nowhere: {}", path, std::generic_category().message(errno)));
      }
      // Where the link leads to has a way of its own, on which there may be links of others: it is gone hop by hop.
      const std::string target = target_of(path);
      if (target.empty()) return refuse(root, fmt::format("the link {} cannot be read", path));
      if (const Status beyond = check(target, of, leads_on || i + 1 < prefixes.size()); !beyond) {
        return refuse(root, beyond.message());
      }
    }
    const bool is_root = !leads_on && i + 1 == prefixes.size();
    const std::string danger = is_root ? danger_of_folder(path, info, of) : danger_on_the_way(path, info, of);
    if (!danger.empty()) return refuse_for(root, path, danger);
  }
  return Status::ok();
}

// The whole path to a folder or file, which is itself held to the rule without the sticky bit's leniency.
Status check_whole_path(const std::string& path, uid_t user, GroupWrite group) {
  GEMVJIT_TRY(check(path, {user, CacheTrust::owner}, true));
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return Status::ok();  // whoever opens it says what is wrong
  const std::string danger = who_else_may_write(path, info, {.user = user, .group = group});
  return danger.empty() ? Status::ok() : refuse(path, danger);
}

}  // namespace

Status check_cache_root(const std::string& root, CacheTrust trust, uid_t user) {
  const std::string path = without_end_slashes(root);
  Examination of{user, trust};
  if (trust == CacheTrust::shared) of.shared_with = group_of(path);
  if (const Status status = check(path, of, false); !status) return status;
  // The format's folder below it: made by us, but whoever may write in the root of a shared cache may have made it.
  struct stat info {};
  const std::string versioned = version_directory(path);
  if (::lstat(versioned.c_str(), &info) != 0) return Status::ok();
  if (S_ISLNK(info.st_mode)) return refuse(path, fmt::format("{} is a link", versioned));
  const std::string danger = danger_of_folder(versioned, info, of);
  return danger.empty() ? Status::ok() : refuse_for(path, versioned, danger);
}

Status check_cache_root(const std::string& root, CacheTrust trust) {
  return check_cache_root(root, trust, ::geteuid());
}

Status check_read_only_layer(const std::string& path, uid_t user) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return Status::ok();  // whoever reads it says what is wrong
  return check_whole_path(path, user, GroupWrite::if_private);
}

Status check_output_folder(const std::string& path) {
  return check_whole_path(path, ::geteuid(), GroupWrite::if_private);
}

Status check_read_only_layer(const std::string& path) { return check_read_only_layer(path, ::geteuid()); }

// Nothing is looser for keys than for kernels, and one thing is stricter: no group may write, be it the user's own.
Status check_trust_path(const std::string& path, uid_t user) { return check_whole_path(path, user, GroupWrite::never); }

Status check_trust_path(const std::string& path) { return check_trust_path(path, ::geteuid()); }

}  // namespace gemvjit
