// EntryGuard: whether an entry's file, and the folders between the root and it, can be trusted: root_safety.h looks at
// the root and what is above it once, this at what is below it with each file that is read.
//
// Threads: any. Looks at the file system, changes nothing.
#pragma once

#include <sys/types.h>

#include <string>

#include "cache/root_safety.h"
#include "src/base/write_access.h"

struct stat;

namespace gemvjit {

struct EntryGuard {
  enum class Kind {
    owner,   // this user or root, and nobody else may write
    shared,  // anybody, and the group may write; never all
    layer,   // of a read-only layer: this user or root; only a private group may write besides
    links,   // anybody; only that no link is followed: for who works on a folder that is not this user's
  };
  Kind kind = Kind::owner;
  uid_t user = 0;
  gid_t group = 0;

  static EntryGuard of_cache(CacheTrust trust);  // of this process
  static EntryGuard of_layer();
  static EntryGuard of_anyone();

  // What is wrong with an open file, as io_error.
  Status check_file(const std::string& path, const struct stat& info) const;
  Status check_file(int fd, const std::string& path, const struct stat& info) const;  // `path` for messages only
  // One folder of the cache or layer. A link is refused in a cache; in a layer it may be this user's or root's, and
  // what it leads to is examined. io_error; ok for what is not there.
  Status check_folder(const std::string& folder) const;
  // The three folders above an entry's file: fan-out, architecture, format version.
  Status check_way(const std::string& entry_path) const;

 private:
  WriteRule rule() const;
};

}  // namespace gemvjit
