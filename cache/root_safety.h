// Whether a cache folder can be trusted: a kernel that another user could have put there runs with our rights.
//
// Threads: any. Looks at the file system, changes nothing.
#pragma once

#include <sys/types.h>

#include <string>

#include "src/base/status.h"

namespace gemvjit {

// Who may have written what is in a cache folder.
enum class CacheTrust {
  owner,   // this user alone
  shared,  // this user, root, and the folder's owner and group: for volumes that are made for a group
};

// ok, or cache_not_writable with the reason and what to do, for a root that is owned by another user, writable by its
// group (unless shared) or by all, or reached through a link or a folder of another user. Of a root that is not there
// yet the folders above it are examined. `user`: whose rights count.
Status check_cache_root(const std::string& root, CacheTrust trust, uid_t user, gid_t group);
Status check_cache_root(const std::string& root, CacheTrust trust);  // of this process

// The same for a folder or bundle that is only read: it may be root's as well, as an image brings it, but nobody
// else's, and nobody else may write it.
Status check_read_only_layer(const std::string& path, uid_t user, gid_t group);
Status check_read_only_layer(const std::string& path);  // of this process

// The same for a folder of trusted keys, or a key's file.
Status check_trust_path(const std::string& path, uid_t user, gid_t group);
Status check_trust_path(const std::string& path);  // of this process

}  // namespace gemvjit
