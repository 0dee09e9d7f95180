// Version, status names, last error; and the proof that the header's codes are those of src/base/status_codes.inc.
#include "src/api/api_support.h"

#define GEMVJIT_TEXT_OF(value) #value
#define GEMVJIT_TEXT(value) GEMVJIT_TEXT_OF(value)

namespace {

// One row a code of the header, in both directions: by value here, by name in the assertions.
#define GEMVJIT_STATUS_LIST(X)                      \
  X(GEMVJIT_OK, ok)                                 \
  X(GEMVJIT_INVALID_ARGUMENT, invalid_argument)     \
  X(GEMVJIT_INVALID_SHAPE, invalid_shape)           \
  X(GEMVJIT_INVALID_ALIGNMENT, invalid_alignment)   \
  X(GEMVJIT_UNSUPPORTED, unsupported)               \
  X(GEMVJIT_M_NOT_COVERED, m_not_covered)           \
  X(GEMVJIT_UNTUNED, untuned)                       \
  X(GEMVJIT_NOT_READY, not_ready)                   \
  X(GEMVJIT_SEALED, sealed)                         \
  X(GEMVJIT_NO_DRIVER, no_driver)                   \
  X(GEMVJIT_NO_COMPILER, no_compiler)               \
  X(GEMVJIT_COMPILE_FAILED, compile_failed)         \
  X(GEMVJIT_CACHE_NOT_WRITABLE, cache_not_writable) \
  X(GEMVJIT_ENTRY_DAMAGED, entry_damaged)           \
  X(GEMVJIT_NOT_FOUND, not_found)                   \
  X(GEMVJIT_IO_ERROR, io_error)                     \
  X(GEMVJIT_CUDA_ERROR, cuda_error)                 \
  X(GEMVJIT_CANCELLED, cancelled)                   \
  X(GEMVJIT_OUT_OF_MEMORY, out_of_memory)           \
  X(GEMVJIT_INTERNAL_ERROR, internal_error)         \
  X(GEMVJIT_FORKED, forked)

#define X(c_name, name) static_assert(static_cast<int>(gemvjit::StatusCode::name) == c_name);
GEMVJIT_STATUS_LIST(X)
#undef X

// As many codes in the one list as in the other.
constexpr int codes_here = 0
#define X(c_name, name) +1
    GEMVJIT_STATUS_LIST(X);
#undef X
constexpr int codes_in_base = 0
#define X(name, value, text) +1
#include "src/base/status_codes.inc"
    ;
#undef X
static_assert(codes_here == codes_in_base, "a code of src/base/status_codes.inc is missing in gemvjit.h");

}  // namespace

const char* gemvjit_version(void) {
  return GEMVJIT_TEXT(GEMVJIT_VERSION_MAJOR) "." GEMVJIT_TEXT(GEMVJIT_VERSION_MINOR) "." GEMVJIT_TEXT(
      GEMVJIT_VERSION_PATCH);
}

const char* gemvjit_status_name(gemvjit_status status) {
  switch (status) {
#define X(c_name, name) \
  case c_name:          \
    return #c_name;
    GEMVJIT_STATUS_LIST(X)
#undef X
  }
  return "GEMVJIT_UNKNOWN_STATUS";
}

const char* gemvjit_last_error(void) { return gemvjit::api::last_error(); }
