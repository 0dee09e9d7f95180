// EntryGuard: whether the files and folders between a cache's root and its entries can be trusted: root_safety.h looks
// at the root and what is above it once, this at what is below it each time that it is opened.
//
// Threads: any. Looks at the file system, changes nothing.
#pragma once

#include <sys/types.h>

#include <string>

#include "cache/root_safety.h"
#include "src/base/write_access.h"

struct stat;

namespace gemvjit {

class Folder;

struct EntryGuard {
  enum class Kind {
    owner,   // this user or root, and nobody else may write
    shared,  // anybody, and the group may write; never all
    layer,   // of a read-only layer: this user or root; only a private group may write besides
    anyone,  // whoever may write: for tools that look at a folder which is not this user's
  };
  Kind kind = Kind::owner;
  uid_t user = 0;

  static EntryGuard of_cache(CacheTrust trust);  // of this process
  static EntryGuard of_layer();
  static EntryGuard of_anyone();

  // What is wrong with an open file, as io_error. `info`: what fstat says of `descriptor`.
  Status check_file(const std::string& path, int descriptor, const struct stat& info) const;
  Status check_folder(const Folder& folder) const;
  // Of a link in a layer, which has to be this user's or root's. `info`: of the link itself.
  Status check_link(const std::string& path, const struct stat& info) const;
};

}  // namespace gemvjit
