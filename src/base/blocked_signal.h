// BlockedSignal: keeps one signal from this thread while it does what may raise it, and takes back one that was raised.
//
// A library must not end its host, nor change what the host does with a signal. SIGPIPE (a write to a connection whose
// other end is gone) and SIGXFSZ (a write beyond RLIMIT_FSIZE) are sent to the very thread that writes, so that
// blocking them there is enough: the call fails with EPIPE or EFBIG instead. One that was pending before still is
// afterwards.
//
// Threads: an object belongs to the thread that made it; the others are not affected. errno is left as it is.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <cerrno>
#include <ctime>

namespace gemvjit {

class BlockedSignal {
 public:
  explicit BlockedSignal(int signal) {
    const int error = errno;
    sigemptyset(&blocked_);
    sigaddset(&blocked_, signal);
    sigset_t pending;
    was_pending_ = ::sigpending(&pending) == 0 && sigismember(&pending, signal) == 1;
    ::pthread_sigmask(SIG_BLOCK, &blocked_, &before_);
    errno = error;
  }
  ~BlockedSignal() {
    const int error = errno;
    const timespec at_once{};
    while (!was_pending_ && ::sigtimedwait(&blocked_, nullptr, &at_once) < 0 && errno == EINTR) {
    }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = error;
  }
  BlockedSignal(const BlockedSignal&) = delete;
  BlockedSignal& operator=(const BlockedSignal&) = delete;

 private:
  sigset_t blocked_{}, before_{};
  bool was_pending_ = false;
};

}  // namespace gemvjit
