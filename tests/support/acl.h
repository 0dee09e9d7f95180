// POSIX ACLs for tests, set without libacl.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace gemvjit::test {

struct AclName {
  bool is_group = false;
  unsigned id = 0;
  unsigned rights = 0;  // as in a mode: 6 is rw-
};

// Gives the file or folder an access ACL of these names, with the owner's and the owning group's rights and a mask as
// given and nothing for others. 0, or the errno (ENOTSUP on a file system without ACLs).
int set_acl(const std::string& path, const std::vector<AclName>& names, unsigned group_rights, unsigned mask);
// The same as the default ACL of a folder: what is made below inherits it.
int set_default_acl(const std::string& folder, const std::vector<AclName>& names, unsigned group_rights, unsigned mask);

}  // namespace gemvjit::test
