// What the launch functions share: the checks of their arguments, cheap and without an allocation, also where they
// fail.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>

#include "src/api/api_support.h"
#include "src/runtime/launch_kernels.h"

namespace gemvjit::api {

// The largest row stride in elements: 32 rows of it, in bytes, stay far inside a signed 64-bit integer.
inline constexpr std::int64_t max_row_stride = std::int64_t{1} << 48;

// Sets the last error and returns the code; for use as `return refuse_launch(...)`.
template <typename... Args>
gemvjit_status refuse_launch(gemvjit_status code, fmt::format_string<Args...> format, Args&&... args) {
  set_short_error(format, std::forward<Args>(args)...);
  return code;
}

// Context, struct pointer and struct size.
gemvjit_status check_launch_struct(const gemvjit_context* context, const char* function, const void* args,
                                   std::size_t size, std::size_t expected);
// A device pointer: not null, a multiple of `alignment`.
gemvjit_status check_pointer(const char* function, const char* name, const void* pointer, std::size_t alignment);
// x or out, 2-byte aligned. With M = 0 it may be null: a framework's empty tensor has no address.
gemvjit_status check_token_pointer(const char* function, const char* name, const void* pointer, std::int64_t m);
gemvjit_status check_launch_flag(const char* function, const char* name, std::int32_t value);
gemvjit_status check_scale_layout(const char* function, std::int32_t layout);
gemvjit_status check_tokens(const char* function, std::int64_t m, std::int64_t k, std::int64_t x_row_stride);

// The shape's rules. Checked before a launch only for M = 0 and M > 32: a registered kernel proves that its shape is
// valid.
gemvjit_status check_shape(const LaunchShape& shape);

// The runtime's answer as a code, with the message of a failure: that of the shape first, if it breaks a rule.
gemvjit_status finish_launch(const char* function, const LaunchShape& shape, std::int64_t m,
                             const LaunchOutcome& outcome);

// All that a GEMV still needs once its own pointers were checked: M, the shape, the launch.
gemvjit_status finish_gemv(gemvjit_context* context, const char* function, const LaunchShape& shape, std::int64_t m,
                           GemvArguments& arguments, CUstream_st* stream);

// Lets no exception out of a launch function (a compile on a miss may run out of memory).
template <typename Body>
gemvjit_status guarded_launch(const Body& body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return refuse_launch(GEMVJIT_OUT_OF_MEMORY, "out of host memory");
  } catch (const std::exception& error) {
    return refuse_launch(GEMVJIT_INTERNAL_ERROR, "internal error: {}", error.what());
  } catch (...) {
    return refuse_launch(GEMVJIT_INTERNAL_ERROR, "internal error");
  }
}

}  // namespace gemvjit::api

// Return a code that is not GEMVJIT_OK to the caller.
#define GEMVJIT_TRY_LAUNCH(expression)                                             \
  do {                                                                             \
    if (const gemvjit_status code = (expression); code != GEMVJIT_OK) [[unlikely]] \
      return code;                                                                 \
  } while (false)
