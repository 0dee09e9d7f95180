#include "src/base/status.h"

namespace gemvjit {

std::string_view status_text(StatusCode code) {
  switch (code) {
#define X(name, value, text) \
  case StatusCode::name:     \
    return text;
#include "src/base/status_codes.inc"
#undef X
  }
  return "unknown status";
}

std::string Status::text() const {
  std::string result(status_text(code_));
  if (!message_.empty()) result += ": " + message_;
  return result;
}

}  // namespace gemvjit
