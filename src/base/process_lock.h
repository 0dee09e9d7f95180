// ProcessLock: processes of one machine that want the same work done take turns, and share how it ended.
//
// The lock is the kernel's (flock on an open file): it goes with its holder, however that ends, so that none can stay
// behind. It is a courtesy and never needed for correctness: whatever goes wrong with it (no folder, no space, a frozen
// holder) the caller is told to work without it, and must be able to.
//
// The file (lock_record.h) is there only while somebody works: whoever finishes the work writes how it ended, takes the
// file's name away, and only then unlocks: those that have the file open read the end, and those that come later find
// no file and start anew.
//
// Threads: acquire() from any; one lock by one thread at a time. fork: a child that keeps the file open keeps the
// lock of a parent that was killed, but shows no progress, so that waiters go on after `stale_after`.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "src/base/status.h"

namespace gemvjit {

using Milliseconds = std::chrono::milliseconds;

// How long everything takes, and by whose clock. Tests give their own.
struct LockTiming {
  std::function<Milliseconds()> now;        // monotonic; empty: the machine's clock
  std::function<void(Milliseconds)> sleep;  // empty: really
  Milliseconds poll{20};                    // between two looks of a waiter
  Milliseconds heartbeat{1'000};            // between two signs of life of a holder; 0: only beat() gives any
  Milliseconds stale_after{10'000};         // a waiter goes on when it saw no sign of life for so long
  Milliseconds wait_limit{600'000};         // and after so long in any case
  Milliseconds report_every{5'000};         // of LockWait::report
};

// What a waiter may be told and asked while it waits. Either may be empty.
struct LockWait {
  std::function<void(std::int64_t holder_pid, Milliseconds waited)> report;  // after each `report_every`
  std::function<bool()> stop;                                                // true: wait no longer
};

// A folder that is ours alone: `parent`/`name`, made with mode 0700 if it is not there; a real directory, owned by
// `owner`, and with no permission for others. The parent must be there. io_error says what is wrong.
Result<std::string> private_folder(const std::string& parent, const std::string& name, uid_t owner);

// Whether a folder that is there is such a one; ok, too, if there is none yet.
Status check_private_folder(const std::string& path, uid_t owner);

// ok if `path` is an absolute path to a real directory (no link) of `owner` that nobody else may write to.
Status check_runtime_folder(const std::string& path, uid_t owner);

class ProcessLock {
 public:
  // Releases. Without finish() or fail() before, the next in line does the work.
  ~ProcessLock();
  ProcessLock(const ProcessLock&) = delete;
  ProcessLock& operator=(const ProcessLock&) = delete;

  void beat();    // one sign of life; from any thread
  void finish();  // the work is done (or turned out to be done): those that wait go and look, and the lock is released
  // The work failed in a way that would be the same for `maker` elsewhere: those that wait get this failure. Of a long
  // message the first 16 KiB are told. The lock is released.
  void fail(const Status& failure, const std::string& maker);

 private:
  friend class LockSeeker;
  struct State;
  explicit ProcessLock(std::unique_ptr<State> state);
  void end_with(char kind, const Status& status, const std::string& maker);
  void release();
  std::unique_ptr<State> state_;
};

struct Turn {
  enum class Kind {
    held,         // `lock`: it is the caller's turn
    finished,     // somebody else did it
    failed,       // somebody else failed: `failure`, `maker`
    stale,        // the holder shows no sign of life, or takes too long: go on without a lock
    stopped,      // LockWait::stop said so
    unavailable,  // no lock can be had: `failure` says why; go on without
  };
  Kind kind = Kind::unavailable;
  std::unique_ptr<ProcessLock> lock;
  Status failure;
  std::string maker;
  bool waited = false;          // for another process
  std::int64_t holder_pid = 0;  // the last other holder seen (as its own PID namespace numbers it); 0: none
  bool holder_died = false;     // held: that holder left the work unfinished
};

// Lock the file `name` in `folder` (of private_folder), waiting for a holder that makes progress.
Turn acquire_lock(const std::string& folder, const std::string& name, const LockTiming& timing, const LockWait& wait);

}  // namespace gemvjit
