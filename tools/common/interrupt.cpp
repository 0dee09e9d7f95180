#include "tools/common/interrupt.h"

#include <csignal>

namespace gemvjit::tools {
namespace {

volatile std::int32_t interrupted = 0;

constexpr int caught[] = {SIGINT, SIGTERM, SIGHUP};
volatile std::sig_atomic_t hangup_is_ignored = 0;

// The next signal, of any kind, has its default effect.
void on_signal(int) {
  interrupted = 1;
  for (const int signal : caught) {
    if (signal != SIGHUP || hangup_is_ignored == 0) std::signal(signal, SIG_DFL);
  }
}

}  // namespace

void catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  struct sigaction before {};
  hangup_is_ignored = sigaction(SIGHUP, nullptr, &before) == 0 && before.sa_handler == SIG_IGN;
  for (const int signal : caught) {
    if (signal != SIGHUP || hangup_is_ignored == 0) sigaction(signal, &action, nullptr);
  }
}

void ignore_broken_pipes() { std::signal(SIGPIPE, SIG_IGN); }

void ignore_file_size_signal() { std::signal(SIGXFSZ, SIG_IGN); }

const volatile std::int32_t* interrupt_flag() { return &interrupted; }

}  // namespace gemvjit::tools
