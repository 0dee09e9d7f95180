// CubinStore: where entries are kept. A cache problem is never the caller's problem: get() answers "nothing" for an
// absent, damaged, foreign or unreadable entry (one warning for the latter three), and the caller builds again.
//
// Threads: every function from any thread. Processes: any number may share a directory.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cache/entry.h"
#include "cache/entry_guard.h"
#include "cache/quarantine.h"
#include "src/base/log.h"
#include "src/base/status.h"

namespace gemvjit {

// One file found by list(): `entry` if it is whole, `problem` says why not.
struct ListedEntry {
  std::string path;
  std::uint64_t file_bytes = 0;
  std::optional<Entry> entry;
  Status problem;  // without the path in front
};

// An entry, and the file that it is in: "" in memory, "<bundle>#<name>" in a bundle.
struct FoundEntry {
  Entry entry;
  std::string path;
};

struct StoreStats {
  std::uint64_t hits = 0;
  std::uint64_t misses = 0;          // absent, or one of `damaged`
  std::uint64_t damaged = 0;         // get() found a file that it could not use: damaged, foreign or unreadable
  std::uint64_t unreadable = 0;      // those of `damaged` that could not be read at all
  std::uint64_t quarantined = 0;     // damaged and foreign files that were moved out of the way
  std::uint64_t untrusted = 0;       // of `misses`: whole, but signed by no trusted key, where the policy asks for it
  std::uint64_t puts = 0;            // that succeeded; the three below are among them
  std::uint64_t puts_unchanged = 0;  // the same code was there already
  std::uint64_t puts_other_compiler = 0;  // other code, by another compiler version, was there and stays
  std::uint64_t determinism_alarms = 0;   // other code by the same compiler version was there and stays
  std::uint64_t put_failures = 0;
  // Of a store with a cap (size_limit.h).
  std::uint64_t evictions = 0;
  std::uint64_t thrashed = 0;  // entries written again within ten minutes of their eviction: the cap is too small
  std::uint64_t refused = 0;   // puts that found no room
};

// What put() may replace: nothing but what is damaged or foreign; or a whole entry with the same id too. A file that
// cannot be read is never replaced: nobody knows what it holds.
enum class Replace { unusable_only, any };

class CubinStore {
 public:
  virtual ~CubinStore() = default;
  // The verified entry with just this id, or nothing.
  virtual std::optional<Entry> get(const EntryId& id) = 0;
  // The entry that get() would give; else why it would give none: not_found, entry_damaged where a file is at fault
  // (EntryState::damaged of entry_files.h), io_error where it cannot be read or not be trusted. For who only wants to
  // know: moves, stamps and makes no file, is in no counter, and warns of no entry.
  virtual Result<FoundEntry> look(const EntryId& id) = 0;
  // Keep the entry. A failure is reported (and warned of once), but the caller goes on with its own bytes, and so it
  // does where a whole entry is there already and stays (put_policy.h): that is ok too, and one of the counters.
  // Replace::any is for a caller who knows that what is there is of no use, as after the driver has refused it.
  virtual Status put(const Entry& entry, Replace replace = Replace::unusable_only) = 0;
  virtual Status remove(const EntryId& id) = 0;  // ok if it is not there
  // Every entry there, whole or not, sorted by path; nothing where there is no cache yet. Reads all files and returns
  // their payloads too, so it is for tools. A whole entry under another entry's name is a problem as well.
  virtual Result<std::vector<ListedEntry>> list() = 0;
  // The file that holds or would hold an entry; empty for a store without files.
  virtual std::string path_of(const EntryId& id) const = 0;
  virtual std::string root() const = 0;  // empty for a store without files
  virtual StoreStats stats() const = 0;
};

// Entries in memory only: the fallback where no directory is usable, and the cache of tests.
std::unique_ptr<CubinStore> make_memory_store();

struct DirStoreOptions {
  std::int64_t stale_after_seconds = 3600;  // no live writer takes this long for one file; < 0: temporaries of any age
  QuarantineLimits quarantine;
  CacheTrust trust = CacheTrust::owner;  // with which modes folders and files are made (cache_folders.h)
  // A file or folder below the root that it refuses is a miss, counted as unreadable, and nothing is put there.
  std::optional<EntryGuard> guard;
};

// Entries below `root`, which is made at the first put (never by get of an absent entry). See layout.h for the names
// below it. An empty root gives a memory store. A put that fails answers cache_not_writable, or invalid_argument for an
// entry that could not be read back. The first put into a folder also removes what writers left there that died longer
// ago than stale_after_seconds. A damaged or foreign file that get() or put() meets is moved to the quarantine.
std::unique_ptr<CubinStore> make_dir_store(std::string root, Log log, const DirStoreOptions& options = {});

// The directory that the options and the environment name: `explicit_dir` if not empty, else GEMVJIT_CACHE_DIR, else
// $XDG_CACHE_HOME/gemvjit, else $HOME/.cache/gemvjit; a relative path in the last two is ignored, as the XDG
// specification asks. Empty where none of these is set: memory only.
struct CacheEnvironment {
  std::string gemvjit_cache_dir, xdg_cache_home, home;
};
std::string choose_cache_dir(const std::string& explicit_dir, const CacheEnvironment& environment);

}  // namespace gemvjit
