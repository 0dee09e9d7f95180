// The cache folder that a command works on, chosen as the library chooses it, and its entries.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cache/entry_files.h"
#include "cache/store.h"
#include "tools/gemvjit_cache/commands.h"

namespace gemvjit::tools {

struct CacheFolder {
  std::string path;    // empty: none, the library would keep kernels in memory only
  std::string source;  // what named it: "--cache-dir", "GEMVJIT_CACHE_DIR", "XDG_CACHE_HOME", "HOME"
};
CacheFolder choose_cache_folder(const CacheArguments& arguments);

// The same for a command that cannot do without one: exit_environment, said on stderr, if there is none; and unless it
// may be made, for one that --cache-dir names and is not there, and for what is no folder.
enum class FolderUse { look, make };
ExitCode require_cache_folder(const CacheArguments& arguments, FolderUse use, CacheFolder& folder);

// The folder as a store that keeps to the library's cap, in its ledger. exit_usage for options that mean nothing.
ExitCode open_limited_store(const std::string& root, std::unique_ptr<CubinStore>& store, std::uint64_t& max_bytes);

// How a command reads below a cache folder: guard_of_root(). Where the library here does not use the folder, that is
// said on stderr. Links are never followed.
EntryGuard guard_of_folder(const std::string& root);

// All entries, sorted by path; none if the folder is not there yet and is not one that --cache-dir names.
// exit_environment, said on stderr, if there is no cache folder or it cannot be read.
// `drop`: without the cubins, so that never more than one is in memory, for who does not need them, or only while
// `look` sees each entry once, whole.
enum class Cubins { keep, drop };
ExitCode load_entries(const CacheArguments& arguments, std::vector<ListedEntry>& entries, Cubins cubins = Cubins::keep,
                      const std::function<void(const ListedEntry&)>& look = nullptr);

// Removes an entry's file. io_error for a folder in its place, and for a link in a folder's: whatever is in these, this
// cache did not put it there. `guard`: guard_of_root() of the root.
Status remove_entry_file(const std::string& root, const std::string& path, const EntryGuard& guard);

inline EntryState state_of(const ListedEntry& listed) {
  return listed.entry ? EntryState::whole : entry_state(listed.path, listed.problem);
}
// What can be done about an entry that is not whole: "", or that it has to be removed by hand.
std::string removal_note(const ListedEntry& listed);

struct EntryCounts {
  std::size_t whole = 0, damaged = 0, unreadable = 0;
};
EntryCounts count_states(const std::vector<ListedEntry>& entries);

// The entries that a selector names: a key's text, or at least 4 hex digits that a digest begins with. A key may have
// several entries, of different kernel sources; a digest prefix must name one. exit_usage for an ambiguous prefix (all
// matches are listed) or a selector that is neither, exit_nothing_found for one without an entry,
// exit_entry_damaged or exit_environment for one whose only entries are damaged or unreadable; all said on stderr.
ExitCode select_entries(const std::vector<ListedEntry>& entries, const std::string& selector,
                        std::vector<const ListedEntry*>& selected);

}  // namespace gemvjit::tools
