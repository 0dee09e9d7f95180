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

struct StoreStats {
  std::uint64_t hits = 0;
  std::uint64_t misses = 0;   // absent, or one of `damaged`
  std::uint64_t damaged = 0;  // get() found a file that it could not use: damaged, foreign or unreadable
  std::uint64_t puts = 0;     // that succeeded
  std::uint64_t put_failures = 0;
};

class CubinStore {
 public:
  virtual ~CubinStore() = default;
  // The verified entry with just this id, or nothing.
  virtual std::optional<Entry> get(const EntryId& id) = 0;
  // Keep the entry. A failure is reported (and warned of once), but the caller goes on with its own bytes.
  virtual Status put(const Entry& entry) = 0;
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
// Entries below `root`, which is made at the first put (never by get). See layout.h for the names below it. An empty
// root gives a memory store. A put that fails answers cache_not_writable, or invalid_argument for an entry that could
// not be read back. The first put into a folder also removes what writers left there that died over an hour ago.
std::unique_ptr<CubinStore> make_dir_store(std::string root, Log log);

// The directory that the options and the environment name: `explicit_dir` if not empty, else GEMVJIT_CACHE_DIR, else
// $XDG_CACHE_HOME/gemvjit, else $HOME/.cache/gemvjit; a relative path in the last two is ignored, as the XDG
// specification asks. Empty where none of these is set: memory only.
struct CacheEnvironment {
  std::string gemvjit_cache_dir, xdg_cache_home, home;
};
std::string choose_cache_dir(const std::string& explicit_dir, const CacheEnvironment& environment);

}  // namespace gemvjit
