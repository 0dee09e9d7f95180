// RemoteTier: a remote cache behind a local one. fetch() brings what the local one lacks, before anything is compiled;
// publish() sends what was compiled, in the background.
//
// A set of kernels that is asked for together (a plan) has a manifest of its own, so that an empty node asks once for
// that and then for the payloads, RemoteOptions::connections at a time. Where there is none, each kernel's own manifest
// is asked for.
//
// Whatever fails is a kernel that is compiled instead: counted, warned of once, never an error. Threads: every function
// from any thread. The local store outlives the tier.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "src/base/process_fork.h"
#include "src/remote/remote_store.h"

namespace gemvjit {

class RemoteTier {
 public:
  RemoteTier(std::unique_ptr<RemoteStore> remote, CubinStore& local, Log log);
  // flush(RemoteOptions::flush_ms), then lets go of what is left. Not for a child of fork(), which forgets the tier.
  ~RemoteTier();
  RemoteTier(const RemoteTier&) = delete;
  RemoteTier& operator=(const RemoteTier&) = delete;

  // Those of `ids` that the local store lacks, as look() tells.
  std::vector<EntryId> missing(const std::vector<EntryId>& ids) const;
  // Put those of `wanted` into the local store that the remote has; `plan` are all that are asked for together. Within
  // RemoteOptions::budget_ms, or up to `until` if one is given; `stop` (may be empty) ends it early. Answers what was
  // not got, in order.
  std::vector<EntryId> fetch(const std::vector<EntryId>& wanted, const std::vector<EntryId>& plan,
                             const std::function<bool()>& stop, std::optional<Deadline> until = std::nullopt);
  // Send those of `plan` that the remote lacks, and the plan's manifest, in the background; `not_there` are known to be
  // lacking there, or damaged, and are sent whatever is there. Nothing where the remote is not to be written to. Beyond
  // most_jobs plans that wait the oldest is dropped and counted as failures.
  void publish(std::vector<EntryId> plan, std::vector<EntryId> not_there);
  // Waits until what was published is sent. io_error if some of it could not be, since the tier was made; cancelled if
  // it is not done within the time.
  Status flush(int milliseconds);

  RemoteStats stats() const { return remote_->remote_stats(); }
  RemoteStore& store() const { return *remote_; }
  // flush(), within that time and RemoteOptions::flush_ms; then nothing more is begun. Where the process ends without
  // ending its contexts.
  void stop_after(int milliseconds);
  bool is_parents() const { return forked_since(generation_); }

  static constexpr std::size_t most_jobs = 64;

 private:
  struct Job {
    std::vector<EntryId> plan, not_there;
  };
  void run();
  void send(const Job& job);

  const std::uint32_t generation_ = watch_forks();
  const std::unique_ptr<RemoteStore> remote_;
  CubinStore& local_;
  const Log log_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  bool is_sending_ = false, ends_ = false;
  std::uint64_t unsent_ = 0;  // entries of jobs that were dropped, manifests of plans that could not be sent
  std::thread sender_;        // from the first publish() on
};

}  // namespace gemvjit
