// NVRTC's first compile in a process would take signals for itself; the host's actions stay as they were, with their
// flags, also in between. In a process of its own, since only the first one does it.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "src/cuda/nvrtc_api.h"
#include "tests/support/processes.h"

namespace gemvjit::test {
namespace {

void host_handler(int, siginfo_t*, void*) {}

struct sigaction host_action() {
  struct sigaction action {};
  action.sa_sigaction = host_handler;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigaddset(&action.sa_mask, SIGUSR1);
  return action;
}

bool is_hosts(int signal) {
  struct sigaction now {};
  return ::sigaction(signal, nullptr, &now) == 0 && now.sa_sigaction == host_handler;
}

// Flags and mask, too; SA_RESTORER, which glibc adds, apart.
bool is_as_it_was(int signal) {
  struct sigaction now {};
  const struct sigaction expected = host_action();
  return ::sigaction(signal, nullptr, &now) == 0 && now.sa_sigaction == host_handler &&
         (now.sa_flags & (SA_SIGINFO | SA_ONSTACK | SA_RESTART)) == expected.sa_flags &&
         sigismember(&now.sa_mask, SIGUSR1) == 1 && sigismember(&now.sa_mask, signal) == 0;
}

constexpr int no_nvrtc = 77;

TEST(NvrtcSignals, TheHostsActionsStayInTheFirstCompile) {
  const pid_t child = start_process([] {
    const struct sigaction action = host_action();
    for (const int signal : {SIGINT, SIGTERM, SIGXFSZ}) {
      if (::sigaction(signal, &action, nullptr) != 0) return 1;
    }
    std::atomic<bool> ends{false};
    int foreign = 0;
    std::thread watcher([&] {
      while (!ends.load()) {
        if (!is_hosts(SIGINT) || !is_hosts(SIGTERM)) ++foreign;
        std::this_thread::sleep_for(std::chrono::microseconds(20));
      }
    });
    const auto nvrtc = cuda::load_nvrtc(cuda::nvrtc_search_from_environment(), 0, "test");  // compiles a probe
    ends = true;
    watcher.join();
    if (!nvrtc) return no_nvrtc;
    for (const int signal : {SIGINT, SIGTERM, SIGXFSZ}) {
      if (!is_as_it_was(signal)) return 2;
    }
    return foreign == 0 ? 0 : 3;
  });
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == no_nvrtc) GTEST_SKIP() << "no NVRTC";
  EXPECT_EQ(WEXITSTATUS(status), 0) << "2: not as it was; 3: not all the time";
}

}  // namespace
}  // namespace gemvjit::test
