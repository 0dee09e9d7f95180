// A result of the C API as a Status, for tools that call the library as its users do.
#pragma once

#include <string>
#include <string_view>

#include "gemvjit/gemvjit.h"
#include "src/base/status.h"

namespace gemvjit::tools {

// ok, or the code with this thread's last message, with "doing: " in front where it says what was being done.
inline Status from_library(gemvjit_status status, std::string_view doing = {}) {
  if (status == GEMVJIT_OK) return Status::ok();
  std::string message(doing);
  if (!message.empty()) message += ": ";
  return {static_cast<StatusCode>(status), message + gemvjit_last_error()};
}

}  // namespace gemvjit::tools
