// SIGINT and SIGTERM as a flag: the first asks the work to stop and keep what is finished, a second one,
// of either kind, ends the program.
#pragma once

#include <cstdint>

namespace gemvjit::tools {

// Installs the handlers; once, from main.
void catch_interrupts();
// Non-zero after a signal. Static storage; may be given to the library as its cancel flag.
const volatile std::int32_t* interrupt_flag();

}  // namespace gemvjit::tools
