// For tests of several processes: memory that they share, and children that are waited for.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <functional>
#include <new>
#include <thread>
#include <vector>

namespace gemvjit::test {

// One T, made zero, that this process and those that it forks see alike. For atomics and plain data.
template <typename T>
class Shared {
 public:
  Shared() : value_(new (::mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) T{}) {}
  ~Shared() { ::munmap(static_cast<void*>(value_), sizeof(T)); }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  T& operator*() const { return *value_; }
  T* operator->() const { return value_; }

 private:
  T* value_;
};

// Until `reached` says so; false after a time that no working test needs. Other processes do the work meanwhile.
inline bool wait_until(const std::function<bool()>& reached) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!reached()) {
    if (std::chrono::steady_clock::now() > limit) return false;
    std::this_thread::yield();
  }
  return true;
}

// A process that runs body() and exits with what it returns. Not to be called while there are other threads.
inline pid_t start_process(const std::function<int()>& body) {
  (void)std::fflush(nullptr);  // or it would be written twice where the end of a process writes it: a sanitizer has it so
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  EXPECT_GT(child, 0);
  return child;
}

inline void expect_exit(pid_t child, int expected = 0) {
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << "ended by signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), expected);
}

inline void kill_process(pid_t child) {
  ASSERT_EQ(::kill(child, SIGKILL), 0);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
}

// Processes 0 to count-1, each of which must exit with 0.
inline void run_processes(int count, const std::function<int(int)>& body) {
  std::vector<pid_t> children;
  for (int i = 0; i < count; ++i) children.push_back(start_process([&] { return body(i); }));
  for (const pid_t child : children) expect_exit(child);
}

}  // namespace gemvjit::test
