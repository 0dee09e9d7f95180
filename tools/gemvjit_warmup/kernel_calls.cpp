#include "tools/gemvjit_warmup/kernel_calls.h"

#include <fmt/format.h>

#include "src/base/files.h"
#include "tools/common/printable.h"

namespace gemvjit::tools {
namespace {

std::vector<const char*> pointers(const std::vector<std::string>& texts) {
  std::vector<const char*> all;
  all.reserve(texts.size());
  for (const std::string& text : texts) all.push_back(text.c_str());
  return all;
}

}  // namespace

gemvjit_status plan_kernels(gemvjit_context* context, const ProblemList& list, gemvjit_kernel_callback on_kernel,
                            void* user) {
  if (!list.keys.empty()) {
    return gemvjit_plan_keys(context, pointers(list.keys).data(), list.keys.size(), on_kernel, user);
  }
  return gemvjit_plan(context, list.problems.data(), list.problems.size(), on_kernel, user);
}

gemvjit_status check_kernels(gemvjit_context* context, const ProblemList& list, gemvjit_kernel_callback on_kernel,
                             void* user) {
  if (!list.keys.empty()) {
    return gemvjit_check_keys(context, pointers(list.keys).data(), list.keys.size(), on_kernel, user);
  }
  return gemvjit_check(context, list.problems.data(), list.problems.size(), on_kernel, user);
}

gemvjit_status warm_kernels(gemvjit_context* context, const ProblemList& list, const gemvjit_warmup_options& options) {
  if (!list.keys.empty()) {
    return gemvjit_warmup_keys(context, pointers(list.keys).data(), list.keys.size(), &options);
  }
  return gemvjit_warmup(context, list.problems.data(), list.problems.size(), &options);
}

ExitCode make_planned_list(gemvjit_context* context, const WarmupOptions& options, ProblemList& list,
                           std::string& error) {
  std::string warning;
  const Result<Plan> plan = read_fitting_plan(options.plan_in, options.any_digest, warning);
  if (!plan) {
    error = plan.status().message();
    return exit_usage;
  }
  if (!warning.empty()) list.notes.push_back("warning: " + warning);
  if (plan->tuning_hash != gemvjit_tuning_hash(context)) {
    list.notes.push_back(fmt::format("plan {} was chosen by other tuning tables than those here; it means its own keys",
                                     printable(options.plan_in)));
  }
  for (const PlannedKernel& kernel : plan->kernels) {
    list.keys.push_back(kernel.id.key.text());
    list.sources.push_back(kernel.sources);
  }
  return exit_done;
}

void cut_to_shard(gemvjit_context* context, const Shard& shard, ProblemList& list) {
  if (shard.count <= 1) return;
  if (list.keys.empty()) {
    list.problems = problems_of_shard(context, list.problems, shard);
    return;
  }
  std::vector<std::string> kept;  // a plan's keys are sorted
  for (std::size_t i = 0; i < list.keys.size(); ++i) {
    if (i % static_cast<std::size_t>(shard.count) == static_cast<std::size_t>(shard.index)) {
      kept.push_back(list.keys[i]);
    }
  }
  list.keys = std::move(kept);
}

Plan plan_of(gemvjit_context* context, const ProblemList& list) {
  Plan plan;
  plan.made_by = fmt::format("gemvjit {}", gemvjit_version());
  plan.tuning_hash = gemvjit_tuning_hash(context);
  struct One {
    Plan* plan;
    const std::vector<std::string>* sources;
  };
  const auto on_planned = [](void* user, const gemvjit_kernel_info* kernel) {
    const One& one = *static_cast<One*>(user);
    const auto key = KernelKey::parse(kernel->key);
    const auto digest = parse_digest(kernel->digest);
    if (key && digest) one.plan->kernels.push_back({{*key, *digest}, *one.sources});
    return 0;
  };
  // One at a time: several problems may want one kernel, and each is a source of it.
  for (std::size_t i = 0; i < list.problems.size(); ++i) {
    One one{&plan, &list.sources[i]};
    (void)gemvjit_plan(context, &list.problems[i], 1, on_planned, &one);
  }
  for (std::size_t i = 0; i < list.keys.size(); ++i) {
    One one{&plan, &list.sources[i]};
    const char* key = list.keys[i].c_str();
    (void)gemvjit_plan_keys(context, &key, 1, on_planned, &one);
  }
  normalize(plan);
  return plan;
}

ExitCode write_plan_file(const std::string& path, const Plan& plan, std::string& error) {
  const std::string text = write_plan(plan);
  const auto [folder, name] = split_path(path);
  Status written = name.empty() ? Status(StatusCode::io_error, "it names a folder") : check_replaceable(path);
  if (written) written = publish_file(folder, name, text.data(), text.size());
  if (written) return exit_done;
  error = fmt::format("plan {} cannot be written: {}", printable(path), written.message());
  return exit_environment;
}

}  // namespace gemvjit::tools
