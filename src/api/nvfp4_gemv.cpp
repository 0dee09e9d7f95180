#include "src/api/launch_support.h"

namespace api = gemvjit::api;

namespace {

constexpr const char* function = "gemvjit_nvfp4_gemv";

// Where the struct of an older header ends.
constexpr size_t size_without_segments = offsetof(gemvjit_nvfp4_gemv_args, segment_count);

bool has_segments(const gemvjit_nvfp4_gemv_args& args) {
  return args.struct_size > size_without_segments && args.segment_count != 0;
}

// The segments as the kernel takes them, or what is wrong with them.
gemvjit_status read_segments(const gemvjit_nvfp4_gemv_args& args, gemvjit::ScaleSegments& segments) {
  if (args.global_scale != nullptr) {
    return api::refuse_launch(GEMVJIT_INVALID_ARGUMENT, "{}: global_scale must be NULL where segments are named",
                              function);
  }
  if (args.segment_count < 0 || args.segment_count > GEMVJIT_MAX_SCALE_SEGMENTS) {
    return api::refuse_launch(GEMVJIT_INVALID_ARGUMENT, "{}: segment_count is {}; 0 to {} are accepted", function,
                              args.segment_count, int{GEMVJIT_MAX_SCALE_SEGMENTS});
  }
  GEMVJIT_TRY_LAUNCH(api::check_pointer(function, "segments", args.segments, alignof(gemvjit_scale_segment)));
  int64_t before = 0;
  for (int64_t i = 0; i < args.segment_count; ++i) {
    const gemvjit_scale_segment& segment = args.segments[i];
    const bool is_last = i + 1 == args.segment_count;
    if (segment.row_end <= before || segment.row_end % 8 != 0 || segment.row_end > args.n ||
        (is_last && segment.row_end != args.n)) {
      return api::refuse_launch(
          GEMVJIT_INVALID_ARGUMENT,
          "{}: segments[{}].row_end is {} (after {}); ends are multiples of 8, each above the one "
          "before, and the last is n = {}",
          function, i, segment.row_end, before, args.n);
    }
    GEMVJIT_TRY_LAUNCH(api::check_pointer(function, "segments[].global_scale", segment.global_scale, 4));
    before = segment.row_end;
    for (int64_t j = i; j < gemvjit::kMaxScaleSegments; ++j) {  // those after the last repeat it
      segments.scale[j] = segment.global_scale;
      segments.row_end[j] = static_cast<unsigned>(segment.row_end);
    }
  }
  return GEMVJIT_OK;
}
static_assert(gemvjit::kMaxScaleSegments == GEMVJIT_MAX_SCALE_SEGMENTS);

gemvjit_status check_arguments(const gemvjit_context* context, const gemvjit_nvfp4_gemv_args* args) {
  const bool is_older = args != nullptr && args->struct_size == size_without_segments;
  GEMVJIT_TRY_LAUNCH(api::check_launch_struct(context, function, args, args != nullptr ? args->struct_size : 0,
                                              is_older ? size_without_segments : sizeof *args));
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
  if (!has_segments(*args)) {
    GEMVJIT_TRY_LAUNCH(api::check_pointer(function, "global_scale", args->global_scale, 4));
  }
  return api::check_token_pointer(function, "out", args->out, args->m);
}

}  // namespace

gemvjit_status gemvjit_nvfp4_gemv(gemvjit_context* context, const gemvjit_nvfp4_gemv_args* args,
                                  struct CUstream_st* stream) {
  return api::guarded_launch([&]() -> gemvjit_status {
    GEMVJIT_TRY_LAUNCH(check_arguments(context, args));
    const gemvjit::LaunchShape shape{
        args->n, args->k, gemvjit::Family::nvfp4_gemv, args->silu_mul != 0, args->pdl != 0, has_segments(*args)};
    gemvjit::GemvArguments arguments{
        args->x, args->x_row_stride, args->weight, args->weight_scale, args->global_scale, args->out, 0};
    gemvjit::ScaleSegments segments;
    if (shape.scale_segments) {
      GEMVJIT_TRY_LAUNCH(read_segments(*args, segments));
      arguments.segments = &segments;
    }
    return api::finish_gemv(context, function, shape, args->m, arguments, stream);
  });
}
