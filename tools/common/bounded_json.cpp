#include "tools/common/bounded_json.h"

#include <fmt/format.h>

#include "src/base/json_depth.h"
#include "src/base/unique_keys.h"
#include "tools/common/printable.h"
#include "tools/common/regular_file.h"

namespace gemvjit::tools {
namespace {

using nlohmann::json;

Status bad(const std::string& path, std::string_view what) {
  return {StatusCode::invalid_argument, fmt::format("{}: {}", path, what)};
}

// Replaces Infinity, -Infinity and NaN outside strings by as many characters that are JSON, so that offsets in messages
// stay.
std::string without_python_numbers(std::string_view text) {
  std::string result(text);
  bool in_string = false;
  for (std::size_t i = 0; i < result.size(); ++i) {
    if (in_string) {
      if (result[i] == '\\') {
        ++i;  // whatever is escaped ends no string
      } else if (result[i] == '"') {
        in_string = false;
      }
      continue;
    }
    if (result[i] == '"') in_string = true;
    for (const std::string_view word : {"-Infinity", "Infinity", "NaN"}) {
      if (result.compare(i, word.size(), word) != 0) continue;
      // A number that is no size; null has no room in NaN.
      result.replace(i, word.size(), word == "NaN" ? "0.5" : "null" + std::string(word.size() - 4, ' '));
      i += word.size() - 1;
      break;
    }
  }
  return result;
}

}  // namespace

Result<json> parse_model_json(const std::string& path, std::string_view text) {
  if (json_nests_deeper_than(text, model_json_levels)) {
    return bad(path, fmt::format("is nested more than {} levels deep", model_json_levels));
  }
  try {
    json document = parse_unique_keys(without_python_numbers(text), /*allow_exceptions=*/false);
    if (!document.is_object()) return bad(path, "is not a JSON object");
    return document;
  } catch (const KeyTwice& twice) {
    return bad(path, fmt::format("names '{}' twice", printable(twice.key)));
  }
}

Result<json> read_model_json(const std::string& path) {
  GEMVJIT_TRY_ASSIGN(const std::string text, RegularFile::read_all(path, model_json_limit));
  return parse_model_json(path, text);
}

}  // namespace gemvjit::tools
