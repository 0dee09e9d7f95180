// The first signal is a flag, the second of either kind ends the program.
#include "tools/common/interrupt.h"

#include <gtest/gtest.h>

#include <csignal>

namespace gemvjit::tools {
namespace {

TEST(InterruptDeathTest, TheFirstIsAFlagTheSecondEndsTheProgram) {
  for (const auto& [first, second] :
       {std::pair{SIGINT, SIGINT}, {SIGINT, SIGTERM}, {SIGTERM, SIGINT}, {SIGHUP, SIGTERM}, {SIGINT, SIGHUP}}) {
    EXPECT_EXIT(
        {
          catch_interrupts();
          if (*interrupt_flag() != 0) std::_Exit(1);
          std::raise(first);
          if (*interrupt_flag() == 0) std::_Exit(2);
          std::raise(second);
          std::_Exit(3);
        },
        testing::KilledBySignal(second), "");
  }
}

}  // namespace
}  // namespace gemvjit::tools
