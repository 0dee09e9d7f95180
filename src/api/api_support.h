// What every C function does at its edge: no exception leaves, a failure becomes a code and the thread's last error,
// and a struct is accepted only with a size that some version of the header gave it.
#pragma once

#include <cstddef>
#include <exception>
#include <new>

#include "gemvjit/gemvjit.h"
#include "src/api/last_error.h"
#include "src/base/status.h"
#include "src/runtime/context.h"
#include "src/runtime/kernel_report.h"

// The opaque handle.
struct gemvjit_context {
  std::unique_ptr<gemvjit::Context> impl;
};

namespace gemvjit::api {

inline gemvjit_status to_c(StatusCode code) { return static_cast<gemvjit_status>(code); }

// Code out, message kept. ok leaves the last error as it was.
inline gemvjit_status finish(const Status& status) {
  if (status) return GEMVJIT_OK;
  set_last_error(status.message().empty() ? std::string(status_text(status.code())) : status.message());
  return to_c(status.code());
}

// Runs `body`, which returns a Status, and lets nothing escape.
template <typename Body>
gemvjit_status guarded(const Body& body) noexcept {
  try {
    return finish(body());
  } catch (const std::bad_alloc&) {
    set_short_error("out of host memory");
    return GEMVJIT_OUT_OF_MEMORY;
  } catch (const std::exception& error) {
    set_short_error("internal error: {}", error.what());
  } catch (...) {
    set_short_error("internal error");
  }
  return GEMVJIT_INTERNAL_ERROR;
}

inline Status invalid(std::string message) { return {StatusCode::invalid_argument, std::move(message)}; }

// `size` is what the caller set; `expected` the one size that this struct has had so far.
Status check_size(const char* type, std::size_t size, std::size_t expected);
template <typename Struct>
Status check_struct(const char* type, const Struct* value) {
  if (value == nullptr) return invalid(std::string(type) + " is null");
  return check_size(type, value->struct_size, sizeof(Struct));
}
Status check_context(const gemvjit_context* context);
// For what may compile, load or launch: forked in a child of the context's process.
Status check_own_context(const gemvjit_context* context);
inline constexpr const char* forked_text =
    "the context was made before fork(), in the parent process: make a new one in this process";
Status check_flag(const char* name, int value);  // 0 or 1
Status check_family(int family);

// A problem of the caller as the runtime takes it; what is wrong with it stands in `malformed`.
ProblemRequest to_request(const gemvjit_problem* problem);

// Calls a C callback with a runtime's report.
KernelCallback to_callback(gemvjit_kernel_callback callback, void* user);

}  // namespace gemvjit::api
