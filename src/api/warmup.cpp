// gemvjit_warmup, gemvjit_plan, gemvjit_check and the same by key: many kernels at once.
#include "src/runtime/warmup.h"

#include <optional>

#include "src/api/api_support.h"
#include "src/runtime/inspect.h"
#include "src/runtime/ready.h"

namespace api = gemvjit::api;
using gemvjit::Result;
using gemvjit::Status;

namespace {

using Requests = std::vector<gemvjit::ProblemRequest>;

constexpr size_t max_problems = 1'000'000;  // of one call; far above what any model has

Status check_list(const gemvjit_context* context, const char* what, bool is_null, size_t count) {
  GEMVJIT_TRY(api::check_own_context(context));
  if (is_null && count != 0) return api::invalid(fmt::format("{} is null, but count is {}", what, count));
  if (count > max_problems) {
    return api::invalid(fmt::format("count is {}; at most {} {} a call are accepted", count, max_problems, what));
  }
  return Status::ok();
}

Result<Requests> read_problems(const gemvjit_context* context, const gemvjit_problem* problems, size_t count) {
  GEMVJIT_TRY(check_list(context, "problems", problems == nullptr, count));
  Requests requests;
  requests.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    requests.push_back(api::to_request(&problems[i]));
    Status& malformed = requests.back().malformed;
    if (!malformed) malformed = Status(malformed.code(), fmt::format("problem {}: {}", i, malformed.message()));
  }
  return requests;
}

Result<Requests> read_keys(const gemvjit_context* context, const char* const* keys, size_t count) {
  GEMVJIT_TRY(check_list(context, "keys", keys == nullptr, count));
  Requests requests(count);
  for (size_t i = 0; i < count; ++i) {
    if (keys[i] == nullptr) {
      requests[i].malformed = api::invalid(fmt::format("key {} is null", i));
    } else if (const auto key = gemvjit::KernelKey::parse(keys[i]); key) {
      requests[i].key = *key;
    } else {
      requests[i].malformed = Status(key.status().code(), fmt::format("key {}: {}", i, key.status().message()));
    }
  }
  return requests;
}

Result<std::optional<gemvjit::Readiness>> read_level(int32_t level) {
  switch (level) {
    case GEMVJIT_LEVEL_RESOLVED:
      return std::optional(gemvjit::Readiness::resolved);
    case GEMVJIT_LEVEL_COMPILED:
      return std::optional<gemvjit::Readiness>();
    case GEMVJIT_LEVEL_LOADED:
      return std::optional(gemvjit::Readiness::loaded);
    default:
      return api::invalid(
          fmt::format("gemvjit_warmup_options.level is {}; GEMVJIT_LEVEL_RESOLVED (0), GEMVJIT_LEVEL_COMPILED (1) and "
                      "GEMVJIT_LEVEL_LOADED (2) are accepted",
                      level));
  }
}

Status warm_up(gemvjit_context* context, std::span<const gemvjit::ProblemRequest> requests,
               const gemvjit_warmup_options* options) {
  gemvjit::WarmupOptions run;
  if (options != nullptr) {
    GEMVJIT_TRY(api::check_struct("gemvjit_warmup_options", options));
    GEMVJIT_TRY_ASSIGN(run.load, read_level(options->level));
    GEMVJIT_TRY(api::check_flag("gemvjit_warmup_options.require_cache", options->require_cache));
    run.on_kernel = api::to_callback(options->on_kernel, options->user);
    run.cancel = options->cancel;
    run.require_cache = options->require_cache != 0;
  }
  const gemvjit::WarmupResult result = gemvjit::warm_up(*context->impl, requests, run);
  if (options != nullptr && options->problem_status != nullptr) {
    for (size_t i = 0; i < requests.size(); ++i) options->problem_status[i] = api::to_c(result.problems[i].code());
  }
  return result.overall;
}

}  // namespace

gemvjit_status gemvjit_warmup(gemvjit_context* context, const gemvjit_problem* problems, size_t count,
                              const gemvjit_warmup_options* options) {
  return api::guarded([&] {
    GEMVJIT_TRY_ASSIGN(const Requests requests, read_problems(context, problems, count));
    return warm_up(context, requests, options);
  });
}

gemvjit_status gemvjit_flush(gemvjit_context* context, int32_t timeout_ms) {
  return api::guarded([&] {
    GEMVJIT_TRY(api::check_own_context(context));
    if (timeout_ms < 0) return api::invalid(fmt::format("timeout_ms is {}; 0 or more is accepted", timeout_ms));
    gemvjit::RemoteTier* const remote = context->impl->remote();
    return remote == nullptr ? Status::ok() : remote->flush(timeout_ms);
  });
}

gemvjit_status gemvjit_ready(gemvjit_context* context, const gemvjit_problem* problems, size_t count,
                             gemvjit_status* problem_status) {
  return api::guarded([&] {
    GEMVJIT_TRY_ASSIGN(const Requests requests, read_problems(context, problems, count));
    const gemvjit::ProblemStatuses answer = gemvjit::ready(*context->impl, requests);
    for (size_t i = 0; problem_status != nullptr && i < count; ++i) {
      problem_status[i] = api::to_c(answer.problems[i].code());
    }
    return answer.overall;
  });
}

gemvjit_status gemvjit_plan(gemvjit_context* context, const gemvjit_problem* problems, size_t count,
                            gemvjit_kernel_callback on_kernel, void* user) {
  return api::guarded([&] {
    GEMVJIT_TRY_ASSIGN(const Requests requests, read_problems(context, problems, count));
    return gemvjit::plan(*context->impl, requests, api::to_callback(on_kernel, user));
  });
}

gemvjit_status gemvjit_check(gemvjit_context* context, const gemvjit_problem* problems, size_t count,
                             gemvjit_kernel_callback on_kernel, void* user) {
  return api::guarded([&] {
    GEMVJIT_TRY_ASSIGN(const Requests requests, read_problems(context, problems, count));
    return gemvjit::check(*context->impl, requests, api::to_callback(on_kernel, user));
  });
}

gemvjit_status gemvjit_warmup_keys(gemvjit_context* context, const char* const* keys, size_t count,
                                   const gemvjit_warmup_options* options) {
  return api::guarded([&] {
    GEMVJIT_TRY_ASSIGN(const Requests requests, read_keys(context, keys, count));
    return warm_up(context, requests, options);
  });
}

gemvjit_status gemvjit_plan_keys(gemvjit_context* context, const char* const* keys, size_t count,
                                 gemvjit_kernel_callback on_kernel, void* user) {
  return api::guarded([&] {
    GEMVJIT_TRY_ASSIGN(const Requests requests, read_keys(context, keys, count));
    return gemvjit::plan(*context->impl, requests, api::to_callback(on_kernel, user));
  });
}

gemvjit_status gemvjit_check_keys(gemvjit_context* context, const char* const* keys, size_t count,
                                  gemvjit_kernel_callback on_kernel, void* user) {
  return api::guarded([&] {
    GEMVJIT_TRY_ASSIGN(const Requests requests, read_keys(context, keys, count));
    return gemvjit::check(*context->impl, requests, api::to_callback(on_kernel, user));
  });
}
