// UsageLedger: how many bytes a cache folder holds and what was evicted from it lately, in one small file that all
// processes share under a kernel lock, so that a cap holds for all of them without reading the folder at each write.
//
//   <root>/v1/usage := "GEMVUSE2" total:u64 scanned_at:i64 scans:u64 next:u64 evicted[128]:{digest:u64 when:i64}
//   checksum:32 bytes
//
// It is advice: a lost, torn or foreign ledger is made anew from a scan, and where no lock can be had nothing is kept.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "cache/cache_folders.h"
#include "src/base/folder.h"

namespace gemvjit {

struct Usage {
  struct Evicted {
    std::uint64_t digest = 0;  // the digits of the digest that are in an entry's file name
    std::int64_t when = 0;     // unix seconds
  };
  std::uint64_t total_bytes = 0;
  std::int64_t scanned_at = 0;  // unix seconds; 0: never
  std::uint64_t scans = 0;      // so many so far, one under way counted; each forgets what is not written yet
  std::uint64_t next = 0;       // where the next eviction is noted
  std::array<Evicted, 128> evicted{};

  void note_eviction(std::uint64_t digest, std::int64_t when);
  // Whether the digest was evicted at or after `since`.
  bool was_evicted_since(std::uint64_t digest, std::int64_t since) const;
  std::size_t evictions_since(std::int64_t since) const;  // as far as they are noted
};

std::string usage_ledger_path(const std::string& root);

class UsageLedger {
 public:
  // Of the cache at `root`, with the mode of its trust; one that is there never gets a narrower one. No ledger is used
  // in a folder that the guard refuses, nor a file with a second name, since that may be somebody's own elsewhere.
  explicit UsageLedger(std::string root, CacheTrust trust = CacheTrust::owner,
                       std::optional<EntryGuard> guard = std::nullopt)
      : root_(std::move(root)), trust_(trust), guard_(guard) {}
  // Runs `change` on what the ledger says (a Usage never scanned, where it says nothing) under the lock, and keeps the
  // result. `keep_now`, which it may call, keeps what the Usage is by then: for whoever reads without the lock. Waits
  // at most `patience_ms` for the lock. False, without a call, where there is no lock to be had. Missing::left: false,
  // too, where there is no ledger: the first who needs one makes it, from a scan.
  using KeepNow = std::function<void()>;
  using Change = std::function<void(Usage& usage, const KeepNow& keep_now)>;
  bool update(int patience_ms, const Change& change, Missing missing = Missing::made) const;
  // What it says, without the lock; a Usage never scanned where it says nothing or is being written. Makes nothing.
  Usage read() const;

 private:
  Result<Folder> folder() const;

  std::string root_;
  CacheTrust trust_;
  std::optional<EntryGuard> guard_;
};

}  // namespace gemvjit
