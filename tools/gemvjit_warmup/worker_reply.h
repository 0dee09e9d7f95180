// What a compile worker says to its parent, as lines of JSON.
#pragma once

#include <cstdint>
#include <string>

#include "gemvjit/gemvjit.h"

namespace gemvjit::tools {

// What became of a kernel.
struct KernelOutcome {
  std::string path, error;
  int outcome = GEMVJIT_OUTCOME_FAILED, status = GEMVJIT_INTERNAL_ERROR;
  double milliseconds = 0;
  unsigned compile_ms = 0, registers = 0, smem_bytes = 0, spill_bytes = 0;
  std::uint64_t cubin_bytes = 0;
};

// What a worker says: a line of the log, or what became of a kernel.
struct WorkerReply : KernelOutcome {
  bool is_log = false;
  int log_level = GEMVJIT_LOG_INFO;
  std::string message;  // of the log
};
std::string write_reply(const WorkerReply& reply);
// False for a line that no worker of this version writes.
bool read_reply(const std::string& line, WorkerReply& reply);

}  // namespace gemvjit::tools
