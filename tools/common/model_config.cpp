#include "tools/common/model_config.h"

#include <fmt/format.h>

#include "tools/common/bounded_json.h"
#include "tools/common/printable.h"
#include "tools/common/size_expression.h"

namespace gemvjit::tools {
namespace {

using nlohmann::json;

// Null if there is no such file.
Result<json> read_if_there(const std::string& path) {
  Result<json> document = read_model_json(path);
  if (!document && document.status().code() == StatusCode::not_found) return json();
  return document;
}

}  // namespace

ModelConfig::ModelConfig(json config, json hf_quant_config) : config_(std::move(config)) {
  for (const json* scope : scopes()) {
    const auto type = scope->find("model_type");
    if (type != scope->end() && type->is_string()) model_types_.push_back(type->get<std::string>());
  }
  quantization_ = read_quant_config(hf_quant_config, config_);
}

Result<ModelConfig> ModelConfig::read(const std::string& folder) {
  GEMVJIT_TRY_ASSIGN(json config, read_if_there(folder + "/config.json"));
  GEMVJIT_TRY_ASSIGN(json hf_quant_config, read_if_there(folder + "/hf_quant_config.json"));
  return ModelConfig(std::move(config), std::move(hf_quant_config));
}

std::vector<const json*> ModelConfig::scopes() const {
  std::vector<const json*> result;
  if (!config_.is_object()) return result;
  for (const char* name : {"text_config", "llm_config", "language_config"}) {
    const auto part = config_.find(name);
    if (part != config_.end() && part->is_object()) result.push_back(&*part);
  }
  result.push_back(&config_);
  return result;
}

const json* ModelConfig::find(std::string_view field) const {
  for (const json* scope : scopes()) {
    const auto place = scope->find(std::string(field));
    if (place != scope->end() && !place->is_null()) return &*place;
  }
  return nullptr;
}

Result<std::int64_t> ModelConfig::size(std::string_view field) const {
  const json* value = find(field);
  if (value == nullptr) return Status(StatusCode::not_found, fmt::format("config.json has no {}", field));
  const bool in_range = value->is_number_unsigned() && value->get<std::uint64_t>() <= largest_size;
  if (!in_range) {
    return Status(StatusCode::invalid_argument,
                  fmt::format("config.json: {} is {}, no size", field,
                              value->is_number() ? printable(value->dump()) : fmt::format("a {}", value->type_name())));
  }
  return value->get<std::int64_t>();
}

std::string ModelConfig::text(std::string_view field) const {
  const json* value = find(field);
  return value != nullptr && value->is_string() ? value->get<std::string>() : std::string();
}

bool ModelConfig::flag(std::string_view field, bool otherwise) const {
  const json* value = find(field);
  return value != nullptr && value->is_boolean() ? value->get<bool>() : otherwise;
}

}  // namespace gemvjit::tools
