#include "src/api/api_support.h"

namespace api = gemvjit::api;
using gemvjit::Status;

gemvjit_status gemvjit_stats(const gemvjit_context* context, gemvjit_stats_data* stats) {
  return api::guarded([&] {
    GEMVJIT_TRY(api::check_context(context));
    GEMVJIT_TRY(api::check_struct("gemvjit_stats_data", stats));
    const gemvjit::Counters& counters = context->impl->counters();
    stats->launches = counters.launches.total();
    stats->launch_misses = counters.launch_misses.load();
    stats->compiles = counters.compiles.load();
    stats->compile_failures = counters.compile_failures.load();
    stats->cache_hits = counters.cache_hits.load();
    stats->cache_misses = counters.cache_misses.load();
    stats->cache_damaged = context->impl->store().stats().damaged;
    stats->cache_writes = counters.cache_writes.load();
    stats->cache_write_failures = counters.cache_write_failures.load();
    stats->kernels_loaded = context->impl->registry().size();
    stats->untuned_kernels = counters.untuned_kernels.load();
    stats->compile_milliseconds = counters.compile_milliseconds.load();
    return Status::ok();
  });
}
