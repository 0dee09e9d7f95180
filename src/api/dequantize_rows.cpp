#include "src/api/launch_support.h"

namespace api = gemvjit::api;

namespace {

constexpr const char* function = "gemvjit_dequantize_rows";

gemvjit_status check_arguments(const gemvjit_context* context, const gemvjit_dequantize_rows_args* args) {
  GEMVJIT_TRY_LAUNCH(
      api::check_launch_struct(context, function, args, args != nullptr ? args->struct_size : 0, sizeof *args));
  GEMVJIT_TRY_LAUNCH(api::check_scale_layout(function, args->scale_layout));
  GEMVJIT_TRY_LAUNCH(api::check_launch_flag(function, "pdl", args->pdl));
  GEMVJIT_TRY_LAUNCH(api::check_pointer(function, "weight", args->weight, 16));
  GEMVJIT_TRY_LAUNCH(api::check_pointer(function, "weight_scale", args->weight_scale, 16));
  return api::check_pointer(function, "out", args->out, 16);
}

}  // namespace

gemvjit_status gemvjit_dequantize_rows(gemvjit_context* context, const gemvjit_dequantize_rows_args* args,
                                       struct CUstream_st* stream) {
  return api::guarded_launch([&]() -> gemvjit_status {
    GEMVJIT_TRY_LAUNCH(check_arguments(context, args));
    const gemvjit::LaunchShape shape{args->n, args->k, gemvjit::Family::dequantize_rows, false, args->pdl != 0};
    gemvjit::DequantizeArguments arguments{args->weight, args->weight_scale, args->out};
    return api::finish_launch(function, shape, 0, gemvjit::launch_dequantize(*context->impl, shape, arguments, stream));
  });
}
