#include "tools/common/model_rules.h"

#include <fmt/format.h>

#include <algorithm>

#include "tools/common/size_expression.h"

namespace gemvjit::tools {
namespace {

constexpr int deepest_names = 8;  // a name's expression may use other names

Result<std::int64_t> evaluate_at(const ModelRules& rules, std::string_view expression, const ModelConfig& config,
                                 int depth) {
  if (depth > deepest_names) return Status(StatusCode::invalid_argument, "names that need each other");
  return evaluate_size(expression, [&](std::string_view name) -> Result<std::int64_t> {
    const auto place = rules.sizes.find(name);
    // Within its own expressions a name stands for the field of config.json.
    if (place == rules.sizes.end()) return config.size(name);
    Status first;
    for (const std::string& candidate : place->second) {
      const Result<std::int64_t> value =
          candidate == name ? config.size(name) : evaluate_at(rules, candidate, config, depth + 1);
      // A field of a wrong type must not give way to a default: that would be another model.
      if (value || value.status().code() != StatusCode::not_found) return value;
      if (first.is_ok()) first = value.status();
    }
    return first.is_ok() ? Status(StatusCode::invalid_argument, fmt::format("{} has no expression", name)) : first;
  });
}

Status breaks(std::string what) { return {StatusCode::invalid_argument, std::move(what)}; }

// The rows of a part on one rank.
Result<std::int64_t> column_share(const ModelRules& rules, const RulePart& part, const ModelConfig& config,
                                  std::int64_t tp) {
  GEMVJIT_TRY_ASSIGN(const std::int64_t n, rules.evaluate(part.n, config));
  if (part.units.empty()) {
    if (n % tp != 0) return breaks(fmt::format("tp {} does not divide its {} rows", tp, n));
    return n / tp;
  }
  GEMVJIT_TRY_ASSIGN(const std::int64_t units, rules.evaluate(part.units, config));
  if (units == 0 || n % units != 0) return breaks(fmt::format("{} rows are no whole number of {}", n, part.units));
  if (part.replicated_units && units < tp) {
    if (tp % units != 0) {
      return breaks(fmt::format("tp {} is no multiple of {} ({}), which are replicated", tp, part.units, units));
    }
    return n / units;
  }
  if (units % tp != 0) return breaks(fmt::format("tp {} does not divide {} ({})", tp, part.units, units));
  return n / tp;
}

Result<std::int64_t> row_share(const ModelRules& rules, const LayerRule& layer, const ModelConfig& config,
                               std::int64_t tp) {
  GEMVJIT_TRY_ASSIGN(const std::int64_t k, rules.evaluate(layer.k, config));
  if (!layer.units.empty()) {
    GEMVJIT_TRY_ASSIGN(const std::int64_t units, rules.evaluate(layer.units, config));
    if (units % tp != 0) return breaks(fmt::format("tp {} does not divide {} ({})", tp, layer.units, units));
  }
  if (k % tp != 0) return breaks(fmt::format("tp {} does not divide its {} columns", tp, k));
  return k / tp;
}

Result<std::int64_t> vocabulary_share(std::int64_t n, const EngineRules& engine, std::int64_t tp) {
  const std::int64_t multiple = engine.vocabulary_multiple_of_tp ? tp : engine.vocabulary_multiple;
  const std::int64_t padded = (n + multiple - 1) / multiple * multiple;
  if (padded % tp != 0) return breaks(fmt::format("tp {} does not divide the vocabulary of {}", tp, padded));
  return padded / tp;
}

}  // namespace

Result<std::int64_t> ModelRules::evaluate(std::string_view expression, const ModelConfig& config) const {
  return evaluate_at(*this, expression, config, 0);
}

bool ModelRules::is_there(const LayerRule& layer, const ModelConfig& config) const {
  const auto is_positive = [&](const std::string& expression) {
    const Result<std::int64_t> value = evaluate(expression, config);
    return value && *value > 0;
  };
  if (!layer.when.empty() && !is_positive(layer.when)) return false;
  return layer.unless.empty() || !is_positive(layer.unless);
}

bool ModelRules::uses_silu(const ModelConfig& config) const {
  std::string name = activation;
  for (const std::string& field : activation_fields) {
    if (std::string said = config.text(field); !said.empty()) {
      name = std::move(said);
      break;
    }
  }
  return name == "silu" || name == "swish";
}

const ModelRules* find_rules(const std::vector<ModelRules>& rules, const std::vector<std::string>& model_types) {
  for (const std::string& type : model_types) {
    for (const ModelRules& candidate : rules) {
      const auto& types = candidate.model_types;
      if (std::find(types.begin(), types.end(), type) != types.end()) return &candidate;
    }
  }
  return nullptr;
}

Result<std::vector<RankShape>> stored_shapes(const ModelRules& rules, const LayerRule& layer,
                                             const ModelConfig& config) {
  std::vector<RankShape> shapes;
  GEMVJIT_TRY_ASSIGN(const std::int64_t k, rules.evaluate(layer.k, config));
  for (const RulePart& part : layer.parts) {
    GEMVJIT_TRY_ASSIGN(const std::int64_t n, rules.evaluate(part.n, config));
    shapes.push_back({.n = n, .k = k});
  }
  return shapes;
}

Result<RankShape> rank_shape(const ModelRules& rules, const LayerRule& layer, const ModelConfig& config,
                             const EngineRules& engine, std::int64_t tp, std::optional<std::size_t> part) {
  GEMVJIT_TRY_ASSIGN(const auto stored, stored_shapes(rules, layer, config));
  RankShape shape{.n = 0, .k = stored.front().k};
  if (layer.sharding == Sharding::row) {
    GEMVJIT_TRY_ASSIGN(shape.k, row_share(rules, layer, config, tp));
  }
  for (std::size_t i = 0; i < layer.parts.size(); ++i) {
    if (part && *part != i) continue;
    std::int64_t n = stored[i].n;
    if (layer.sharding == Sharding::column) {
      GEMVJIT_TRY_ASSIGN(n, column_share(rules, layer.parts[i], config, tp));
    } else if (layer.sharding == Sharding::vocabulary) {
      GEMVJIT_TRY_ASSIGN(n, vocabulary_share(n, engine, tp));
    }
    shape.n += n;
  }
  return shape;
}

}  // namespace gemvjit::tools
