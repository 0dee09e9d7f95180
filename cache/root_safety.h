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
// group (unless shared) or by all, or reached through a link or a folder of another user. Who may write is said by
// src/base/write_access.h: in the folders on the way only a private group, and of a shared root its own group; an ACL
// that names anybody else is refused in a shared root, too. Of a root that is not there yet the folders above it are
// examined. `user`: whose rights count.
Status check_cache_root(const std::string& root, CacheTrust trust, uid_t user);
Status check_cache_root(const std::string& root, CacheTrust trust);  // of this process

// The same for a folder or bundle that is only read: it may be root's as well, as an image brings it, but nobody
// else's, and nobody else may write it but a private group.
Status check_read_only_layer(const std::string& path, uid_t user);
Status check_read_only_layer(const std::string& path);  // of this process

// The same for a folder that this process writes into: as a layer, but the way is examined also where the folder is not
// there yet.
Status check_output_folder(const std::string& path);  // of this process

// The same for a folder of trusted keys, or a key's file, which no group may write.
Status check_trust_path(const std::string& path, uid_t user);
Status check_trust_path(const std::string& path);  // of this process

}  // namespace gemvjit
