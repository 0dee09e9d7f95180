#include "cache/root_safety.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <system_error>
#include <vector>

#include "cache/layout.h"

namespace gemvjit {
namespace {

constexpr uid_t root_user = 0;

struct User {
  uid_t uid;
  gid_t gid;
};

Status refuse(const std::string& root, std::string reason) {
  return {StatusCode::cache_not_writable, fmt::format("{} is not used: {}", root, reason)};
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

bool is_trusted(uid_t owner, const User& user) { return owner == user.uid || owner == root_user; }

// A folder on the way: whoever can rename what is in it can put another folder in the cache's place. The sticky bit
// forbids that to others; a folder of the user's own group is taken for private, as with a umask of 002.
std::string danger_on_the_way(const std::string& path, const struct stat& info, const User& user) {
  if (!is_trusted(info.st_uid, user)) return fmt::format("{} belongs to user {}", path, info.st_uid);
  if ((info.st_mode & S_ISVTX) != 0) return "";
  if ((info.st_mode & S_IWOTH) != 0) return fmt::format("all users may write in {}", path);
  const bool own_group = info.st_gid == user.gid || info.st_gid == root_user;
  if ((info.st_mode & S_IWGRP) != 0 && !own_group) return fmt::format("group {} may write in {}", info.st_gid, path);
  return "";
}

// The cache's own folders.
std::string danger_of_folder(const std::string& path, const struct stat& info, CacheTrust trust, const User& user) {
  if (!S_ISDIR(info.st_mode)) return "";  // of no use, but no danger: the store says so
  if ((info.st_mode & S_IWOTH) != 0) return fmt::format("all users may write in {} (chmod o-w)", path);
  if (trust == CacheTrust::shared) return "";
  if (info.st_uid != user.uid) {
    return fmt::format("{} belongs to user {}, not to {} (declare it shared, or name another folder)", path,
                       info.st_uid, user.uid);
  }
  if ((info.st_mode & S_IWGRP) != 0) {
    return fmt::format("its group may write in {} (chmod g-w, or declare it shared)", path);
  }
  return "";
}

// `leads_on`: the path is only on the way to the cache folder.
Status check(const std::string& root, CacheTrust trust, const User& user, bool leads_on) {
  const std::vector<std::string> prefixes = prefixes_of(root);
  for (std::size_t i = 0; i < prefixes.size(); ++i) {
    const std::string& path = prefixes[i];
    struct stat info {};
    if (::lstat(path.c_str(), &info) != 0) {
      if (errno == ENOENT) return Status::ok();  // it will be made, with mode 0700
      return refuse(root, fmt::format("{} cannot be examined: {}", path, std::generic_category().message(errno)));
    }
    if (S_ISLNK(info.st_mode)) {
      if (!is_trusted(info.st_uid, user)) {
        return refuse(root, fmt::format("{} is a link of user {}", path, info.st_uid));
      }
      if (::stat(path.c_str(), &info) != 0) {
        return refuse(root, fmt::format("the link {} leads nowhere: {}", path, std::generic_category().message(errno)));
      }
      char real[PATH_MAX];
      // Where the link leads to has a way of its own.
      if (::realpath(path.c_str(), real) != nullptr && path != real) {
        if (const Status beyond = check(real, trust, user, leads_on || i + 1 < prefixes.size()); !beyond) {
          return refuse(root, beyond.message());
        }
      }
    }
    const bool is_root = !leads_on && i + 1 == prefixes.size();
    const std::string danger =
        is_root ? danger_of_folder(path, info, trust, user) : danger_on_the_way(path, info, user);
    if (!danger.empty()) return refuse(root, danger);
  }
  return Status::ok();
}

}  // namespace

Status check_cache_root(const std::string& root, CacheTrust trust, uid_t user, gid_t group) {
  std::string path = root;
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  const User who{user, group};
  if (const Status status = check(path, trust, who, false); !status) return status;
  // The format's folder below it: made by us, but whoever may write in the root of a shared cache may have made it.
  struct stat info {};
  const std::string versioned = version_directory(path);
  if (::lstat(versioned.c_str(), &info) != 0) return Status::ok();
  if (S_ISLNK(info.st_mode)) return refuse(path, fmt::format("{} is a link", versioned));
  const std::string danger = danger_of_folder(versioned, info, trust, who);
  return danger.empty() ? Status::ok() : refuse(path, danger);
}

Status check_read_only_layer(const std::string& path, uid_t user, gid_t group) {
  const User who{user, group};
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return Status::ok();  // whoever reads it says what is wrong
  if (const Status way = check(path, CacheTrust::shared, who, true); !way) return way;
  const std::string danger = danger_on_the_way(path, info, who);
  if (!danger.empty()) return refuse(path, danger);
  if ((info.st_mode & S_IWOTH) != 0) return refuse(path, fmt::format("all users may write in {}", path));
  return Status::ok();
}

Status check_read_only_layer(const std::string& path) { return check_read_only_layer(path, ::geteuid(), ::getegid()); }

// Nothing is looser for keys than for kernels, and one thing is stricter: no group may write, be it the user's own.
Status check_trust_path(const std::string& path, uid_t user, gid_t group) {
  GEMVJIT_TRY(check_read_only_layer(path, user, group));
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0 && (info.st_mode & S_IWGRP) != 0) {
    return refuse(path, "its group may write in it (chmod g-w)");
  }
  return Status::ok();
}

Status check_trust_path(const std::string& path) { return check_trust_path(path, ::geteuid(), ::getegid()); }

Status check_cache_root(const std::string& root, CacheTrust trust) {
  return check_cache_root(root, trust, ::geteuid(), ::getegid());
}

}  // namespace gemvjit
