// The compile worker of --isolate: the process that a crash of the compiler may end. A hidden first argument of this
// program starts it.
//
// Keys come on stdin, a line each; for each one line of JSON goes to descriptor 3, after any number of lines of the
// library's log. It ends when stdin does, and is killed when its parent ends. SIGINT and SIGTERM are the parent's to
// answer: it sends no more keys, and what is being compiled is finished.
#pragma once

#include <string>
#include <vector>

#include "gemvjit/gemvjit.h"

namespace gemvjit::tools {

inline constexpr const char* kWorkerArgument = "--compile-worker";

struct WorkerSettings {
  std::string cache_dir;  // as the parent's context has it
  int log_level = GEMVJIT_LOG_DEFAULT;
  int memory_mb = 0;  // of address space; 0: no limit
  int parent = 0;     // its process id
};
std::vector<std::string> worker_arguments(const WorkerSettings& settings);

// The worker's main. argv[1] is kWorkerArgument.
int run_worker(int argc, char** argv);

}  // namespace gemvjit::tools
