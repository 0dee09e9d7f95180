#include "src/base/process_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>

#include "src/base/blocked_signal.h"
#include "src/base/files.h"
#include "src/base/folder.h"
#include "src/base/lock_record.h"

namespace gemvjit {
namespace {

constexpr std::size_t file_limit = std::size_t{64} * 1024;
constexpr int max_reopenings = 100;  // somebody removes the file again and again: do without

bool write_at(int fd, const void* data, std::size_t size, off_t offset) {
  const BlockedSignal no_sigxfsz(SIGXFSZ);
  const auto* bytes = static_cast<const std::uint8_t*>(data);
  while (size > 0) {
    const ssize_t written = ::pwrite(fd, bytes, size, offset);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes += written;
    offset += written;
    size -= static_cast<std::size_t>(written);
  }
  return true;
}

// Up to `limit` bytes from the beginning; what cannot be read is not there.
Bytes read_from_start(int fd, std::size_t limit) {
  Bytes bytes(limit);
  std::size_t filled = 0;
  while (filled < limit) {
    const ssize_t got = ::pread(fd, bytes.data() + filled, limit - filled, static_cast<off_t>(filled));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    filled += static_cast<std::size_t>(got);
  }
  bytes.resize(filled);
  return bytes;
}

Status cannot(std::string_view what, const std::string& path, int error) {
  return {StatusCode::io_error, fmt::format("cannot {} {}: {}", what, path, std::generic_category().message(error))};
}

// A folder of `owner` on which nobody else has one of the rights `forbidden`.
Status check_owner(const Folder& folder, uid_t owner, mode_t forbidden) {
  GEMVJIT_TRY_ASSIGN(const struct stat info, folder.examine());
  if (info.st_uid != owner) {
    return {StatusCode::io_error,
            fmt::format("the folder {} belongs to user {}, not to user {}", folder.path(), info.st_uid, owner)};
  }
  if ((info.st_mode & forbidden) != 0) {
    return {StatusCode::io_error,
            fmt::format("the folder {} has mode {:04o}, which is open to others", folder.path(), info.st_mode & 07777)};
  }
  return Status::ok();
}

Result<Folder> open_real_folder(const std::string& path) {
  const SplitPath split = split_path(path);
  GEMVJIT_TRY_ASSIGN(const Folder parent, Folder::open_checked(split.folder));
  return split.name.empty() ? Folder::open_checked(path) : parent.open_folder(split.name);
}

}  // namespace

Result<std::string> private_folder(const std::string& parent, const std::string& name, uid_t owner) {
  GEMVJIT_TRY_ASSIGN(const Folder at, Folder::open_checked(parent));
  GEMVJIT_TRY_ASSIGN(const Folder folder, at.make_folder(name, 0700));
  GEMVJIT_TRY(check_owner(folder, owner, 0077));
  return folder.path();
}

Status check_private_folder(const std::string& path, uid_t owner) {
  const Result<Folder> folder = open_real_folder(path);
  if (!folder) return folder.status().code() == StatusCode::not_found ? Status::ok() : folder.status();
  return check_owner(*folder, owner, 0077);
}

Status check_runtime_folder(const std::string& path, uid_t owner) {
  if (!path.starts_with('/')) {
    return {StatusCode::io_error, fmt::format("\"{}\" is no absolute path", path)};
  }
  GEMVJIT_TRY_ASSIGN(const Folder folder, open_real_folder(path));
  return check_owner(folder, owner, 0022);
}

// ------------------------------------------------------------------------------------------------------- holding

struct ProcessLock::State {
  std::optional<Folder> folder;
  int file = -1;
  std::string name;
  LockHeader header{};
  std::atomic<std::uint64_t> beats{0};
  std::mutex mutex;
  std::condition_variable wake;
  bool ending = false;  // under mutex
  std::thread heart;

