// Questions about problems that neither compile nor load: what is possible, what would be chosen, what is there.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "src/runtime/kernel_report.h"

namespace gemvjit {

// Whether such a kernel can exist, whatever the tables say: invalid_shape, unsupported, no_driver (no target).
Status supported(const Context& context, const ProblemRequest& request);

// The nt for M, 0 if none; see TuningTables::pick_nt.
Result<int> pick_nt(const Context& context, const ProblemRequest& request, std::int64_t m);

Result<bool> is_tuned(const Context& context, const ProblemRequest& request);

// For people: which kernel the problem gets for M, and why.
Result<std::string> explain(const Context& context, const ProblemRequest& request, std::int64_t m);

// Names the distinct kernels. cancelled if the callback says stop; else the first malformed problem's failure.
Status plan(const Context& context, std::span<const ProblemRequest> requests, const KernelCallback& on_kernel);

// Looks whether each is in the cache, whole; opens neither library, and changes nothing in the cache, in its counters
// or in what is warned of later. Besides plan()'s failures: entry_damaged if one is damaged, else not_ready if one is
// missing: also one that cannot be read, whose own status is io_error.
Status check(const Context& context, std::span<const ProblemRequest> requests, const KernelCallback& on_kernel);

}  // namespace gemvjit
