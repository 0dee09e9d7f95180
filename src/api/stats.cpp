#include <cstddef>
#include <cstring>

#include "src/api/api_support.h"

namespace api = gemvjit::api;
using gemvjit::Match;
using gemvjit::Status;

namespace {

// The struct as the first header had it.
constexpr std::size_t first_size = offsetof(gemvjit_stats_data, exact_kernels);

}  // namespace

gemvjit_status gemvjit_stats(const gemvjit_context* context, gemvjit_stats_data* stats) {
  return api::guarded([&] {
    GEMVJIT_TRY(api::check_context(context));
    if (stats == nullptr || stats->struct_size != first_size) {
      GEMVJIT_TRY(api::check_struct("gemvjit_stats_data", stats));
    }
    const gemvjit::Counters& counters = context->impl->counters();
    gemvjit_stats_data now{};
    now.struct_size = stats->struct_size;
    now.launches = counters.launches.total();
    now.launch_misses = counters.launch_misses.load();
    now.compiles = counters.compiles.load();
    now.compile_failures = counters.compile_failures.load();
    now.cache_hits = counters.cache_hits.load();
    now.cache_misses = counters.cache_misses.load();
    now.cache_damaged = context->impl->store().stats().damaged;
    now.cache_writes = counters.cache_writes.load();
    now.cache_write_failures = counters.cache_write_failures.load();
    now.kernels_loaded = context->impl->registry().size();
    now.compile_milliseconds = counters.compile_milliseconds.load();
    now.exact_kernels = counters.kernels_of(Match::exact);
    now.predicted_kernels = counters.kernels_of(Match::predicted);
    now.nearest_kernels = counters.kernels_of(Match::nearest_shape);
    now.default_kernels = counters.kernels_of(Match::family_default);
    now.untuned_kernels = now.predicted_kernels + now.nearest_kernels + now.default_kernels;
    std::memcpy(stats, &now, stats->struct_size);
    return Status::ok();
  });
}
