#include "src/api/launch_support.h"

namespace api = gemvjit::api;

namespace {

constexpr const char* function = "gemvjit_nvfp4_gemv";

gemvjit_status check_arguments(const gemvjit_context* context, const gemvjit_nvfp4_gemv_args* args) {
  GEMVJIT_TRY_LAUNCH(
      api::check_launch_struct(context, function, args, args != nullptr ? args->struct_size : 0, sizeof *args));
  GEMVJIT_TRY_LAUNCH(api::check_scale_layout(function, args->scale_layout));
  if (args->global_scale_kind == GEMVJIT_GLOBAL_SCALE_DIVISOR) {
    return api::refuse_launch(GEMVJIT_UNSUPPORTED,
                              "{}: a global scale that divides is not served yet: pass its reciprocal as a multiplier",
                              function);
  }
  if (args->global_scale_kind != GEMVJIT_GLOBAL_SCALE_MULTIPLIER) {
    return api::refuse_launch(GEMVJIT_INVALID_ARGUMENT,
                              "{}: global_scale_kind is {}; say which it is: GEMVJIT_GLOBAL_SCALE_MULTIPLIER (1) or "
                              "GEMVJIT_GLOBAL_SCALE_DIVISOR (2)",
                              function, args->global_scale_kind);
  }
  GEMVJIT_TRY_LAUNCH(api::check_launch_flag(function, "silu_mul", args->silu_mul));
  GEMVJIT_TRY_LAUNCH(api::check_launch_flag(function, "pdl", args->pdl));
  GEMVJIT_TRY_LAUNCH(api::check_tokens(function, args->m, args->k, args->x_row_stride));
  GEMVJIT_TRY_LAUNCH(api::check_token_pointer(function, "x", args->x, args->m));
  GEMVJIT_TRY_LAUNCH(api::check_pointer(function, "weight", args->weight, 16));
  GEMVJIT_TRY_LAUNCH(api::check_pointer(function, "weight_scale", args->weight_scale, 16));
  GEMVJIT_TRY_LAUNCH(api::check_pointer(function, "global_scale", args->global_scale, 4));
  return api::check_token_pointer(function, "out", args->out, args->m);
}

}  // namespace

gemvjit_status gemvjit_nvfp4_gemv(gemvjit_context* context, const gemvjit_nvfp4_gemv_args* args,
                                  struct CUstream_st* stream) {
  return api::guarded_launch([&]() -> gemvjit_status {
    GEMVJIT_TRY_LAUNCH(check_arguments(context, args));
    const gemvjit::LaunchShape shape{args->n, args->k, gemvjit::Family::nvfp4_gemv, args->silu_mul != 0,
                                     args->pdl != 0};
    gemvjit::GemvArguments arguments{
        args->x, args->x_row_stride, args->weight, args->weight_scale, args->global_scale, args->out, 0};
    return api::finish_gemv(context, function, shape, args->m, arguments, stream);
  });
}
