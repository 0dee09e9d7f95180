#include "tools/common/interrupt.h"

#include <csignal>

namespace gemvjit::tools {
namespace {

volatile std::int32_t interrupted = 0;

// The next signal, of either kind, has its default effect.
void on_signal(int) {
  interrupted = 1;
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

}  // namespace

void catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

const volatile std::int32_t* interrupt_flag() { return &interrupted; }

}  // namespace gemvjit::tools