  // Whether the name still stands for the locked file.
  bool is_named() const {
    struct stat ours {};
    struct stat named {};
    return ::fstat(file, &ours) == 0 &&
           ::fstatat(folder->descriptor(), name.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
           ours.st_dev == named.st_dev && ours.st_ino == named.st_ino;
  }
  ~State() {
    if (file >= 0) ::close(file);
  }
};

ProcessLock::ProcessLock(std::unique_ptr<State> state) : state_(std::move(state)) {}

ProcessLock::~ProcessLock() { release(); }

void ProcessLock::beat() {
  if (!state_) return;
  const auto bytes = lock_beat(state_->beats.fetch_add(1) + 1);  // allocates nothing: the thread must not throw
  (void)write_at(state_->file, bytes.data(), bytes.size(), lock_beat_offset);
}

void ProcessLock::finish() { end_with('D', Status::ok(), ""); }

void ProcessLock::fail(const Status& failure, const std::string& maker) { end_with('F', failure, maker); }

void ProcessLock::end_with(char kind, const Status& status, const std::string& maker) {
  if (!state_) return;
  const Bytes bytes = encode_lock_outcome(state_->header, {kind, status, maker});
  (void)write_at(state_->file, bytes.data(), bytes.size(), lock_header_size);  // not written: the next one tries itself
  release();
}

void ProcessLock::release() {
  if (!state_) return;
  if (state_->heart.joinable()) {
    {
      const std::lock_guard lock(state_->mutex);
      state_->ending = true;
    }
    state_->wake.notify_all();
    state_->heart.join();
  }
  if (state_->is_named()) (void)state_->folder->remove(state_->name);
  // Not left to close(): a child that was forked meanwhile may have the file open still.
  ::flock(state_->file, LOCK_UN);
  state_.reset();
}

// ------------------------------------------------------------------------------------------------------- waiting

// One call of acquire_lock.
class LockSeeker {
 public:
  LockSeeker(std::string folder, std::string name, const LockTiming& timing, const LockWait& wait)
      : folder_(std::move(folder)), name_(std::move(name)), timing_(timing), wait_(wait) {}

  Turn seek() {
    for (int opened = 0; opened < max_reopenings; ++opened) {
      auto state = std::make_unique<ProcessLock::State>();
      if (Status status = open(*state); !status) return ending(Turn::Kind::unavailable, std::move(status));
      if (std::optional<Turn> turn = wait_for(std::move(state))) return std::move(*turn);
    }
    return ending(Turn::Kind::unavailable,
                  {StatusCode::io_error, fmt::format("{}/{} is removed again and again", folder_, name_)});
  }

 private:
  Milliseconds now() const {
    if (timing_.now) return timing_.now();
    return std::chrono::duration_cast<Milliseconds>(std::chrono::steady_clock::now().time_since_epoch());
  }
  void sleep() const {
    if (timing_.sleep) return timing_.sleep(timing_.poll);
    std::this_thread::sleep_for(timing_.poll);
  }
  Turn ending(Turn::Kind kind, Status failure = Status::ok()) const {
    Turn turn;
    turn.kind = kind;
    turn.failure = std::move(failure);
    turn.waited = waited_;
    turn.holder_pid = holder_;
    return turn;
  }

  Status open(ProcessLock::State& state) const {
    GEMVJIT_TRY_ASSIGN(state.folder, open_real_folder(folder_));
    // Another's folder, which has come into this one's place: what is in it may be a second name of somebody's file.
    GEMVJIT_TRY(check_owner(*state.folder, ::geteuid(), 0077));
    state.name = name_;
    const std::string path = state.folder->path_of(name_);
    state.file = state.folder->open_file(name_, O_RDWR | O_CREAT | O_NONBLOCK, 0600).release();
    if (state.file < 0) return cannot("open", path, errno);
    struct stat info {};
    if (::fstat(state.file, &info) != 0) return cannot("examine", path, errno);
    if (!S_ISREG(info.st_mode)) return {StatusCode::io_error, fmt::format("{} is no regular file", path)};
    return Status::ok();
  }

