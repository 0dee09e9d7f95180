// The folders of a cache, opened one below the other: each relative to its parent's descriptor, no link followed, owner
// and mode looked at as the root's are (root_safety.h). What is read, published, moved or removed in a cache goes
// through a folder that was opened here.
//
// `root` and `folder` are paths, the second that of the first or of something below it, since layout.h gives paths.
// Threads and processes: any.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "cache/entry_guard.h"
#include "cache/root_safety.h"
#include "src/base/folder.h"
#include "src/base/status.h"

namespace gemvjit {

// With which modes a cache makes its folders and files: those of its trust, whatever the umask, said once. Of a shared
// cache the group may do all that the owner may: replace, evict and quarantine by names, which the folders allow, and
// stamp the use of an entry and change the ledger, which the files' own modes have to allow. New files get the folder's
// group (setgid).
struct FileModes {
  mode_t folder, file;
};
constexpr FileModes file_modes(CacheTrust trust) {
  return trust == CacheTrust::shared ? FileModes{02770, 0660} : FileModes{0700, 0600};
}

// not_found if the folder, or one on the way, is not there; io_error for one that the guard refuses, and for a link,
// but in a layer (EntryGuard::Kind::layer), where it may be this user's or root's. Without a guard:
// EntryGuard::of_anyone().
Result<Folder> open_cache_folder(const std::string& root, const std::string& folder, const EntryGuard* guard);

// One step further: a folder in one that was opened so.
Result<Folder> open_cache_subfolder(const Folder& parent, const std::string& name, const EntryGuard& guard);

// The same as open_cache_folder, and makes what is missing: above the root for this user alone, the root and what is
// below it as `trust` has it. Folders that are there keep their modes.
Result<Folder> make_cache_folder(const std::string& root, const std::string& folder, CacheTrust trust,
                                 const EntryGuard* guard);

// The folder that `path`, of an entry or another file of the cache, is in.
Result<Folder> open_cache_folder_of(const std::string& root, const std::string& path, const EntryGuard* guard);

// A small file beside the entries that processes change in place (the ledger, the records of builds), open for that.
// One that is made begins with `magic` and has the mode of the trust, whatever the umask. One that is there is only
// used if it begins so, keeps its mode, and has no second name: else it may be somebody's own file that was linked or
// moved there. Not open where the guard refuses it either.
enum class Missing { made, left };
Descriptor open_cache_record(const Folder& folder, const std::string& name, std::string_view magic, CacheTrust trust,
                             const EntryGuard* guard, Missing missing);

// Remove the file, if its folder can be opened as above. ok if it is not there.
Status remove_cache_file(const std::string& root, const std::string& path, const EntryGuard* guard);

}  // namespace gemvjit
