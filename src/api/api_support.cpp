#include "src/api/api_support.h"

namespace gemvjit::api {

static_assert(static_cast<int>(Outcome::compiled) == GEMVJIT_OUTCOME_COMPILED);
static_assert(static_cast<int>(Outcome::cached) == GEMVJIT_OUTCOME_CACHED);
static_assert(static_cast<int>(Outcome::failed) == GEMVJIT_OUTCOME_FAILED);
static_assert(static_cast<int>(Outcome::missing) == GEMVJIT_OUTCOME_MISSING);
static_assert(static_cast<int>(Family::nvfp4_gemv) == GEMVJIT_NVFP4_GEMV);
static_assert(static_cast<int>(Family::bf16_gemv) == GEMVJIT_BF16_GEMV);
static_assert(static_cast<int>(Family::dequantize_rows) == GEMVJIT_DEQUANTIZE_ROWS);
static_assert(static_cast<int>(Family::swizzle_blockscale) == GEMVJIT_SWIZZLE_BLOCKSCALE);

Status check_size(const char* type, std::size_t size, std::size_t expected) {
  if (size == expected) return Status::ok();
  return invalid(
      fmt::format("{}: struct_size is {}, this library knows {}: set it to sizeof the struct, and build against "
                  "the header of this library's version ({}.{}.{})",
                  type, size, expected, GEMVJIT_VERSION_MAJOR, GEMVJIT_VERSION_MINOR, GEMVJIT_VERSION_PATCH));
}

Status check_context(const gemvjit_context* context) {
  return context != nullptr ? Status::ok() : invalid("the context is null: make one with gemvjit_create");
}

Status check_own_context(const gemvjit_context* context) {
  GEMVJIT_TRY(check_context(context));
  return context->impl->is_parents() ? Status(StatusCode::forked, forked_text) : Status::ok();
}

Status check_flag(const char* name, int value) {
  return value == 0 || value == 1 ? Status::ok() : invalid(fmt::format("{} is {}; 0 and 1 are accepted", name, value));
}

Status check_family(int family) {
  if (family >= GEMVJIT_NVFP4_GEMV && family <= GEMVJIT_SWIZZLE_BLOCKSCALE) return Status::ok();
  return invalid(
      fmt::format("family is {}; GEMVJIT_NVFP4_GEMV (1), GEMVJIT_BF16_GEMV (2), GEMVJIT_DEQUANTIZE_ROWS (3) and "
                  "GEMVJIT_SWIZZLE_BLOCKSCALE (4) are accepted",
                  family));
}

namespace {

Status fill_request(const gemvjit_problem* problem, ProblemRequest& request) {
  GEMVJIT_TRY(check_struct("gemvjit_problem", problem));
  GEMVJIT_TRY(check_family(problem->family));
  GEMVJIT_TRY(check_flag("gemvjit_problem.silu_mul", problem->silu_mul));
  GEMVJIT_TRY(check_flag("gemvjit_problem.pdl", problem->pdl));
  GEMVJIT_TRY(check_flag("gemvjit_problem.allow_untuned", problem->allow_untuned));
  GEMVJIT_TRY(check_flag("gemvjit_problem.scale_segments", problem->scale_segments));
  GEMVJIT_TRY(check_flag("gemvjit_problem.cluster_fallback", problem->cluster_fallback));
  request.problem = {
      static_cast<Family>(problem->family), problem->n, problem->k, problem->silu_mul != 0, problem->pdl != 0,
      problem->scale_segments != 0};
  request.nt = problem->nt;
  request.allow_untuned = problem->allow_untuned != 0;
  request.cluster_fallback = problem->cluster_fallback != 0;
  if (problem->arch != nullptr) {
    GEMVJIT_TRY_ASSIGN(const Arch arch, Arch::parse(problem->arch));
    request.arch = arch;
  }
  return Status::ok();
}

}  // namespace

ProblemRequest to_request(const gemvjit_problem* problem) {
  ProblemRequest request;
  request.malformed = fill_request(problem, request);
  return request;
}

KernelCallback to_callback(gemvjit_kernel_callback callback, void* user) {
  if (callback == nullptr) return nullptr;
  return [callback, user](const KernelReport& report) {
    const std::string key = report.key.text();
    const std::string arch = report.key.arch.text();
    const std::string flags = flags_text(report.key.flags);
    const std::string match(report.is_fallback ? "without_cluster"
                            : report.is_named  ? "named"
                                               : match_name(report.match));
    const std::string error = report.status ? std::string() : report.status.text();
    gemvjit_kernel_info info{};
    info.struct_size = sizeof info;
    info.key = key.c_str();
    info.digest = report.digest.c_str();
    info.arch = arch.c_str();
    info.flags_text = flags.c_str();
    info.match = match.c_str();
    info.path = report.path.c_str();
    info.error = error.c_str();
    info.n = report.key.n;
    info.k = report.key.k;
    info.flags = report.key.flags;
    info.family = static_cast<std::int32_t>(report.family);
    info.nt = report.key.nt;
    info.outcome = static_cast<std::int32_t>(report.outcome);
    info.status = static_cast<std::int32_t>(report.status.code());
    info.milliseconds = report.milliseconds;
    info.compile_ms = report.compile_ms;
    info.registers = report.resources.registers;
    info.smem_bytes = report.resources.static_smem_bytes + report.dynamic_smem_bytes;
    info.spill_bytes = report.resources.spill_store_bytes + report.resources.spill_load_bytes;
    info.cubin_bytes = report.cubin_bytes;
    info.problem_index = report.problem_index;
    info.done = report.done;
    info.total = report.total;
    return callback(user, &info) == 0;
  };
}

}  // namespace gemvjit::api
