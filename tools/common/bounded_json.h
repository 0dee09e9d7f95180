// JSON files that come with a model (config.json, hf_quant_config.json), read as what they are: text from strangers.
//
// A file is at most model_json_limit bytes, a regular one (links are followed: model folders are often links into a
// download cache), an object at its root, nested at most model_json_levels deep, and names no key of an object twice
// (readers differ in which one they take). The numbers Infinity, -Infinity and NaN, which JSON does not have but
// Python writes (Nemotron-H's time_step_limit), are read as something that is no size.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "src/base/status.h"

namespace gemvjit::tools {

inline constexpr std::uint64_t model_json_limit = 8u << 20;
inline constexpr int model_json_levels = 32;

// not_found if there is no such file, invalid_argument for one that breaks a rule above, io_error if it cannot be read.
Result<nlohmann::json> read_model_json(const std::string& path);

// The same for text; `path` is for messages.
Result<nlohmann::json> parse_model_json(const std::string& path, std::string_view text);

}  // namespace gemvjit::tools
