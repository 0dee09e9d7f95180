// gemvjit_problem_init, the questions about one problem (supported, pick_nt, tuned, explain), and who compiles it.
#include <algorithm>
#include <cstring>

#include "src/api/api_support.h"
#include "src/runtime/inspect.h"

namespace api = gemvjit::api;
using gemvjit::Status;

namespace {

// As much of `text` as fits, always terminated; nothing for a buffer of no bytes.
void copy_text(const std::string& text, char* buffer, size_t size) {
  if (buffer == nullptr || size == 0) return;
  const size_t length = std::min(text.size(), size - 1);
  std::memcpy(buffer, text.data(), length);
  buffer[length] = '\0';
}

// Both arguments that every question takes.
Status read_arguments(const gemvjit_context* context, const gemvjit_problem* problem,
                      gemvjit::ProblemRequest& request) {
  GEMVJIT_TRY(api::check_context(context));
  request = api::to_request(problem);
  return request.malformed;
}

}  // namespace

gemvjit_status gemvjit_problem_init(gemvjit_problem* problem, gemvjit_family family, int64_t n, int64_t k) {
  return api::guarded([&] {
    if (problem == nullptr) return api::invalid("gemvjit_problem_init: problem is null");
    GEMVJIT_TRY(api::check_family(family));
    *problem = {};
    problem->struct_size = sizeof *problem;
    problem->family = family;
    problem->n = n;
    problem->k = k;
    problem->pdl = 1;
    return Status::ok();
  });
}

gemvjit_status gemvjit_supported(const gemvjit_context* context, const gemvjit_problem* problem, char* reason,
                                 size_t reason_size) {
  return api::guarded([&] {
    gemvjit::ProblemRequest request;
    Status status = read_arguments(context, problem, request);
    if (status) status = gemvjit::supported(*context->impl, request);
    copy_text(status.message(), reason, reason_size);
    return status;
  });
}

gemvjit_status gemvjit_pick_nt(const gemvjit_context* context, const gemvjit_problem* problem, int64_t m, int32_t* nt) {
  return api::guarded([&] {
    if (nt == nullptr) return api::invalid("gemvjit_pick_nt: nt is null");
    gemvjit::ProblemRequest request;
    GEMVJIT_TRY(read_arguments(context, problem, request));
    GEMVJIT_TRY_ASSIGN(const int picked, gemvjit::pick_nt(*context->impl, request, m));
    *nt = picked;
    return Status::ok();
  });
}

gemvjit_status gemvjit_tuned(const gemvjit_context* context, const gemvjit_problem* problem, int32_t* tuned) {
  return api::guarded([&] {
    if (tuned == nullptr) return api::invalid("gemvjit_tuned: tuned is null");
    gemvjit::ProblemRequest request;
    GEMVJIT_TRY(read_arguments(context, problem, request));
    GEMVJIT_TRY_ASSIGN(const bool is_tuned, gemvjit::is_tuned(*context->impl, request));
    *tuned = is_tuned ? 1 : 0;
    return Status::ok();
  });
}

gemvjit_status gemvjit_explain(const gemvjit_context* context, const gemvjit_problem* problem, int64_t m, char* text,
                               size_t size, size_t* length) {
  return api::guarded([&] {
    if (text == nullptr && size != 0) return api::invalid("gemvjit_explain: text is null but size is not 0");
    gemvjit::ProblemRequest request;
    GEMVJIT_TRY(read_arguments(context, problem, request));
    GEMVJIT_TRY_ASSIGN(const std::string explained, gemvjit::explain(*context->impl, request, m));
    copy_text(explained, text, size);
    if (length != nullptr) *length = explained.size();
    return Status::ok();
  });
}

gemvjit_status gemvjit_describe_compiler(gemvjit_context* context, char* text, size_t size, size_t* length) {
  return api::guarded([&] {
    if (text == nullptr && size != 0) return api::invalid("gemvjit_describe_compiler: text is null but size is not 0");
    GEMVJIT_TRY(api::check_own_context(context));
    GEMVJIT_TRY_ASSIGN(const std::string described, context->impl->compilers().describe());
    copy_text(described, text, size);
    if (length != nullptr) *length = described.size();
    return Status::ok();
  });
}
