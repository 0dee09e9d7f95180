// BuildLocks: processes that share a cache and need one kernel at one time share one build. Where the locks lie, and
// what they are called; see src/base/process_lock.h for how they work.
//
// Threads: any. Locks are a courtesy: where none can be had, every process builds for itself and the cache is right.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

#include "cache/entry.h"
#include "cache/root_safety.h"
#include "src/base/log.h"
#include "src/base/process_lock.h"

namespace gemvjit {

class BuildLocks {
 public:
  // `runtime_dir`: the value of XDG_RUNTIME_DIR, "" if not set. `cache_root` "": kernels are in memory only, and there
  // are no locks. Nothing is touched before the first acquire().
  BuildLocks(std::string runtime_dir, std::string cache_root, CacheTrust trust, LockTiming timing, Log log)
      : runtime_dir_(std::move(runtime_dir)),
        cache_root_(std::move(cache_root)),
        trust_(trust),
        timing_(std::move(timing)),
        log_(std::move(log)) {}

  // The caller's turn to build the entry, or what came of somebody else's. Waits; `stop` ends that (may be empty).
  Turn acquire(const EntryId& id, const std::function<bool()>& stop);

 private:
  const std::string runtime_dir_, cache_root_;
  const CacheTrust trust_;
  const LockTiming timing_;
  const Log log_;
};

// <runtime_dir>/gemvjit if the runtime folder is one that only `owner` may write to, else <cache_root>/locks, in a
// shared cache <cache_root>/locks-<owner>: each user's processes take turns among themselves. The cache's folder is
// made if it is not there: where that cannot be done nothing can be kept either, and locks are of no use.
Result<std::string> choose_lock_folder(const std::string& runtime_dir, const std::string& cache_root, uid_t owner,
                                       CacheTrust trust = CacheTrust::owner);

// What choose_lock_folder would choose, for people to read; nothing is made.
struct LockFolderReport {
  std::string path;         // "" : none
  std::string named_by;     // "XDG_RUNTIME_DIR", or "" for the cache's own
  std::string passed_over;  // why it is not the runtime folder's, where one was named
  std::string problem;      // why there are no locks between processes
};
LockFolderReport examine_lock_folder(const std::string& runtime_dir, const std::string& cache_root, uid_t owner,
                                     CacheTrust trust = CacheTrust::owner);

// The lock's file: one for each entry of each cache, however the cache's path is spelled.
std::string lock_file_name(const std::string& cache_root, const EntryId& id);

}  // namespace gemvjit
