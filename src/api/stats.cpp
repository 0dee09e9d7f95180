#include <algorithm>
#include <cstddef>
#include <cstring>

#include "src/api/api_support.h"

namespace api = gemvjit::api;
using gemvjit::Match;
using gemvjit::Status;

namespace {

// The struct as older headers had it.
constexpr std::size_t older_sizes[] = {
    offsetof(gemvjit_stats_data, remote_hits), offsetof(gemvjit_stats_data, cluster_fallbacks),
    offsetof(gemvjit_stats_data, unserved_problems), offsetof(gemvjit_stats_data, exact_kernels),
    offsetof(gemvjit_stats_data, build_waits)};

}  // namespace

gemvjit_status gemvjit_stats(const gemvjit_context* context, gemvjit_stats_data* stats) {
  return api::guarded([&] {
    GEMVJIT_TRY(api::check_context(context));
    if (stats == nullptr || std::ranges::count(older_sizes, stats->struct_size) == 0) {
      GEMVJIT_TRY(api::check_struct("gemvjit_stats_data", stats));
    }
    const gemvjit::Counters& counters = context->impl->counters();
    const gemvjit::StoreStats store = context->impl->store().stats();
    gemvjit_stats_data now{};
    now.struct_size = stats->struct_size;
    now.launches = counters.launches.total();
    now.launch_misses = counters.launch_misses.load();
    now.compiles = counters.compiles.load();
    now.compile_failures = counters.compile_failures.load();
    now.cache_hits = counters.cache_hits.load();
    now.cache_misses = counters.cache_misses.load();
    now.cache_damaged = store.damaged;
    now.cache_writes = counters.cache_writes.load();
    now.cache_write_failures = counters.cache_write_failures.load();
    now.kernels_loaded = context->impl->registry().size();
    now.compile_milliseconds = counters.compile_milliseconds.load();
    now.exact_kernels = counters.kernels_of(Match::exact);
    now.predicted_kernels = counters.kernels_of(Match::predicted);
    now.nearest_kernels = counters.kernels_of(Match::nearest_shape);
    now.default_kernels = counters.kernels_of(Match::family_default);
    now.untuned_kernels = now.predicted_kernels + now.nearest_kernels + now.default_kernels;
    now.build_waits = counters.build_waits.load();
    now.build_stale_waits = counters.build_stale_waits.load();
    now.build_shared_failures = counters.build_shared_failures.load();
    now.cache_evictions = store.evictions;
    now.cache_thrashed = store.thrashed;
    now.cache_writes_refused = store.refused;
    now.cache_quarantined = store.quarantined;
    now.cache_determinism_alarms = store.determinism_alarms;
    now.cache_unreadable = store.unreadable;
    now.unserved_problems = counters.unserved_problems.load();
    now.cluster_fallbacks = counters.cluster_fallbacks.load();
    if (const gemvjit::RemoteTier* remote = context->impl->remote()) {
      const gemvjit::RemoteStats of_remote = remote->stats();
      now.remote_hits = of_remote.hits;
      now.remote_misses = of_remote.misses;
      now.remote_failures = of_remote.failures;
      now.remote_uploads = of_remote.uploads;
      now.remote_upload_failures = of_remote.upload_failures;
    }
    std::memcpy(stats, &now, stats->struct_size);
    return Status::ok();
  });
}
