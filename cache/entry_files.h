// The files of a folder with the cache's layout: what stores, read-only layers and the size limit all do with them.
//
// Threads: any. Reads only.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cache/entry_guard.h"
#include "cache/store.h"

namespace gemvjit {

// The file's entry, whichever it is. not_found if there is no file; any other failure says why the file is of no use.
// A file that cannot be used is opened once more: on a network file system one that was just renamed can look empty or
// stale for a moment. With a guard, io_error for a file that it refuses, or whose folders it refuses.
Result<Entry> load_entry_file(const std::string& path, const EntryGuard* guard = nullptr);

// Whether the file itself is at fault that load_entry_file could not use: its bytes, or that it is a link, a FIFO, too
// large. Else it could only not be read (no permission, a stale handle, a disk error), which says nothing of what it
// holds.
bool is_damage(const std::string& path, const Status& problem);

// entry_damaged: a whole entry under another one's name.
Status foreign_entry(const EntryId& found);

// A failure with the path in front, where what it says does not name it.
Status with_path(const std::string& path, const Status& failure);

// Calls on_file(folder, name, arch) for each file below `root` that has an entry's name. A folder that cannot be listed
// goes to on_problem, but for one that is gone by now; that of all is the result. ok where there is no cache yet. With
// a guard a folder that it refuses is not looked into: that is its problem.
Status visit_entry_files(
    const std::string& root,
    const std::function<void(const std::string& folder, const std::string& name, const std::string& arch)>& on_file,
    const std::function<void(const std::string& folder, const Status& problem)>& on_problem,
    const EntryGuard* guard = nullptr);

// Reads the files one at a time and hands each on, in no particular order; a folder that cannot be listed is one, too.
Status visit_entries(const std::string& root, const std::function<void(ListedEntry entry)>& on_entry,
                     const EntryGuard* guard = nullptr);

// CubinStore::list() of such a folder.
Result<std::vector<ListedEntry>> list_entry_files(const std::string& root, const EntryGuard* guard = nullptr);

}  // namespace gemvjit