  // Until the lock is ours, or will not be waited for; nothing where the file has to be opened anew.
  std::optional<Turn> wait_for(std::unique_ptr<ProcessLock::State> state) {
    Bytes seen;
    Milliseconds seen_at = now();
    for (;;) {
      if (::flock(state->file, LOCK_EX | LOCK_NB) == 0) return take(std::move(state));
      if (errno == EINTR) continue;
      if (errno != EWOULDBLOCK) return ending(Turn::Kind::unavailable, cannot("lock", folder_ + "/" + name_, errno));
      Bytes header = read_from_start(state->file, lock_header_size);
      if (const std::int64_t pid = lock_holder_pid(header); pid != 0) holder_ = pid;
      const Milliseconds time = now();
      if (!waited_) began_ = reported_ = time;
      waited_ = true;
      if (header != seen) {
        seen = std::move(header);
        seen_at = time;
      }
      if (wait_.stop && wait_.stop()) return ending(Turn::Kind::stopped);
      if (time - seen_at >= timing_.stale_after || time - began_ >= timing_.wait_limit) {
        return ending(Turn::Kind::stale);
      }
      if (wait_.report && time - reported_ >= timing_.report_every) {
        reported_ = time;
        wait_.report(holder_, time - began_);
      }
      sleep();
    }
  }

  // The file is locked. It may be one that was finished with and has lost its name since it was opened.
  std::optional<Turn> take(std::unique_ptr<ProcessLock::State> state) {
    const Bytes left = read_from_start(state->file, file_limit);
    if (const std::int64_t pid = lock_holder_pid(left); pid != 0) holder_ = pid;
    const bool named = state->is_named();
    const std::optional<LockOutcome> outcome = decode_lock_outcome(left);
    // A name that is still there after the end: the holder died in between. Who did not wait for it starts anew.
    if (outcome && (waited_ || !named)) {
      if (named) (void)state->folder->remove(state->name);
      if (outcome->kind == 'D') return ending(Turn::Kind::finished);
      Turn turn = ending(Turn::Kind::failed, outcome->failure);
      turn.maker = outcome->maker;
      return turn;
    }
    if (!named) return std::nullopt;
    Turn turn = ending(Turn::Kind::held);
    turn.holder_died = !outcome && !left.empty();
    const BlockedSignal no_sigxfsz(SIGXFSZ);
    // First what is behind the header: an old end must never stand behind a new beginning. If nothing can be written
    // the lock is held all the same; waiters then see no sign of life.
    if (::ftruncate(state->file, std::min<off_t>(static_cast<off_t>(left.size()), lock_header_size)) == 0) {
      state->header = make_lock_header();
      (void)write_at(state->file, state->header.data(), lock_header_size, 0);
    }
    turn.lock.reset(new ProcessLock(std::move(state)));
    start_heart(*turn.lock);
    return turn;
  }

  void start_heart(ProcessLock& lock) const {
    if (timing_.heartbeat <= Milliseconds(0)) return;
    // No signal of the program's may land in this thread.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      lock.state_->heart = std::thread([&lock, state = lock.state_.get(), interval = timing_.heartbeat] {
        std::unique_lock guard(state->mutex);
        while (!state->wake.wait_for(guard, interval, [&] { return state->ending; })) lock.beat();
      });
    } catch (const std::system_error&) {
      // No thread to be had: waiters go on after the stale limit.
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  const std::string folder_, name_;
  const LockTiming& timing_;
  const LockWait& wait_;
  bool waited_ = false;
  Milliseconds began_{0}, reported_{0};
  std::int64_t holder_ = 0;
};

Turn acquire_lock(const std::string& folder, const std::string& name, const LockTiming& timing, const LockWait& wait) {
  return LockSeeker(folder, name, timing, wait).seek();
}

}  // namespace gemvjit
