// What gemvjit-warmup does about the remote cache: the library fetches and publishes by itself; here is what the
// command line says of it, and what becomes of the exit code.
#pragma once

#include <optional>
#include <string>

#include "gemvjit/gemvjit.h"
#include "tools/common/exit_codes.h"
#include "tools/gemvjit_warmup/problem_list.h"
#include "tools/gemvjit_warmup/warmup_options.h"

namespace gemvjit::tools {

// Puts --remote, --remote-write and what --max-seconds means for fetching into the environment, from which the library
// takes them. Before any thread.
void name_remote(const WarmupOptions& options);

// Of an isolated run, whose workers are told of no remote cache: this process fetches before them, and publishes what
// is in the cache after them (finish_remote). `context` is of no use for compiling any more.
void fetch_for_workers(gemvjit_context* context, const ProblemList& list);

// Processes that are started while this lives are told of no remote cache; what this one is told is as before after it.
// It changes the environment: while no other thread reads it.
class NoRemoteForWorkers {
 public:
  NoRemoteForWorkers();
  ~NoRemoteForWorkers();
  NoRemoteForWorkers(const NoRemoteForWorkers&) = delete;
  NoRemoteForWorkers& operator=(const NoRemoteForWorkers&) = delete;

 private:
  const char* const variable_;
  const std::optional<std::string> before_;
};

// Waits for what is published. exit_remote_failed, with why on stderr, where the remote cache had to be of use
// (--remote-required) and was not; else `code`. A signal meanwhile ends the process with exit_interrupted: the context
// would wait for what is being sent.
ExitCode finish_remote(gemvjit_context* context, const WarmupOptions& options, const ProblemList& list, ExitCode code);

}  // namespace gemvjit::tools
