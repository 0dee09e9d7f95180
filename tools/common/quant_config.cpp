#include "tools/common/quant_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tools/common/printable.h"

namespace gemvjit::tools {
namespace {

using nlohmann::json;

constexpr std::size_t most_patterns = 10'000;

const json* member(const json& object, const char* name) {
  if (!object.is_object()) return nullptr;
  const auto place = object.find(name);
  return place == object.end() || place->is_null() ? nullptr : &*place;
}

// The text of a member; empty, with a warning if it is something else, where there is none.
std::string text_member(const json& object, const char* name, QuantConfig& result) {
  const json* value = member(object, name);
  if (value == nullptr) return {};
  if (value->is_string()) return value->get<std::string>();
  result.warnings.push_back(fmt::format("{}: {} is no text: ignored", result.source, name));
  return {};
}

void read_group_size(const json& object, QuantConfig& result) {
  const json* value = member(object, "group_size");
  if (value == nullptr) return;
  if (value->is_number_integer() && *value > 0 && *value <= 1 << 20) {
    result.group_size = value->get<std::int64_t>();
  } else {
    result.warnings.push_back(fmt::format("{}: group_size is no size: ignored", result.source));
  }
}

void read_excluded(const json& object, const char* name, QuantConfig& result) {
  const json* list = member(object, name);
  if (list == nullptr) return;
  if (!list->is_array()) {
    result.warnings.push_back(fmt::format("{}: {} is no list: ignored", result.source, name));
    return;
  }
  for (const json& item : *list) {
    if (result.excluded.size() == most_patterns) {
      result.warnings.push_back(
          fmt::format("{}: {} has more than {} entries: the rest is ignored", result.source, name, most_patterns));
      return;
    }
    const auto pattern =
        item.is_string() ? ExclusionPattern::parse(item.get<std::string>()) : std::optional<ExclusionPattern>();
    if (pattern) {
      result.excluded.push_back(*pattern);
    } else {
      result.warnings.push_back(fmt::format("{}: the entry {} of {} is not understood: ignored", result.source,
                                            item.is_string() ? "'" + printable(item.get<std::string>()) + "'" : "?",
                                            name));
    }
  }
}

void read_quantized_layers(const json& object, QuantConfig& result) {
  const json* layers = member(object, "quantized_layers");
  if (layers == nullptr || !layers->is_object()) return;
  for (const auto& [module, facts] : layers->items()) {
    const json* algorithm = member(facts, "quant_algo");
    if (algorithm != nullptr && algorithm->is_string()) {
      result.algorithm_of_module[module] = algorithm->get<std::string>();
    }
  }
}

// compressed-tensors says how numbers are packed; the words for the result are ModelOpt's.
std::string algorithm_of_format(const std::string& format) {
  if (format.starts_with("nvfp4")) return "NVFP4";
  if (format.starts_with("float-quantized")) return "FP8";
  return format;
}

void read_compressed_tensors(const json& object, QuantConfig& result) {
  std::string format = text_member(object, "format", result);
  if (const json* groups = member(object, "config_groups"); groups != nullptr && groups->is_object()) {
    for (const auto& [name, group] : groups->items()) {
      const json* weights = member(group, "weights");
      if (weights != nullptr) read_group_size(*weights, result);
      if (const json* own = member(group, "format"); own != nullptr && own->is_string() && format.empty()) {
        format = own->get<std::string>();
      }
    }
  }
  result.algorithm = algorithm_of_format(format);
}

}  // namespace

bool QuantConfig::is_excluded(const std::string& module) const {
  return std::any_of(excluded.begin(), excluded.end(),
                     [&](const ExclusionPattern& pattern) { return pattern.matches(module); });
}

std::string QuantConfig::algorithm_for(const std::string& module) const {
  if (const auto place = algorithm_of_module.find(module); place != algorithm_of_module.end()) return place->second;
  if (!algorithm_of_module.empty() || is_excluded(module)) return {};
  return algorithm;
}

QuantConfig read_quant_config(const json& hf_quant_config, const json& config) {
  QuantConfig result;
  if (const json* said = member(hf_quant_config, "quantization"); said != nullptr && said->is_object()) {
    result.source = "hf_quant_config.json";
    result.method = "modelopt";
    result.algorithm = text_member(*said, "quant_algo", result);
    result.kv_cache_algorithm = text_member(*said, "kv_cache_quant_algo", result);
    read_group_size(*said, result);
    read_excluded(*said, "exclude_modules", result);
    read_quantized_layers(*said, result);
    return result;
  }
  if (hf_quant_config.is_object()) {
    result.warnings.push_back("hf_quant_config.json has no object 'quantization': ignored");
  }
  const json* said = member(config, "quantization_config");
  if (said == nullptr) return result;
  if (!said->is_object()) {
    result.warnings.push_back("config.json: quantization_config is no object: ignored");
    return result;
  }
  result.source = "config.json";
  result.method = text_member(*said, "quant_method", result);
  result.algorithm = text_member(*said, "quant_algo", result);
  read_group_size(*said, result);
  if (result.method == "compressed-tensors") read_compressed_tensors(*said, result);
  read_quantized_layers(*said, result);
  for (const char* name : {"ignore", "exclude_modules", "modules_to_not_convert", "ignored_layers"}) {
    read_excluded(*said, name, result);
  }
  return result;
}

}  // namespace gemvjit::tools
