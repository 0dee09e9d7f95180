// SIGINT, SIGTERM and SIGHUP as a flag: the first asks the work to stop and keep what is finished, a second one, of
// any kind, ends the program. A SIGHUP that the program was started to ignore, as by nohup, stays ignored.
#pragma once

#include <cstdint>

namespace gemvjit::tools {

// Installs the handlers; once, from main.
void catch_interrupts();
// Non-zero after a signal. Static storage; may be given to the library as its cancel flag.
const volatile std::int32_t* interrupt_flag();

// A write to a pipe that nobody reads fails instead of ending the program. From main; a program that this one starts
// has to be given the default back.
void ignore_broken_pipes();
// The same for a write beyond the limit of a file's size (ulimit -f). Every tool does, by run_tool.
void ignore_file_size_signal();

}  // namespace gemvjit::tools
