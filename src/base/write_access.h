// Who may write a file or folder besides a user and root: the one rule for everything whose content is trusted.
//
// Threads: any. Looks at the file system, changes nothing.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

struct stat;

namespace gemvjit {

// Whether the owning group may write.
enum class GroupWrite {
  never,
  if_private,  // only a group whose number is its owner's: systems with a umask of 002 make one for each user alone
  any,         // whichever group it is: what is shared among a group on purpose
};

struct WriteRule {
  uid_t user = 0;  // trusted besides root
  GroupWrite group = GroupWrite::if_private;
  bool any_owner = false;  // the owner is trusted, whoever it is
  // Of a folder that only leads on: where it has the sticky bit, writers in it cannot exchange what is not theirs, so
  // only its owner counts.
  bool leads_on = false;
  std::optional<gid_t> shared_with = std::nullopt;  // a group that may write besides
};

// "" if the rule holds. Otherwise who may write although he should not, and the remedy, for "<path>: <reason>":
// "it belongs to user 7", "all users may write it (chmod o-w)", "group 100 may write it (chmod g-w)", "its ACL lets
// user 7 write it (chmod g-w)".
//
// Asked are the owner, the mode and the POSIX access ACL, by what they allow: an entry that the ACL's mask takes away
// counts for nothing. An ACL that names another user counts as others' write; one that names a group does unless the
// group is the owner's private one or `shared_with`. Of an ACL that cannot be read the worst is assumed. A default ACL
// is of no account on a folder itself: it shows in the access ACL of what is made below, where that is examined.
//
// `info` is what fstat says of `fd` (which may be one of O_PATH), or stat of `path`. Not for symbolic links: these have
// an owner only.
std::string who_else_may_write(int fd, const struct stat& info, const WriteRule& rule);
std::string who_else_may_write(const std::string& path, const struct stat& info, const WriteRule& rule);

}  // namespace gemvjit
