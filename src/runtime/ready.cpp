#include "src/runtime/ready.h"

#include <fmt/format.h>

#include "src/runtime/capturing.h"

namespace gemvjit {
namespace {

ReadyAnswer same_for_all(const Status& status, std::size_t count) {
  return {status, std::vector<Status>(count, status)};
}

// The context in which a launch of this thread would run.
CudaContextId launching_context(const Device& device) {
  CUcontext current = nullptr;
  if (device.driver->cuCtxGetCurrent(&current) != CUDA_SUCCESS || current == nullptr) return device.primary_id;
  const Result<CudaContextId> id = device.context_id(current);
  return id ? *id : device.primary_id;
}

// One of the item's names is enough; another may have been taken for want of a compiler that knows the first, and one
// that cannot run its cluster is served by the one without.
Status item_ready(const KernelRegistry& registry, const WorkItem& item, CudaContextId context) {
  bool is_loaded = false;
  const auto is_ready = [&](const KernelKey& key) {
    const LoadedKernel* const kernel = registry.find_key(key);
    is_loaded = is_loaded || kernel != nullptr;
    return kernel != nullptr && registry.is_resolved(*kernel, context);
  };
  for (const KernelKey& key : item.candidates) {
    if (is_ready(key)) return Status::ok();
    if (const auto alone = without_cluster(key); alone && is_ready(*alone)) return Status::ok();
  }
  return {StatusCode::not_ready,
          fmt::format("{} is {}: call gemvjit_warmup", item.key().text(),
                      is_loaded ? "loaded, and not resolved in the current CUDA context" : "not loaded")};
}

}  // namespace

ReadyAnswer ready(const Context& context, std::span<const ProblemRequest> requests) {
  const Device* const device = context.device();
  if (device == nullptr) {
    return same_for_all({StatusCode::no_driver, "this context has no device to launch a kernel on"}, requests.size());
  }
  if (some_stream_captures(*device)) {
    return same_for_all(
        {StatusCode::not_ready,
         "a stream captures a graph: ask before the capture begins, when what is missing can be warmed"},
        requests.size());
  }
  const CudaContextId launching = launching_context(*device);
  const WorkPlan plan = plan_work(context, requests);
  ReadyAnswer answer;
  answer.problems = plan.problem_status;
  for (const WorkItem& item : plan.items) {
    if (item.is_fallback) continue;
    const Status status = item_ready(context.registry(), item, launching);
    if (status) continue;
    for (const std::size_t problem : item.problems) {
      if (answer.problems[problem]) answer.problems[problem] = status;
    }
  }
  for (const Status& status : answer.problems) {
    if (answer.overall && !status) answer.overall = status;
  }
  return answer;
}

}  // namespace gemvjit
