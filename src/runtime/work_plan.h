// plan_work: problems become the distinct kernels they need. Pure: opens nothing, looks into no cache.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/runtime/context.h"

namespace gemvjit {

// What a caller asks to have ready.
struct ProblemRequest {
  Status malformed;  // not ok: the problem means nothing, and fails alone
  Problem problem;
  int nt = 0;  // 0: every nt of the family
  bool allow_untuned = false;
  bool cluster_fallback = false;  // also what takes the place of kernels with clusters, for the cache
  std::optional<Arch> arch;       // none: the context's device
  // Just this kernel, whatever the tables say; what else the request holds is ignored then.
  std::optional<KernelKey> key;
};

// One kernel.
struct WorkItem {
  std::vector<KernelKey> candidates;  // its names, best first (see resolver.h); one where the target was named
  Choice choice;                      // of the first; nothing where a key was asked for
  bool is_named = false;              // asked for by its key
  bool is_fallback = false;           // what takes the place of a kernel with a cluster: for the cache alone
  bool native = false;                // can be loaded on the context's device
  std::vector<std::size_t> problems;  // who asked for it, in order

  const KernelKey& key() const { return candidates.front(); }
};

struct WorkPlan {
  std::vector<WorkItem> items;         // in the order in which problems first ask for them
  std::vector<Status> problem_status;  // one a problem: why nothing can be made of it
};

// What became of the problems of a call.
struct ProblemStatuses {
  Status overall;
  std::vector<Status> problems;  // the first failure of each problem's kernels, or ok

  static ProblemStatuses same_for_all(const Status& status, std::size_t count) {
    return {status, std::vector<Status>(count, status)};
  }
  // A failure of one of the problem's kernels: the first stays.
  void note_failure(std::size_t problem, const Status& status) {
    if (problems[problem]) problems[problem] = status;
  }
  // `overall`: the first failure in the order of the problems.
  void conclude() {
    for (const Status& status : problems) {
      if (overall && !status) overall = status;
    }
  }
};

// Where nt is 0 and untuned configurations are not allowed, nt values without a measured one are left out; it is a
// failure (untuned) if that leaves none.
WorkPlan plan_work(const Context& context, std::span<const ProblemRequest> requests);

// The one kernel of a request for `nt`.
Result<WorkItem> plan_kernel(const Context& context, const ProblemRequest& request, int nt);

// The targets a request is for, best first; no_driver if it names none and there is no device.
Result<std::vector<Arch>> targets_of(const Context& context, const ProblemRequest& request);

}  // namespace gemvjit
