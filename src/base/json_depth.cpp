#include "src/base/json_depth.h"

#include <cstdint>

namespace gemvjit {

bool json_nests_deeper_than(std::string_view text, int levels) {
  std::int64_t depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;  // what follows ends no string
      if (c == '"') in_string = false;
      continue;
    }
    if (c == '"') in_string = true;
    if (c == ']' || c == '}') --depth;
    if ((c == '[' || c == '{') && ++depth > levels) return true;
  }
  return false;
}

std::string json_error_text(std::string_view what) {
  const std::size_t end = what.find("] ");
  if (what.starts_with("[json.exception.") && end != std::string_view::npos) what.remove_prefix(end + 2);
  return std::string(what);
}

}  // namespace gemvjit
