// ready: whether launches would find their kernels and load nothing. Looks at what this context has on its device; asks
// neither the cache nor the compiler.
#pragma once

#include <span>

#include "src/runtime/work_plan.h"

namespace gemvjit {

// Each launch of the problems, whichever kernel it gets, in the calling thread's CUDA context, or the device's primary
// one if none is current. no_driver without a device; not_ready at once, for all problems, where the driver tells of a
// capturing stream. Threads: any; waits for no build and no load.
ProblemStatuses ready(const Context& context, std::span<const ProblemRequest> requests);

}  // namespace gemvjit
