#include "src/cuda/nvrtc_call.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <system_error>
#include <thread>

namespace gemvjit::cuda {
namespace {

constexpr int first_calls = 3;  // to open it, to compile nothing as a probe, and a kernel
constexpr std::chrono::microseconds pause_between{100};

std::atomic<int> under_way{0}, over{0};
std::atomic<pid_t> watched_in{0};  // the process that has the thread

void watch() noexcept {
  do {
    watch_process_end();
    std::this_thread::sleep_for(pause_between);
  } while (under_way.load() > 0 && over.load() < first_calls && !process_is_ending());
  watched_in.store(0);
}

void start_watching() {
  if (watched_in.exchange(::getpid()) == ::getpid()) return;
  sigset_t all, before;  // no signal of the program's may land in the thread
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    std::thread(watch).detach();
  } catch (const std::system_error&) {  // no thread to be had
    watched_in.store(0);
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace

NvrtcCall::NvrtcCall() {
  under_way.fetch_add(1);
  if (over.load() < first_calls) start_watching();
}

NvrtcCall::~NvrtcCall() {
  watch_process_end();
  over.fetch_add(1);
  under_way.fetch_sub(1);
}

}  // namespace gemvjit::cuda
