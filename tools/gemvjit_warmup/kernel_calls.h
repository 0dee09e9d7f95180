// A ProblemList, whether of problems or of a plan's keys, and the library's three calls for it.
#pragma once

#include "gemvjit/gemvjit.h"
#include "tools/cache_view/plan_file.h"
#include "tools/gemvjit_warmup/problem_list.h"

namespace gemvjit::tools {

gemvjit_status plan_kernels(gemvjit_context* context, const ProblemList& list, gemvjit_kernel_callback on_kernel,
                            void* user);
gemvjit_status check_kernels(gemvjit_context* context, const ProblemList& list, gemvjit_kernel_callback on_kernel,
                             void* user);
// problem_status of the options, if any, has a value a problem or key.
gemvjit_status warm_kernels(gemvjit_context* context, const ProblemList& list, const gemvjit_warmup_options& options);

// The list of --plan: its keys, and notes on what its user should know of it. exit_usage, with the reason in `error`,
// for a plan that cannot be read or does not fit this version.
ExitCode make_planned_list(gemvjit_context* context, const WarmupOptions& options, ProblemList& list,
                           std::string& error);

// Only what the shard has of it; see shard.h. Keys are numbered as kernels are.
void cut_to_shard(gemvjit_context* context, const Shard& shard, ProblemList& list);

// The plan of a list: of a problem that names no target, the kernel for the first target of the GPU here.
Plan plan_of(gemvjit_context* context, const ProblemList& list);
// Writes it whole or not at all; exit_environment, with the reason in `error`, if that fails.
ExitCode write_plan_file(const std::string& path, const Plan& plan, std::string& error);

}  // namespace gemvjit::tools
