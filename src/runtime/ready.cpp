#include "src/runtime/ready.h"

#include <fmt/format.h>

#include <algorithm>

#include "src/runtime/capturing.h"

namespace gemvjit {
namespace {

// The context in which a launch of this thread would run.
CudaContextId launching_context(const Device& device) {
  const CUcontext current = device.current_context();
  if (current == nullptr) return device.primary_id;
  const Result<CudaContextId> id = device.context_id(current);
  return id ? *id : device.primary_id;
}

// Whether each number of tokens that the item's nt covers finds a kernel, whichever that is, and finds it resolved.
Status item_ready(const KernelRegistry& registry, const WorkItem& item, const LaunchShape& shape,
                  CudaContextId context) {
  const auto not_ready = [&](std::string_view why) {
    return Status(StatusCode::not_ready, fmt::format("{} {}: call gemvjit_warmup", item.key().text(), why));
  };
  if (!item.native) return not_ready("is for another target than the device's");
  const int nt = item.key().nt;
  for (const int covered : kNtWithTokens) {
    if (covered > std::max(nt, 1)) break;
    const LoadedKernel* const found = registry.find(shape, std::int64_t{covered} * kTokensPerTile).kernel;
    if (found == nullptr) {
      const bool is_loaded =
          std::ranges::any_of(item.candidates, [&](const KernelKey& key) { return registry.find_key(key) != nullptr; });
      return not_ready(is_loaded ? "is loaded, and not resolved" : "is not loaded");
    }
    if (!registry.is_resolved(*found, context)) return not_ready("is not resolved in the current CUDA context");
    if (nt == 0) break;  // a family without tokens has one kernel
  }
  return Status::ok();
}

}  // namespace

ProblemStatuses ready(const Context& context, std::span<const ProblemRequest> requests) {
  const Device* const device = context.device();
  if (device == nullptr) {
    return ProblemStatuses::same_for_all({StatusCode::no_driver, "this context has no device to launch a kernel on"},
                                         requests.size());
  }
  if (some_stream_captures(*device)) {
    return ProblemStatuses::same_for_all(
        {StatusCode::not_ready,
         "a stream captures a graph: ask before the capture begins, when what is missing can be warmed"},
        requests.size());
  }
  const CudaContextId launching = launching_context(*device);
  const WorkPlan plan = plan_work(context, requests);
  ProblemStatuses answer;
  answer.problems = plan.problem_status;
  for (const WorkItem& item : plan.items) {
    if (item.is_fallback) continue;
    for (const std::size_t problem : item.problems) {
      const LaunchShape shape = shape_of(requests[problem].problem);
      const Status status = item_ready(context.registry(), item, shape, launching);
      if (!status) answer.note_failure(problem, status);
    }
  }
  answer.conclude();
  return answer;
}

}  // namespace gemvjit
