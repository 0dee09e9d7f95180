// With which modes a cache makes its folders and files: those of its trust, whatever the umask, said once.
//
// Threads and processes: any.
#pragma once

#include <sys/types.h>

#include <string>

#include "cache/root_safety.h"
#include "src/base/status.h"

namespace gemvjit {

// Of a shared cache the group may do all that the owner may: replace, evict and quarantine by names, which the folders
// allow, and stamp the use of an entry and change the ledger, which the files' own modes have to allow. New files get
// the folder's group (setgid).
struct FileModes {
  mode_t folder, file;
};
constexpr FileModes file_modes(CacheTrust trust) {
  return trust == CacheTrust::shared ? FileModes{02770, 0660} : FileModes{0700, 0600};
}

// Makes `folder`, the root or one below it, with its parents; what is missing above the root is this user's alone.
// Folders that are there keep their modes.
Status make_cache_folder(const std::string& root, const std::string& folder, CacheTrust trust);

}  // namespace gemvjit
