#include "src/base/write_access.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include <cerrno>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "src/base/binary_fields.h"
#include "src/base/files.h"

namespace gemvjit {
namespace {

constexpr uid_t root_user = 0;

// The value of system.posix_acl_access as linux/posix_acl_xattr.h has it: a version and entries, little endian.
constexpr const char* acl_name = "system.posix_acl_access";
constexpr std::uint32_t acl_version = 2;
constexpr std::uint16_t tag_named_user = 0x02, tag_owning_group = 0x04, tag_named_group = 0x08, tag_mask = 0x10;
constexpr std::uint16_t may_write = 2;
constexpr std::size_t longest_attribute = 65536;  // XATTR_SIZE_MAX of linux/limits.h

struct AclEntry {
  std::uint16_t tag = 0, rights = 0;
  std::uint32_t id = 0;
};
using Acl = std::vector<AclEntry>;

// As fgetxattr.
using ReadAttribute = std::function<ssize_t(void* value, std::size_t size)>;

struct AclAnswer {
  bool is_known = true;
  std::optional<Acl> acl;  // none: the mode says all
};

AclAnswer parse_acl(const Bytes& value) {
  FieldReader in(value.data(), value.size());
  std::uint32_t version = 0;
  in.number(version);
  if (!in.ok() || version != acl_version) return {false, {}};
  Acl acl;
  while (in.left() > 0) {
    AclEntry entry;
    in.number(entry.tag);
    in.number(entry.rights);
    in.number(entry.id);
    if (!in.ok()) return {false, {}};
    acl.push_back(entry);
  }
  return {true, std::move(acl)};
}

AclAnswer ask_acl(const ReadAttribute& read) {
  Bytes value(longest_attribute);
  const ssize_t size = read(value.data(), value.size());
  if (size < 0) {
    const bool has_none = errno == ENODATA || errno == ENOTSUP || errno == ENOSYS;
    return {has_none, {}};
  }
  value.resize(static_cast<std::size_t>(size));
  return parse_acl(value);
}

bool group_may_write(gid_t group, const struct stat& info, const WriteRule& rule) {
  if (group == rule.shared_with || (rule.group == GroupWrite::any && group == info.st_gid)) return true;
  return rule.group != GroupWrite::never && group == info.st_uid;
}

std::string judge_acl(const Acl& acl, const struct stat& info, const WriteRule& rule) {
  std::uint16_t mask = may_write;  // an ACL without one names nobody
  for (const AclEntry& entry : acl) {
    if (entry.tag == tag_mask) mask = entry.rights;
  }
  for (const AclEntry& entry : acl) {
    if ((entry.rights & mask & may_write) == 0) continue;
    switch (entry.tag) {
      case tag_named_user:
        if (entry.id == root_user || entry.id == rule.user || entry.id == info.st_uid) break;
        return fmt::format("its ACL lets user {} write it (chmod g-w)", entry.id);
      case tag_named_group:
        if (group_may_write(entry.id, info, rule)) break;
        return fmt::format("its ACL lets group {} write it (chmod g-w)", entry.id);
      case tag_owning_group:
        if (group_may_write(info.st_gid, info, rule)) break;
        return fmt::format("its group {} may write it (chmod g-w)", info.st_gid);
      default:  // the owner, and all others, whose rights the mode has
        break;
    }
  }
  return "";
}

std::string judge(const struct stat& info, const WriteRule& rule, const ReadAttribute& read) {
  if (!rule.any_owner && info.st_uid != rule.user && info.st_uid != root_user) {
    return fmt::format("it belongs to user {}", info.st_uid);
  }
  if (rule.leads_on && S_ISDIR(info.st_mode) && (info.st_mode & S_ISVTX) != 0) return "";
  if ((info.st_mode & S_IWOTH) != 0) return "all users may write it (chmod o-w)";
  // With an ACL these bits are its mask, so without this one nobody whom it names can write, and it need not be asked.
  if ((info.st_mode & S_IWGRP) == 0) return "";
  const AclAnswer answer = ask_acl(read);
  if (!answer.is_known) return "its ACL cannot be read, and may let others write it (chmod g-w)";
  if (answer.acl) return judge_acl(*answer.acl, info, rule);
  if (group_may_write(info.st_gid, info, rule)) return "";
  return fmt::format("its group {} may write it (chmod g-w)", info.st_gid);
}

}  // namespace

std::string who_else_may_write(int fd, const struct stat& info, const WriteRule& rule) {
  return judge(info, rule, [fd](void* value, std::size_t size) {
    const ssize_t got = ::fgetxattr(fd, acl_name, value, size);
    if (got >= 0 || errno != EBADF) return got;
    // A descriptor of O_PATH gives no attributes but by this name of it.
    return ::getxattr(fmt::format("/proc/self/fd/{}", fd).c_str(), acl_name, value, size);
  });
}

std::string who_else_may_write(const std::string& path, const struct stat& info, const WriteRule& rule) {
  return judge(info, rule,
               [&](void* value, std::size_t size) { return ::getxattr(path.c_str(), acl_name, value, size); });
}

}  // namespace gemvjit
