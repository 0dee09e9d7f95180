// For tests that need a file system of their own: a child process in a private mount namespace, where it may mount what
// it likes and nothing of it is seen outside or left behind.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>

namespace gemvjit::test {

constexpr int exit_cannot = 77;  // of a child: this machine does not let it

inline bool write_whole(const char* path, const std::string& text) {
  const int fd = ::open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool written = ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  return ::close(fd) == 0 && written;
}

// Gives the calling process, which must have one thread, mounts of its own: as root, or as root of a user namespace of
// its own that knows this one user. "" or why not. It keeps its uid.
inline std::string enter_private_mounts() {
  const uid_t user = ::geteuid();
  const gid_t group = ::getegid();
  if (::unshare(CLONE_NEWNS) != 0) {
    if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return std::string("unshare: ") + std::strerror(errno);
    (void)write_whole("/proc/self/setgroups", "deny");
    const auto line = [](unsigned id) { return std::to_string(id) + " " + std::to_string(id) + " 1"; };
    if (!write_whole("/proc/self/uid_map", line(user)) || !write_whole("/proc/self/gid_map", line(group))) {
      return std::string("uid_map: ") + std::strerror(errno);
    }
  }
  if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
    return std::string("private mounts: ") + std::strerror(errno);
  }
  return "";
}

// A tmpfs at the folder, which must be there. `data` such as "size=256k,mode=0700". "" or why not.
inline std::string mount_tmpfs(const std::string& folder, const std::string& data, unsigned long flags = 0) {
  if (::mount("tmpfs", folder.c_str(), "tmpfs", flags, data.c_str()) == 0) return "";
  return "tmpfs at " + folder + ": " + std::strerror(errno);
}

// body() in a child with private mounts. Its failures are printed and make the test fail. False if this machine does
// not allow that: the test skips then, with the reason in `why_not`.
inline bool run_in_private_mounts(const std::function<void()>& body, std::string& why_not) {
  int pipe_ends[2];
  if (::pipe(pipe_ends) != 0) return false;
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string problem = enter_private_mounts();
    if (!problem.empty()) {
      (void)!::write(pipe_ends[1], problem.data(), problem.size());
      ::_exit(exit_cannot);
    }
    body();
    std::fflush(nullptr);
    ::_exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  ::close(pipe_ends[1]);
  char buffer[256];
  for (ssize_t got; (got = ::read(pipe_ends[0], buffer, sizeof buffer)) > 0;) {
    why_not.append(buffer, static_cast<std::size_t>(got));
  }
  ::close(pipe_ends[0]);
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == exit_cannot) return false;
  EXPECT_TRUE(WIFEXITED(status)) << "ended by signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0) << "see the failures above, of the child";
  return true;
}

}  // namespace gemvjit::test
