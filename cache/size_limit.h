// A cap on the bytes of a cache folder, kept by all processes that share it, and the collection of what is used least.
//
// How recently an entry was used stands in its file's access time, which is set on purpose at the first use by a
// process (so that "noatime" does not matter); on a read-only file system nothing is stamped, and nothing is evicted
// either. Each write is first added to the folder's total (UsageLedger); where that passes the cap, entries are
// evicted, least recently used first, down to nine tenths of it. So the folder never holds more than the cap and one
// entry for each process that writes at the time. What this process has got from the store is not evicted by it.
//
// Threads: every function from any thread. Processes: any number may share a folder.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cache/store.h"

namespace gemvjit {

struct SizeLimit {
  std::uint64_t max_bytes = std::uint64_t{1} << 30;         // 0: no cap
  std::uint64_t keep_free_bytes = std::uint64_t{64} << 20;  // entries are not written where less would be left
  CacheTrust trust = CacheTrust::owner;                     // with which modes folders and the ledger are made
  std::optional<EntryGuard> guard = std::nullopt;           // nothing is counted or evicted in a folder that it refuses
};

// What tests replace.
struct SizeLimitHooks {
  std::function<std::int64_t()> now;                                 // unix seconds
  std::function<std::uint64_t(const std::string& path)> free_bytes;  // of the path's file system
  int lock_patience_ms = 5000;  // for the ledger's lock; once it was waited for in vain, 0 for the next minute
};

// `inner` is a directory store (a store without a root is not limited). A put that finds no room answers
// cache_not_writable. stats() are those of `inner` and the three of a cap.
std::unique_ptr<CubinStore> make_size_limited_store(std::unique_ptr<CubinStore> inner, SizeLimit limit, Log log,
                                                    SizeLimitHooks hooks = {});

struct CachedFile {
  std::string path;
  std::string arch;
  std::uint64_t bytes = 0;
  std::int64_t last_used = 0;     // unix seconds
  std::uint64_t digest_bits = 0;  // the digits of the digest in its name
};
// The entries' files below a root, without reading them; io_error if the folder of all cannot be listed. With a guard
// none of folders that it refuses.
Result<std::vector<CachedFile>> scan_cache(const std::string& root, const EntryGuard* guard = nullptr);
// The regular files named *.entry, at any depth to 3 folders, below <root>/v<number> of all other versions. `arch` is
// the first folder's name. A folder that cannot be listed is passed over.
std::vector<CachedFile> scan_other_versions(const std::string& root, const EntryGuard* guard = nullptr);

struct CollectRequest {
  std::optional<std::uint64_t> max_bytes;  // keep the most recently used that fit
  std::optional<std::int64_t> max_age_seconds;
  std::set<std::string> archs;  // only entries of these targets; empty: of all
  // Also the entries' files of other format versions (<root>/v<number>, not this one's), which are otherwise left to
  // the versions that made them: with an age those not used for so long; without, and without a size, all of them.
  bool other_versions = false;
  // Also what it says is not wanted, of the target; empty: nothing.
  std::function<bool(const CachedFile& file)> is_unwanted;
  bool dry_run = false;
  std::int64_t now = 0;
  std::optional<EntryGuard> guard;  // as in SizeLimit
};
struct Collected {
  std::vector<CachedFile> removed;  // or, of a dry run, what would be
  std::vector<Status> failed;       // of what was to be removed and is kept
  std::uint64_t kept_bytes = 0, removed_bytes = 0;
  std::uint64_t kept = 0;
};
Result<Collected> collect_garbage(const std::string& root, const CollectRequest& request);

}  // namespace gemvjit
