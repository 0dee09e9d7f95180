#include "src/cuda/kept_signals.h"

#include <dlfcn.h>
#include <pthread.h>

#include <chrono>
#include <cstring>
#include <system_error>

namespace gemvjit::cuda {
namespace {

constexpr std::chrono::microseconds pause_between_looks{50};

const void* base_of(const void* address) {
  Dl_info info{};
  return address != nullptr && ::dladdr(address, &info) != 0 ? info.dli_fbase : nullptr;
}

const void* function_of(const struct sigaction& action) { return reinterpret_cast<const void*>(action.sa_handler); }

}  // namespace

KeptSignals::KeptSignals(const void* in_nvrtc) : library_(base_of(in_nvrtc)) {
  constexpr std::array<int, 3> taken{SIGINT, SIGTERM, SIGXFSZ};
  for (std::size_t i = 0; i < taken.size(); ++i) {
    kept_[i].signal = taken[i];
    ::sigaction(taken[i], nullptr, &kept_[i].action);
  }
  sigset_t all, before;  // no signal of the program's may land in the thread
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    watcher_ = std::thread([this] {
      while (!ends_.load()) {
        put_back(false);
        std::this_thread::sleep_for(pause_between_looks);
      }
    });
  } catch (const std::system_error&) {  // NOLINT(bugprone-empty-catch): no thread to be had; the end is left
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

KeptSignals::~KeptSignals() {
  ends_.store(true);
  if (watcher_.joinable()) watcher_.join();
  put_back(true);
}

void KeptSignals::put_back(bool at_end) {
  for (const Kept& kept : kept_) {
    struct sigaction now {};
    if (::sigaction(kept.signal, nullptr, &now) != 0) continue;
    const void* const function = function_of(now);
    const bool is_hosts = function == function_of(kept.action);
    const bool is_changed = now.sa_flags != kept.action.sa_flags ||
                            std::memcmp(&now.sa_mask, &kept.action.sa_mask, sizeof now.sa_mask) != 0;
    // SIG_DFL and SIG_IGN lie in no library.
    const bool is_nvrtcs = !is_hosts && library_ != nullptr && base_of(function) == library_;
    if (is_nvrtcs || (at_end && is_hosts && is_changed)) ::sigaction(kept.signal, &kept.action, nullptr);
  }
}

}  // namespace gemvjit::cuda
