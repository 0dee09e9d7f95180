#include "src/api/launch_support.h"

namespace gemvjit::api {

gemvjit_status check_launch_struct(const gemvjit_context* context, const char* function, const void* args,
                                   std::size_t size, std::size_t expected) {
  if (context == nullptr) {
    return refuse_launch(GEMVJIT_INVALID_ARGUMENT, "{}: the context is null: make one with gemvjit_create", function);
  }
  if (context->impl->is_parents()) [[unlikely]]
    return refuse_launch(GEMVJIT_FORKED, "{}: {}", function, forked_text);
  if (args == nullptr) return refuse_launch(GEMVJIT_INVALID_ARGUMENT, "{}: args is null", function);
  if (size != expected) {
    return refuse_launch(GEMVJIT_INVALID_ARGUMENT,
                         "{}: struct_size of args is {}, this library knows {}: set it to sizeof the struct, and build "
                         "against the header of this library's version",
                         function, size, expected);
  }
  return GEMVJIT_OK;
}

gemvjit_status check_pointer(const char* function, const char* name, const void* pointer, std::size_t alignment) {
  if (pointer == nullptr) return refuse_launch(GEMVJIT_INVALID_ARGUMENT, "{}: {} is null", function, name);
  if (reinterpret_cast<std::uintptr_t>(pointer) % alignment != 0) {
    return refuse_launch(GEMVJIT_INVALID_ALIGNMENT, "{}: {} is {}, which is not {}-byte aligned", function, name,
                         pointer, alignment);
  }
  return GEMVJIT_OK;
}

gemvjit_status check_token_pointer(const char* function, const char* name, const void* pointer, std::int64_t m) {
  return m == 0 && pointer == nullptr ? GEMVJIT_OK : check_pointer(function, name, pointer, 2);
}

gemvjit_status check_launch_flag(const char* function, const char* name, std::int32_t value) {
  if (value == 0 || value == 1) return GEMVJIT_OK;
  return refuse_launch(GEMVJIT_INVALID_ARGUMENT, "{}: {} is {}; 0 and 1 are accepted", function, name, value);
}

gemvjit_status check_scale_layout(const char* function, std::int32_t layout) {
  if (layout == GEMVJIT_SCALE_128X4_SWIZZLED) return GEMVJIT_OK;
  if (layout == GEMVJIT_SCALE_ROW_MAJOR) {
    return refuse_launch(GEMVJIT_UNSUPPORTED,
                         "{}: row-major scales are not read: swizzle them once, with gemvjit_swizzle_blockscale_device",
                         function);
  }
  return refuse_launch(GEMVJIT_INVALID_ARGUMENT,
                       "{}: scale_layout is {}; say which it is: GEMVJIT_SCALE_128X4_SWIZZLED (1) or "
                       "GEMVJIT_SCALE_ROW_MAJOR (2)",
                       function, layout);
}

gemvjit_status check_tokens(const char* function, std::int64_t m, std::int64_t k, std::int64_t x_row_stride) {
  if (m < 0) return refuse_launch(GEMVJIT_INVALID_ARGUMENT, "{}: m is {}, which is negative", function, m);
  if (x_row_stride < k) {
    return refuse_launch(GEMVJIT_INVALID_ARGUMENT, "{}: x_row_stride is {} elements, less than k = {}", function,
                         x_row_stride, k);
  }
  if (x_row_stride > max_row_stride) {
    return refuse_launch(GEMVJIT_INVALID_ARGUMENT, "{}: x_row_stride is {} elements; at most {} are accepted", function,
                         x_row_stride, max_row_stride);
  }
  return GEMVJIT_OK;
}

gemvjit_status check_shape(const LaunchShape& shape) { return finish(check_problem(problem_of(shape))); }

gemvjit_status finish_launch(const char* function, const LaunchShape& shape, std::int64_t m,
                             const LaunchOutcome& outcome) {
  if (outcome.code == StatusCode::ok) [[likely]]
    return GEMVJIT_OK;
  GEMVJIT_TRY_LAUNCH(check_shape(shape));
  switch (outcome.code) {
    case StatusCode::not_ready:
      return refuse_launch(
          GEMVJIT_NOT_READY,
          "{}: no kernel for n={} k={} silu_mul={} pdl={} scale_segments={} is warmed for this device: call "
          "gemvjit_warmup before",
          function, shape.n, shape.k, shape.silu_mul ? 1 : 0, shape.pdl_allowed ? 1 : 0, shape.scale_segments ? 1 : 0);
    case StatusCode::m_not_covered:
      return refuse_launch(
          GEMVJIT_M_NOT_COVERED,
          "{}: the warmed kernels for n={} k={} do not cover m={}: warm a larger nt, or take another path", function,
          shape.n, shape.k, m);
    case StatusCode::no_driver:
      if (!outcome.detail.message().empty()) break;
      return refuse_launch(GEMVJIT_NO_DRIVER, "{}: this context has no device", function);
    default:
      break;
  }
  set_last_error(fmt::format("{}: {}", function, outcome.detail.message()));
  return to_c(outcome.code);
}

gemvjit_status finish_gemv(gemvjit_context* context, const char* function, const LaunchShape& shape, std::int64_t m,
                           GemvArguments& arguments, CUstream_st* stream) {
  if (m == 0 || m > 32) [[unlikely]] {
    GEMVJIT_TRY_LAUNCH(check_shape(shape));
    if (m == 0) return GEMVJIT_OK;
    if (m > 32) {
      return refuse_launch(GEMVJIT_M_NOT_COVERED, "{}: m is {}; at most 32 are served: take another path", function, m);
    }
  }
  arguments.m = static_cast<std::int32_t>(m);
  return finish_launch(function, shape, m, launch_gemv(*context->impl, shape, arguments, stream));
}

}  // namespace gemvjit::api
