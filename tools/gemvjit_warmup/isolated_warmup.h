// gemvjit_warmup with the compiler in processes of their own (worker.h): one that crashes, is killed, hangs or runs out
// of memory fails its kernel and no other, and a new process takes its place.
//
// Kernels that are in the cache are told of first, without a worker. The rest are given out, the dearest first. Results
// come into the cache by the workers themselves. Of a problem that names no target, only the kernel for the first
// target of the GPU here is built.
#pragma once

#include <cstdint>
#include <string>

#include "gemvjit/gemvjit.h"
#include "tools/gemvjit_warmup/problem_list.h"

namespace gemvjit::tools {

struct IsolationOptions {
  int jobs = 1;
  double timeout_s = 600;  // of one kernel, waiting for another process's build of it included
  int memory_mb = 0;       // of a worker's address space; 0: no limit
  int log_level = GEMVJIT_LOG_DEFAULT;
  gemvjit_log_callback log_callback = nullptr;    // both as the library calls them, from this thread
  gemvjit_kernel_callback on_kernel = nullptr;    // non-zero: give out no more; what runs is finished
  void* user = nullptr;                           // of both
  const volatile std::int32_t* cancel = nullptr;  // the same, set by a signal handler
};

// As gemvjit_warmup with require_cache: OK, CANCELLED, or the first failure. Threads: the one that began the process,
// since workers end with the thread that made them.
gemvjit_status warm_isolated(gemvjit_context* context, const ProblemList& list, const IsolationOptions& options);

}  // namespace gemvjit::tools
