#include "tools/gemvjit_warmup/remote_use.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "src/runtime/options.h"
#include "tools/cache_view/tool_settings.h"
#include "tools/common/interrupt.h"
#include "tools/common/output.h"
#include "tools/gemvjit_warmup/kernel_calls.h"

namespace gemvjit::tools {
namespace {

constexpr std::int32_t flush_ms = default_flush_ms, flush_slice_ms = 200;

bool has_remote() {
  const Result<RemoteOptions> remote = resolve_remote_options(tool_environment());
  return remote && remote->is_set();
}

// What cannot be compiled any more is fetched, or fails without a word.
void warm_without_compiling(gemvjit_context* context, const ProblemList& list) {
  gemvjit_warmup_options warmup{};
  warmup.struct_size = sizeof warmup;
  warmup.level = GEMVJIT_LEVEL_COMPILED;
  warmup.cancel = interrupt_flag();
  (void)warm_kernels(context, list, warmup);
}

}  // namespace

void name_remote(const WarmupOptions& options) {
  if (!options.remote.empty()) ::setenv(option_row("remote").variable, options.remote.c_str(), 1);
  if (options.remote_write) ::setenv(option_row("remote_write").variable, "1", 1);
  const Result<RemoteOptions> remote = resolve_remote_options(tool_environment());
  const double seconds = std::max(1.0, std::ceil(options.max_seconds));  // at least what the option takes
  if (options.max_seconds > 0 && remote && 1000 * seconds < remote->budget_ms) {
    ::setenv(option_row("remote_budget").variable, fmt::format("{:.0f}", seconds).c_str(), 1);
  }
}

void fetch_for_workers(gemvjit_context* context, const ProblemList& list) {
  if (!has_remote()) return;
  (void)gemvjit_seal(context);
  warm_without_compiling(context, list);
  (void)gemvjit_flush(context, flush_ms);  // no thread that sends reads the environment while it changes
}

NoRemoteForWorkers::NoRemoteForWorkers()
    : variable_(option_row("remote").variable), before_(tool_environment()(variable_)) {
  ::setenv(variable_, no_remote, 1);
}

NoRemoteForWorkers::~NoRemoteForWorkers() {
  before_ ? ::setenv(variable_, before_->c_str(), 1) : ::unsetenv(variable_);
}

ExitCode finish_remote(gemvjit_context* context, const WarmupOptions& options, const ProblemList& list, ExitCode code) {
  if (options.isolate && has_remote()) warm_without_compiling(context, list);  // which publishes
  gemvjit_status flushed = GEMVJIT_CANCELLED;
  for (int waited = 0; flushed == GEMVJIT_CANCELLED && waited < flush_ms; waited += flush_slice_ms) {
    flushed = gemvjit_flush(context, flush_slice_ms);
    if (flushed != GEMVJIT_CANCELLED || *interrupt_flag() == 0) continue;
    complain("interrupted while kernels were published; they are in the cache, run again to publish the rest");
    std::fflush(stdout);
    std::_Exit(exit_interrupted);
  }
  if (flushed != GEMVJIT_OK) complain(gemvjit_last_error());
  if (!options.remote_required || code != exit_done) return code;
  if (!has_remote()) {
    complain("--remote-required: no remote cache is named, by --remote, GEMVJIT_REMOTE or a configuration file");
    return exit_remote_failed;
  }
  gemvjit_stats_data stats{};
  stats.struct_size = sizeof stats;
  (void)gemvjit_stats(context, &stats);
  if (flushed == GEMVJIT_OK && stats.remote_failures == 0 && stats.remote_upload_failures == 0) return code;
  complain(
      fmt::format("--remote-required: the remote cache failed: {} kernels could not be asked for, {} could not be "
                  "published",
                  stats.remote_failures, stats.remote_upload_failures));
  return exit_remote_failed;
}

}  // namespace gemvjit::tools
