// A write that the system answers with a signal fails like any other, and nothing of the process's signals is changed.
#include "src/base/blocked_signal.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <string>

#include "src/base/files.h"
#include "src/base/log.h"
#include "tests/support/processes.h"
#include "tests/support/temp_dir.h"

namespace gemvjit::test {
namespace {

bool limit_files_to(rlim_t bytes) {
  const rlimit limit{bytes, bytes};
  return ::signal(SIGXFSZ, SIG_DFL) != SIG_ERR && ::setrlimit(RLIMIT_FSIZE, &limit) == 0;
}

bool is_default(int signal) {
  struct sigaction now {};
  return ::sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_DFL;
}

bool is_pending(int signal) {
  sigset_t pending;
  return ::sigpending(&pending) == 0 && sigismember(&pending, signal) == 1;
}

bool is_blocked(int signal) {
  sigset_t blocked;
  return ::pthread_sigmask(SIG_SETMASK, nullptr, &blocked) == 0 && sigismember(&blocked, signal) == 1;
}

// The control: without the guard the same write ends the process.
TEST(BlockedSignal, WithoutItTheWriteKills) {
  const TempDir folder;
  const std::string path = folder.path("file");
  const pid_t child = start_process([&] {
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || !limit_files_to(0)) return 1;
    return ::write(fd, "x", 1) == 1 ? 2 : 3;
  });
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGXFSZ);
}

TEST(BlockedSignal, AWriteBeyondTheLimitIsEfbig) {
  const TempDir folder;
  const std::string path = folder.path("file");
  expect_exit(start_process([&] {
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || !limit_files_to(0)) return 1;
    for (int i = 0; i < 3; ++i) {
      const BlockedSignal no_sigxfsz(SIGXFSZ);
      if (::write(fd, "x", 1) != -1 || errno != EFBIG) return 2;
      if (::ftruncate(fd, 1) != -1 || errno != EFBIG) return 3;
    }
    return is_default(SIGXFSZ) && !is_blocked(SIGXFSZ) && !is_pending(SIGXFSZ) ? 0 : 4;
  }));
}

TEST(BlockedSignal, OneThatWasPendingStillIs) {
  expect_exit(start_process([] {
    sigset_t pipe;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    if (::pthread_sigmask(SIG_BLOCK, &pipe, nullptr) != 0 || ::raise(SIGPIPE) != 0) return 1;
    { const BlockedSignal no_sigpipe(SIGPIPE); }
    return is_pending(SIGPIPE) && is_blocked(SIGPIPE) ? 0 : 2;
  }));
}

TEST(BlockedSignal, PublishingAFileThatIsTooLargeFails) {
  const TempDir folder;
  expect_exit(start_process([&] {
    const std::string bytes(5000, 'x');
    for (const rlim_t limit : {4096, 1, 0}) {
      if (!limit_files_to(limit)) return 1;
      const Status status = publish_file(folder.path("."), "file", bytes.data(), bytes.size());
      if (status || status.message().find("File too large") == std::string::npos) return 2;
    }
    const Result<std::vector<std::string>> left = list_directory(folder.path("."));
    return left && left->empty() && is_default(SIGXFSZ) ? 0 : 3;
  }));
}

// stderr may be a file that has reached the limit, or a pipe that nobody reads any more.
TEST(BlockedSignal, AWarningThatCannotBeWrittenHarmsNobody) {
  const TempDir folder;
  const std::string path = folder.path("stderr");
  expect_exit(start_process([&] {
    const Log log = Log::create(LogLevel::warning, {});
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ::dup2(fd, STDERR_FILENO) < 0 || !limit_files_to(0)) return 1;
    log.warning("a file at its limit");
    int ends[2];
    if (::signal(SIGPIPE, SIG_DFL) == SIG_ERR || ::pipe2(ends, O_CLOEXEC) != 0) return 2;
    ::close(ends[0]);
    if (::dup2(ends[1], STDERR_FILENO) < 0) return 3;
    log.warning("a pipe without a reader");
    return 0;
  }));
}

}  // namespace
}  // namespace gemvjit::test
