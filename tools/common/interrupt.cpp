#include "tools/common/interrupt.h"

#include <csignal>

namespace gemvjit::tools {
namespace {

volatile std::int32_t interrupted = 0;

void on_signal(int) { interrupted = 1; }

}  // namespace

void catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);  // a second signal has its default effect
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

const volatile std::int32_t* interrupt_flag() { return &interrupted; }

}  // namespace gemvjit::tools
