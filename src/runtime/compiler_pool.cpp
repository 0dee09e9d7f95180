#include "src/runtime/compiler_pool.h"

#include <fmt/format.h>

#include "src/catalog/arch.h"
#include "src/cuda/nvrtc_api.h"

namespace gemvjit {

namespace {

// What is refused as too old, and what messages name: two rooms that do not see each other.
static_assert(cuda::oldest_nvrtc == std::pair(kOldestNvrtc.major, kOldestNvrtc.minor));

std::string list_targets(const Compiler& compiler) {
  std::string text;
  for (const int sm : compiler.supported_sms()) {
    // NVRTC lists some that are older than what is served.
    if (arch_facts({.sm = sm, .suffix = 0})) text += fmt::format("{}sm_{}", text.empty() ? "" : ", ", sm);
  }
  return text;
}

std::string which_nvrtc_builds(const Arch& arch) {
  const std::string known = nvrtc_that_builds(arch);
  return known.empty() ? "" : "; " + known;
}

}  // namespace

Result<CompilerPool::Choice> CompilerPool::choose(std::span<const KernelKey> candidates) {
  if (candidates.empty()) return Status(StatusCode::internal_error, "no target to compile for");
  const KernelKey& wanted = candidates.front();
  const Result<std::shared_ptr<Compiler>> opened =
      compiler_for(wanted.arch.sm, fmt::format("compile {}", wanted.text()));
  if (!opened) return Status(opened.status().code(), opened.status().message() + which_nvrtc_builds(wanted.arch));
  const std::shared_ptr<Compiler>& compiler = *opened;
  std::string tried;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (compiler->supports(candidates[i].arch)) return Choice{compiler, i};
    tried += (i == 0 ? "" : ", ") + candidates[i].arch.text();
  }
  return Status(StatusCode::no_compiler,
                fmt::format("{} ({}) does not compile for {}; it supports {}{}", compiler->version(), compiler->path(),
                            tried, list_targets(*compiler), which_nvrtc_builds(wanted.arch)));
}

Result<std::string> CompilerPool::describe() {
  GEMVJIT_TRY_ASSIGN(const std::shared_ptr<Compiler> compiler, compiler_for(0, "compile kernels"));
  return fmt::format("{} ({}) compiles for {}", compiler->version(), compiler->path(), list_targets(*compiler));
}

Result<std::shared_ptr<Compiler>> CompilerPool::compiler_for(int sm, const std::string& purpose) {
  const std::lock_guard lock(mutex_);
  if (const auto found = compilers_.find(sm); found != compilers_.end()) return found->second;
  Result<std::unique_ptr<Compiler>> opened = factory_(sm, purpose);
  Result<std::shared_ptr<Compiler>> shared = opened ? Result<std::shared_ptr<Compiler>>(std::move(opened).value())
                                                    : Result<std::shared_ptr<Compiler>>(opened.status());
  compilers_.emplace(sm, shared);
  return shared;
}

}  // namespace gemvjit
