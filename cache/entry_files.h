// The files of a folder with the cache's layout: what stores, read-only layers and the size limit all do with them.
//
// Threads: any. Reads only.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cache/entry_guard.h"
#include "cache/store.h"
#include "src/base/folder.h"

namespace gemvjit {

// The file's entry, whichever it is. not_found if there is no file; any other failure says why the file is of no use.
// A file that cannot be used is opened once more: on a network file system one that was just renamed can look empty or
// stale for a moment. With a guard, io_error for a file that it refuses.
Result<Entry> load_entry_file(const Folder& folder, const std::string& name, const EntryGuard* guard = nullptr);
// What is in the place of that entry; io_error, too, for a folder on the way that the guard refuses.
Result<Entry> load_entry_file(const std::string& root, const EntryId& id, const EntryGuard* guard = nullptr);

// How a place stands that an entry, or a folder with entries, should be in. Everybody who tells entries apart, the
// library and the tools, asks entry_state().
//   whole       ok
//   damaged     what is there is at fault, and nobody can use it: an entry's bytes, another kernel's entry, or a link,
//               a folder, a FIFO, a file too large in an entry's place; what is neither folder nor link in a folder's
//   unreadable  it could not be read, which says nothing of what it holds: no permission, a stale handle, a disk error;
//               or it is not to be read: a guard refuses it, or its folders
enum class EntryState { whole, damaged, unreadable };
// `problem`: what load_entry_file, or a list, says of the path.
EntryState entry_state(const std::string& path, const Status& problem);

bool is_folder(const std::string& path);  // itself, not what a link leads to

// entry_damaged: a whole entry under another one's name.
Status foreign_entry(const EntryId& found);

// A failure with the path in front, where what it says does not name it.
Status with_path(const std::string& path, const Status& failure);

using OnEntryFile = std::function<void(const Folder& folder, const std::string& name, const std::string& arch)>;
using OnProblem = std::function<void(const std::string& folder, const Status& problem)>;
// Calls on_file for each file below `root` that has an entry's name. A folder that cannot be listed, or that the guard
// refuses, goes to on_problem, but for one that is gone by now; that of all is the result. ok where there is no cache
// yet.
Status visit_entry_files(const std::string& root, const OnEntryFile& on_file, const OnProblem& on_problem,
                         const EntryGuard* guard = nullptr);

// Reads the files one at a time and hands each on, in no particular order; a folder that cannot be listed is one, too.
Status visit_entries(const std::string& root, const std::function<void(ListedEntry entry)>& on_entry,
                     const EntryGuard* guard = nullptr);

// CubinStore::list() of such a folder.
Result<std::vector<ListedEntry>> list_entry_files(const std::string& root, const EntryGuard* guard = nullptr);

}  // namespace gemvjit
