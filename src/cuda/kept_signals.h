// KeptSignals: the host's signal handlers while NVRTC compiles for the first time.
//
// NVRTC's front end then takes SIGINT, SIGTERM and SIGXFSZ for itself, for some 20 ms: a handler that ends the process
// in the place of the host's. Afterwards it puts back the host's function, but not its flags, so that one for three
// arguments (SA_SIGINFO), or for a stack of its own, is called wrongly from then on. Nothing in NVRTC's interface
// prevents that. Here a thread looks for its handler, many times a millisecond, and puts back the host's action as it
// was, which the end of the scope does once more. A handler that is not NVRTC's is left alone: the host may set one
// meanwhile.
#pragma once

#include <signal.h>

#include <array>
#include <atomic>
#include <thread>

namespace gemvjit::cuda {

class KeptSignals {
 public:
  explicit KeptSignals(const void* in_nvrtc);  // an address in the library
  ~KeptSignals();
  KeptSignals(const KeptSignals&) = delete;
  KeptSignals& operator=(const KeptSignals&) = delete;

 private:
  struct Kept {
    int signal;
    struct sigaction action;
  };
  void put_back(bool at_end);

  const void* const library_;  // where it is mapped
  std::array<Kept, 3> kept_{};
  std::atomic<bool> ends_{false};
  std::thread watcher_;
};

}  // namespace gemvjit::cuda
