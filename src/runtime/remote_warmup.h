// What a warmup does with the remote cache: brings what is not here before anything is compiled, and publishes after.
#pragma once

#include <functional>
#include <vector>

#include "src/runtime/work_plan.h"

namespace gemvjit {

class RemoteWarmup {
 public:
  // Asks for the kernels of the plan that are in no local layer. Processes of one machine that ask for the same plan at
  // one time take turns, so that the first fetches for all, or finds out for all that the remote does not answer.
  // Nothing where the context has no remote cache.
  RemoteWarmup(Context& context, const WorkPlan& plan, const std::function<bool()>& stop);
  // Queues what the plan's kernels are by now (remote_tier.h).
  void publish();

 private:
  Context& context_;
  std::vector<EntryId> plan_;       // by their first names
  std::vector<EntryId> not_there_;  // at the remote
};

}  // namespace gemvjit
