#include "src/api/launch_support.h"

namespace api = gemvjit::api;

namespace {

constexpr const char* function = "gemvjit_bf16_gemv";

gemvjit_status check_arguments(const gemvjit_context* context, const gemvjit_bf16_gemv_args* args) {
  GEMVJIT_TRY_LAUNCH(
      api::check_launch_struct(context, function, args, args != nullptr ? args->struct_size : 0, sizeof *args));
  GEMVJIT_TRY_LAUNCH(api::check_launch_flag(function, "silu_mul", args->silu_mul));
  GEMVJIT_TRY_LAUNCH(api::check_launch_flag(function, "pdl", args->pdl));
  GEMVJIT_TRY_LAUNCH(api::check_tokens(function, args->m, args->k, args->x_row_stride));
  GEMVJIT_TRY_LAUNCH(api::check_token_pointer(function, "x", args->x, args->m));
  GEMVJIT_TRY_LAUNCH(api::check_pointer(function, "weight", args->weight, 16));
  return api::check_token_pointer(function, "out", args->out, args->m);
}

}  // namespace

gemvjit_status gemvjit_bf16_gemv(gemvjit_context* context, const gemvjit_bf16_gemv_args* args,
                                 struct CUstream_st* stream) {
  return api::guarded_launch([&]() -> gemvjit_status {
    GEMVJIT_TRY_LAUNCH(check_arguments(context, args));
    const gemvjit::LaunchShape shape{args->n, args->k, gemvjit::Family::bf16_gemv, args->silu_mul != 0, args->pdl != 0};
    gemvjit::GemvArguments arguments{args->x, args->x_row_stride, args->weight, nullptr, nullptr, args->out, 0};
    return api::finish_gemv(context, function, shape, args->m, arguments, stream);
  });
}
