// Exit codes of the command-line tools, once. docs/tools.md lists them for users.
#pragma once

namespace gemvjit::tools {

enum ExitCode : int {
  exit_done = 0,           // check: everything is warm
  exit_usage = 2,          // a bad option, shape, target or model folder; nothing was done
  exit_some_failed = 3,    // some kernels could not be built
  exit_nothing_found = 4,  // a model without usable layers; no cache entry of that name
  exit_environment = 5,    // no NVRTC, a target it does not know, no GPU, a driver that fails, cache or stdout unusable
  exit_cache_not_writable = 6,  // though asked to write
  exit_entry_damaged = 7,
  exit_remote_failed = 8,  // though it had to be of use
  exit_not_warm = 9,       // check: some kernels are missing; max-seconds: some are left
  exit_not_trusted = 10,   // not signed as the policy asks, or wrongly
  exit_interrupted = 130,  // SIGINT, SIGTERM or SIGHUP; finished work was kept
};

}  // namespace gemvjit::tools
