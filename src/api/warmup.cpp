// gemvjit_warmup, gemvjit_plan, gemvjit_check and the same by key: many kernels at once.
#include "src/runtime/warmup.h"

#include "src/api/api_support.h"
#include "src/runtime/inspect.h"

namespace api = gemvjit::api;
using gemvjit::Status;

namespace {

constexpr size_t max_problems = 1'000'000;  // of one call; far above what any model has

Status read_problems(const gemvjit_context* context, const gemvjit_problem* problems, size_t count,
                     std::vector<gemvjit::ProblemRequest>& requests) {
  GEMVJIT_TRY(api::check_context(context));
  if (problems == nullptr && count != 0) return api::invalid(fmt::format("problems is null, but count is {}", count));
  if (count > max_problems) {
    return api::invalid(fmt::format("count is {}; at most {} problems a call are accepted", count, max_problems));
  }
  requests.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    requests.push_back(api::to_request(&problems[i]));
    Status& malformed = requests.back().malformed;
    if (!malformed) malformed = Status(malformed.code(), fmt::format("problem {}: {}", i, malformed.message()));
  }
  return Status::ok();
}

Status read_keys(const gemvjit_context* context, const char* const* keys, size_t count,
                 std::vector<gemvjit::ProblemRequest>& requests) {
  GEMVJIT_TRY(api::check_context(context));
  if (keys == nullptr && count != 0) return api::invalid(fmt::format("keys is null, but count is {}", count));
  if (count > max_problems) {
    return api::invalid(fmt::format("count is {}; at most {} keys a call are accepted", count, max_problems));
  }
  requests.resize(count);
  for (size_t i = 0; i < count; ++i) {
    if (keys[i] == nullptr) {
      requests[i].malformed = api::invalid(fmt::format("key {} is null", i));
    } else if (const auto key = gemvjit::KernelKey::parse(keys[i]); key) {
      requests[i].key = *key;
    } else {
      requests[i].malformed = Status(key.status().code(), fmt::format("key {}: {}", i, key.status().message()));
    }
  }
  return Status::ok();
}

Status warm_up(gemvjit_context* context, std::span<const gemvjit::ProblemRequest> requests,
               const gemvjit_warmup_options* options) {
  gemvjit::WarmupOptions run;
  if (options != nullptr) {
    GEMVJIT_TRY(api::check_struct("gemvjit_warmup_options", options));
    GEMVJIT_TRY(api::check_flag("gemvjit_warmup_options.compile_only", options->compile_only));
    GEMVJIT_TRY(api::check_flag("gemvjit_warmup_options.require_cache", options->require_cache));
    run.on_kernel = api::to_callback(options->on_kernel, options->user);
    run.cancel = options->cancel;
    run.compile_only = options->compile_only != 0;
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
    std::vector<gemvjit::ProblemRequest> requests;
    GEMVJIT_TRY(read_problems(context, problems, count, requests));
    return warm_up(context, requests, options);
  });
}

gemvjit_status gemvjit_warmup_keys(gemvjit_context* context, const char* const* keys, size_t count,
                                   const gemvjit_warmup_options* options) {
  return api::guarded([&] {
    std::vector<gemvjit::ProblemRequest> requests;
    GEMVJIT_TRY(read_keys(context, keys, count, requests));
    return warm_up(context, requests, options);
  });
}

gemvjit_status gemvjit_plan_keys(gemvjit_context* context, const char* const* keys, size_t count,
                                 gemvjit_kernel_callback on_kernel, void* user) {
  return api::guarded([&] {
    std::vector<gemvjit::ProblemRequest> requests;
    GEMVJIT_TRY(read_keys(context, keys, count, requests));
    return gemvjit::plan(*context->impl, requests, api::to_callback(on_kernel, user));
  });
}

gemvjit_status gemvjit_check_keys(gemvjit_context* context, const char* const* keys, size_t count,
                                  gemvjit_kernel_callback on_kernel, void* user) {
  return api::guarded([&] {
    std::vector<gemvjit::ProblemRequest> requests;
    GEMVJIT_TRY(read_keys(context, keys, count, requests));
    return gemvjit::check(*context->impl, requests, api::to_callback(on_kernel, user));
  });
}

gemvjit_status gemvjit_plan(gemvjit_context* context, const gemvjit_problem* problems, size_t count,
                            gemvjit_kernel_callback on_kernel, void* user) {
  return api::guarded([&] {
    std::vector<gemvjit::ProblemRequest> requests;
    GEMVJIT_TRY(read_problems(context, problems, count, requests));
    return gemvjit::plan(*context->impl, requests, api::to_callback(on_kernel, user));
  });
}

gemvjit_status gemvjit_check(gemvjit_context* context, const gemvjit_problem* problems, size_t count,
                             gemvjit_kernel_callback on_kernel, void* user) {
  return api::guarded([&] {
    std::vector<gemvjit::ProblemRequest> requests;
    GEMVJIT_TRY(read_problems(context, problems, count, requests));
    return gemvjit::check(*context->impl, requests, api::to_callback(on_kernel, user));
  });
}
