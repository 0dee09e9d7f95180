#include "src/api/launch_support.h"

namespace api = gemvjit::api;

namespace {

constexpr const char* function = "gemvjit_swizzle_blockscale_device";

gemvjit_status check_arguments(const gemvjit_context* context, const gemvjit_swizzle_blockscale_args* args) {
  GEMVJIT_TRY_LAUNCH(
      api::check_launch_struct(context, function, args, args != nullptr ? args->struct_size : 0, sizeof *args));
  GEMVJIT_TRY_LAUNCH(api::check_pointer(function, "row_major", args->row_major, 1));
  return api::check_pointer(function, "swizzled", args->swizzled, 16);
}

}  // namespace

gemvjit_status gemvjit_swizzle_blockscale_device(gemvjit_context* context, const gemvjit_swizzle_blockscale_args* args,
                                                 struct CUstream_st* stream) {
  return api::guarded_launch([&]() -> gemvjit_status {
    GEMVJIT_TRY_LAUNCH(check_arguments(context, args));
    const gemvjit::LaunchShape shape{args->n, args->k, gemvjit::Family::swizzle_blockscale, false, false};
    gemvjit::SwizzleArguments arguments{args->row_major, args->swizzled};
    return api::finish_launch(function, shape, 0, gemvjit::launch_swizzle(*context->impl, shape, arguments, stream));
  });
}
