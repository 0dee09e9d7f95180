#include "src/runtime/work_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

namespace gemvjit {
namespace {

// The key of a request for one target.
Result<KernelKey> key_for(const Context& context, const ProblemRequest& request, int nt, const Arch& arch,
                          Choice& choice) {
  GEMVJIT_TRY_ASSIGN(choice, context.tables().lookup(arch, request.problem, nt, request.allow_untuned));
  return make_key(request.problem, nt, choice.tile, choice.pdl_wins, arch);
}

Status check_nt(const ProblemRequest& request) {
  if (request.nt == 0) return Status::ok();
  std::string accepted = "0";
  for (const int nt : nt_values(request.problem.family)) {
    if (nt == request.nt) return Status::ok();
    if (nt != 0) accepted += fmt::format(", {}", nt);
  }
  return {StatusCode::invalid_argument,
          fmt::format("nt {} is not one of {}'s: {}", request.nt, family_row(request.problem.family).name, accepted)};
}

// The kernel of a key; a failure if this version makes none of that name.
Result<WorkItem> plan_named(const Context& context, const KernelKey& key) {
  GEMVJIT_TRY_ASSIGN(const KernelSpec spec, describe_key(key));
  WorkItem item;
  item.candidates = {spec.key};
  item.is_named = true;
  item.native = context.is_native(key.arch);
  return item;
}

using KnownItems = std::unordered_map<KernelKey, std::vector<std::size_t>, KernelKeyHash>;  // items by first name

// Adds the kernel, or the problem to those that asked for it before. All of the names must be the same: a problem that
// names its target, or allows measured configurations only, must not be served by a name that only another one takes.
void add_item(WorkPlan& plan, KnownItems& known, WorkItem item, std::size_t problem) {
  std::vector<std::size_t>& alike = known[item.key()];
  const auto same = std::find_if(alike.begin(), alike.end(), [&](std::size_t i) {
    return plan.items[i].candidates == item.candidates && plan.items[i].is_fallback == item.is_fallback;
  });
  const std::size_t place = same != alike.end() ? *same : plan.items.size();
  if (same == alike.end()) {
    alike.push_back(place);
    plan.items.push_back(std::move(item));
  }
  std::vector<std::size_t>& problems = plan.items[place].problems;
  if (problems.empty() || problems.back() != problem) problems.push_back(problem);
}

// The item's kernels without their clusters; nothing if none has one.
std::optional<WorkItem> fallback_of(const WorkItem& item) {
  WorkItem fallback;
  for (const KernelKey& key : item.candidates) {
    if (const std::optional<KernelKey> alone = without_cluster(key)) fallback.candidates.push_back(*alone);
  }
  if (fallback.candidates.empty()) return std::nullopt;
  fallback.choice = item.choice;
  fallback.is_fallback = true;
  return fallback;
}

}  // namespace

Result<std::vector<Arch>> targets_of(const Context& context, const ProblemRequest& request) {
  if (request.arch) return std::vector<Arch>{*request.arch};
  if (context.device() != nullptr) return context.device()->targets;
  return Status(StatusCode::no_driver,
                "the context has no device and the problem names no arch: name one, as in sm_90a");
}

Result<WorkItem> plan_kernel(const Context& context, const ProblemRequest& request, int nt) {
  GEMVJIT_TRY(request.malformed);
  GEMVJIT_TRY(check_problem(request.problem));
  GEMVJIT_TRY_ASSIGN(const std::vector<Arch> targets, targets_of(context, request));
  WorkItem item;
  Status first_failure;
  for (const Arch& arch : targets) {
    Choice choice;
    Result<KernelKey> key = key_for(context, request, nt, arch, choice);
    if (!key) {
      if (first_failure) first_failure = key.status();
      continue;
    }
    if (item.candidates.empty()) item.choice = choice;
    item.candidates.push_back(*key);
    item.native = item.native || context.is_native(arch);
  }
  if (item.candidates.empty()) return first_failure;
  return item;
}

WorkPlan plan_work(const Context& context, std::span<const ProblemRequest> requests) {
  WorkPlan plan;
  plan.problem_status.resize(requests.size());
  KnownItems known;
  for (std::size_t p = 0; p < requests.size(); ++p) {
    const ProblemRequest& request = requests[p];
    Status& status = plan.problem_status[p];
    if (!request.malformed) {
      status = request.malformed;
      continue;
    }
    if (request.key) {
      Result<WorkItem> item = plan_named(context, *request.key);
      status = item.status();
      if (item) add_item(plan, known, std::move(item).value(), p);
      continue;
    }
    status = check_nt(request);
    if (!status) continue;
    std::size_t made = 0;
    Status untuned;
    for (const int nt : nt_values(request.problem.family)) {
      if (request.nt != 0 && nt != request.nt) continue;
      Result<WorkItem> item = plan_kernel(context, request, nt);
      if (item) {
        std::optional<WorkItem> fallback;
        if (request.cluster_fallback) fallback = fallback_of(*item);
        add_item(plan, known, std::move(item).value(), p);
        if (fallback) add_item(plan, known, std::move(*fallback), p);
        ++made;
      } else if (item.status().code() == StatusCode::untuned) {
        untuned = item.status();
      } else if (status) {
        status = item.status();
      }
    }
    if (status && made == 0) status = untuned;
  }
  return plan;
}

}  // namespace gemvjit
