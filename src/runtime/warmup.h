// warm_up: make every kernel of some problems ready, on several threads.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "src/runtime/kernel_report.h"

namespace gemvjit {

struct WarmupOptions {
  KernelCallback on_kernel;                       // from the threads that build, never from two at once
  const volatile std::int32_t* cancel = nullptr;  // non-zero: start nothing more
  // How far: in the cache only, or on the device, which is for kernels of the context's device alone.
  std::optional<Readiness> load = Readiness::resolved;
  bool require_cache = false;  // a kernel that cannot be kept in a directory counts as failed
};

// `overall`: ok; cancelled; internal_error after a callback that threw (which cancels); else the first failure in the
// order of the problems.
using WarmupResult = ProblemStatuses;

// not_ready at once, for all problems, where kernels would be loaded while the driver tells of a capturing stream.
// Blocks until all is done or what was begun before a cancel has ended. The kernels that take longest to compile are
// begun first (src/catalog/compile_cost.h), of equals the largest.
WarmupResult warm_up(Context& context, std::span<const ProblemRequest> requests, const WarmupOptions& options);

}  // namespace gemvjit
