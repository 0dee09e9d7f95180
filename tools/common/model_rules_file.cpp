// Reads tools/model_rules/*.json. These files are ours, so a mistake in one ends the reading with its place.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "embedded/embedded_model_rules.h"
#include "tools/common/bounded_json.h"
#include "tools/common/model_rules.h"

namespace gemvjit::tools {
namespace {

using nlohmann::json;

constexpr const char* engines_file = "engines.json";

// Members by name; a wrong type, a missing or an unknown one is remembered as the first problem.
class Fields {
 public:
  Fields(const json& object, std::string place) : object_(object), place_(std::move(place)) {
    if (!object.is_object()) fail("is no object");
  }

  std::string text(const char* name, bool required = true) {
    const json* value = take(name, required);
    if (value == nullptr) return {};
    if (!value->is_string()) return fail(fmt::format("{} is no text", name)), std::string();
    return value->get<std::string>();
  }
  std::vector<std::string> texts(const char* name, bool required = true) {
    const json* value = take(name, required);
    std::vector<std::string> result;
    if (value == nullptr) return result;
    if (!value->is_array()) fail(fmt::format("{} is no list", name));
    for (const json& item : *value) {
      if (!item.is_string()) return fail(fmt::format("{} holds something that is no text", name)), result;
      result.push_back(item.get<std::string>());
    }
    return result;
  }
  bool flag(const char* name) {
    const json* value = take(name, false);
    if (value != nullptr && !value->is_boolean()) fail(fmt::format("{} is no true or false", name));
    return value != nullptr && value->is_boolean() && value->get<bool>();
  }
  const json* take(const char* name, bool required) {
    ++known_;
    const auto place = object_.is_object() ? object_.find(name) : object_.end();
    if (object_.is_object() && place != object_.end()) return &*place;
    --known_;
    if (required) fail(fmt::format("has no {}", name));
    return nullptr;
  }
  void fail(std::string_view what) {
    if (problem_.is_ok()) problem_ = {StatusCode::invalid_argument, fmt::format("{} {}", place_, what)};
  }
  // To be called last.
  Status problem() {
    if (object_.is_object() && object_.size() != known_) fail("has a field that has no meaning");
    return problem_;
  }

 private:
  const json& object_;
  std::string place_;
  std::size_t known_ = 0;
  Status problem_;
};

Result<RulePart> parse_part(const json& value, const std::string& place) {
  Fields fields(value, place);
  RulePart part;
  part.name = fields.text("name");
  part.modules = fields.texts("modules", false);
  part.n = fields.text("n");
  part.units = fields.text("units", false);
  part.replicated_units = fields.flag("replicated_units");
  GEMVJIT_TRY(fields.problem());
  return part;
}

Result<LayerRule> parse_layer(const json& value, const std::string& file) {
  LayerRule layer;
  if (value.is_object() && value.contains("layer") && value["layer"].is_string()) layer.layer = value["layer"];
  const std::string place = fmt::format("{}: layer '{}'", file, layer.layer);
  Fields fields(value, place);
  (void)fields.text("layer");
  layer.k = fields.text("k");
  const std::string sharding = fields.text("shard");
  if (sharding == "column") {
    layer.sharding = Sharding::column;
  } else if (sharding == "row") {
    layer.sharding = Sharding::row;
  } else if (sharding == "vocabulary") {
    layer.sharding = Sharding::vocabulary;
  } else if (sharding != "replicated") {
    fields.fail("has no shard of column, row, replicated, vocabulary");
  }
  layer.merged = fields.texts("merged", false);
  layer.tied = fields.texts("tied", false);
  layer.gated = fields.flag("gated");
  layer.when = fields.text("when", false);
  layer.unless = fields.text("unless", false);
  layer.note = fields.text("note", false);
  if (const json* parts = fields.take("parts", false); parts != nullptr) {
    for (const json& part : *parts) {
      GEMVJIT_TRY_ASSIGN(RulePart parsed, parse_part(part, place + ", part"));
      layer.parts.push_back(std::move(parsed));
    }
  } else {  // one part, its fields beside the layer's
    RulePart part{.name = layer.layer, .modules = fields.texts("modules"), .n = fields.text("n"), .units = {}};
    const std::string units = fields.text("units", false);
    (layer.sharding == Sharding::row ? layer.units : part.units) = units;
    layer.parts.push_back(std::move(part));
  }
  if (layer.parts.empty()) fields.fail("has no parts");
  GEMVJIT_TRY(fields.problem());
  return layer;
}

}  // namespace

Result<ModelRules> parse_model_rules(const std::string& file, std::string_view text) {
  GEMVJIT_TRY_ASSIGN(const json document, parse_model_json(file, text));
  Fields fields(document, file);
  ModelRules rules;
  rules.file = file;
  rules.model_types = fields.texts("model_types");
  (void)fields.texts("sources");
  rules.foreign = fields.texts("foreign", false);
  rules.activation_fields = fields.texts("activation_fields", false);
  rules.activation = fields.text("activation", false);
  if (const json* sizes = fields.take("sizes", true); sizes != nullptr && sizes->is_object()) {
    for (const auto& [name, ignored] : sizes->items()) {
      Fields size(*sizes, file + ": sizes");
      rules.sizes[name] = size.texts(name.c_str());
    }
  }
  const json* layers = fields.take("layers", true);
  if (layers != nullptr && !layers->is_array()) fields.fail("layers is no list");
  GEMVJIT_TRY(fields.problem());
  for (const json& layer : *layers) {
    GEMVJIT_TRY_ASSIGN(LayerRule parsed, parse_layer(layer, file));
    rules.layers.push_back(std::move(parsed));
  }
  return rules;
}

Result<std::vector<ModelRules>> builtin_model_rules() {
  std::vector<ModelRules> result;
  for (const EmbeddedFile& file : embedded_model_rules()) {
    if (file.name == engines_file) continue;
    GEMVJIT_TRY_ASSIGN(ModelRules rules, parse_model_rules(std::string(file.name), file.text));
    result.push_back(std::move(rules));
  }
  return result;
}

Result<std::vector<EngineRules>> builtin_engines() {
  std::vector<EngineRules> result;
  for (const EmbeddedFile& file : embedded_model_rules()) {
    if (file.name != engines_file) continue;
    GEMVJIT_TRY_ASSIGN(const json document, parse_model_json(engines_file, file.text));
    Fields fields(document, engines_file);
    const json* engines = fields.take("engines", true);
    GEMVJIT_TRY(fields.problem());
    for (const json& value : *engines) {
      Fields engine(value, "engines.json: an engine");
      EngineRules rules;
      rules.name = engine.text("name");
      rules.merges = engine.flag("merges");
      (void)engine.texts("sources");
      const json* multiple = engine.take("vocabulary_multiple", true);
      if (multiple != nullptr && *multiple == "tp") {
        rules.vocabulary_multiple_of_tp = true;
      } else if (multiple != nullptr && multiple->is_number_unsigned() && *multiple > 0) {
        rules.vocabulary_multiple = multiple->get<std::int64_t>();
      } else {
        engine.fail("has no vocabulary_multiple that is a number or \"tp\"");
      }
      GEMVJIT_TRY(engine.problem());
      result.push_back(std::move(rules));
    }
  }
  return result;
}

}  // namespace gemvjit::tools
