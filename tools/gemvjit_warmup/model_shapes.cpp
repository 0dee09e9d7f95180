#include "tools/gemvjit_warmup/model_shapes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <tuple>

#include "src/base/suggestion.h"
#include "tools/common/checkpoint_layers.h"
#include "tools/common/linear_layers.h"
#include "tools/common/model_rules.h"
#include "tools/common/printable.h"
#include "tools/gemvjit_warmup/model_checks.h"

namespace gemvjit::tools {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t most_listed = 50;  // of a kind, in notes and in JSON: a hostile checkpoint has any number

ShapeFamily family_of(WeightType type) { return type == WeightType::nvfp4 ? ShapeFamily::nvfp4 : ShapeFamily::bf16; }

const char* word_of(WeightType type) { return type == WeightType::nvfp4 ? "NVFP4" : "BF16"; }

// Each tensor as a shape of its own.
void add_tensors(const std::vector<Tensor>& tensors, const ModelRequest& request, const ShapeVerdict& verdict,
                 ModelShapes& result) {
  const ModelLayers model =
      find_linear_layers(tensors, [&](WeightType type, std::int64_t n, std::int64_t k) -> std::string {
        return verdict({.n = n, .k = k, .family = family_of(type)});
      });
  std::size_t minor = 0;
  for (const SkippedTensor& tensor : model.skipped) {
    minor += tensor.minor ? 1 : 0;
    if (!tensor.minor) {
      result.notes.push_back(fmt::format("skipped {} {} {}: {}", printable(tensor.name), printable(tensor.dtype),
                                         tensor.shape, tensor.reason));
    }
  }
  if (minor > 0)
    result.notes.push_back(fmt::format("skipped {} tensors with fewer than 2 dimensions (biases, norms)", minor));
  result.notes.push_back(fmt::format("{}: {} linear layers", request.path, model.layers.size()));
  std::map<std::tuple<std::int64_t, std::int64_t, WeightType>, std::pair<std::size_t, std::string>> groups;
  for (const LinearLayer& layer : model.layers) {
    result.shapes.push_back({{.n = layer.n, .k = layer.k, .family = family_of(layer.type)}, layer.name});
    auto& [count, first] = groups[{layer.n, layer.k, layer.type}];
    if (count++ == 0) first = layer.name;
  }
  for (const auto& [shape, group] : groups) {
    const auto& [n, k, type] = shape;
    result.json["layers"].push_back({{"layer", nullptr},
                                     {"tp", 1},
                                     {"n", n},
                                     {"k", k},
                                     {"type", word_of(type)},
                                     {"silu_mul", false},
                                     {"count", group.first},
                                     {"first", group.second},
                                     {"why_not", ""}});
  }
}

// One layer at each tp: shapes, JSON, and the text for its line.
std::string add_group(const LayerGroup& group, const ModelRules& rules, const ModelConfig& config,
                      const EngineRules& engine, const ModelRequest& request, const ShapeVerdict& verdict,
                      ModelShapes& result, std::vector<std::string>& unserved) {
  std::vector<std::string> texts;
  const bool silu_mul = group.rule->gated && !group.part && engine.merges && rules.uses_silu(config);
  for (const std::int64_t tp : request.tps) {
    const Result<RankShape> shape = rank_shape(rules, *group.rule, config, engine, tp, group.part);
    std::string why_not = shape ? "" : shape.status().message();
    ordered_json n, k;
    if (shape) {
      const ShapeSpec spec{.n = shape->n, .k = shape->k, .family = family_of(group.type), .silu_mul = silu_mul};
      n = spec.n;
      k = spec.k;
      why_not = verdict(spec);
      if (why_not.empty()) result.shapes.push_back({spec, fmt::format("{} tp{}", group.name(), tp)});
      texts.push_back(fmt::format("tp{} {}x{}{}", tp, spec.n, spec.k, why_not.empty() ? "" : " (not served)"));
    } else {
      texts.push_back(fmt::format("tp{} none", tp));
    }
    if (!why_not.empty()) unserved.push_back(fmt::format("not served: {} at tp {}: {}", group.name(), tp, why_not));
    result.json["layers"].push_back({{"layer", group.name()},
                                     {"tp", tp},
                                     {"n", n},
                                     {"k", k},
                                     {"type", word_of(group.type)},
                                     {"silu_mul", silu_mul},
                                     {"count", group.count},
                                     {"first", group.first},
                                     {"why_not", why_not}});
    if (group.is_tied) result.json["layers"].back()["tied"] = true;
    if (!group.rule->note.empty()) result.json["layers"].back()["note"] = group.rule->note;
  }
  return fmt::format("  {} {}{}{}: {}{}{}", group.name(), word_of(group.type), silu_mul ? " silu_mul" : "",
                     group.count > 1 ? fmt::format(" ({} of them)", group.count) : "", fmt::join(texts, ", "),
                     group.is_tied ? "; the embedding's weight" : "",
                     group.rule->note.empty() ? "" : "; " + group.rule->note);
}

void add_skipped(const CheckpointLayers& layers, ModelShapes& result) {
  std::size_t listed = 0;
  for (const SkippedLayer& skipped : layers.skipped) {
    if (++listed > most_listed) break;
    result.notes.push_back(fmt::format("skipped {} ({}{}): {}", skipped.layer, printable(skipped.first),
                                       skipped.count > 1 ? fmt::format(" and {} more", skipped.count - 1) : "",
                                       skipped.reason));
    result.json["skipped"].push_back(
        {{"layer", skipped.layer}, {"reason", skipped.reason}, {"count", skipped.count}, {"first", skipped.first}});
  }
  if (layers.skipped.size() > most_listed) {
    result.notes.push_back(fmt::format("... and {} reasons more", layers.skipped.size() - most_listed));
  }
  listed = 0;
  for (const CheckpointModule* module : layers.unmatched) {
    if (++listed > most_listed) break;
    const std::string reason = "the rules do not know it: name its shapes by --shape";
    result.notes.push_back(fmt::format("skipped {} {} {}: {}", printable(module->weight->name),
                                       printable(module->weight->dtype), module->weight->shape_text(), reason));
    result.json["skipped"].push_back({{"layer", nullptr}, {"reason", reason}, {"count", 1}, {"first", module->name}});
  }
  if (layers.unmatched.size() > most_listed) {
    result.notes.push_back(
        fmt::format("... and {} that the rules do not know more", layers.unmatched.size() - most_listed));
  }
  if (layers.foreign > 0) {
    result.notes.push_back(
        fmt::format("skipped {} matrices of other parts of the model (vision, audio)", layers.foreign));
  }
}

void add_layers(const CheckpointLayers& layers, const ModelRules& rules, const ModelConfig& config,
                const EngineRules& engine, const ModelRequest& request, const ShapeVerdict& verdict,
                ModelShapes& result) {
  std::vector<std::string> unserved;
  for (const LayerGroup& group : layers.groups) {
    result.notes.push_back(add_group(group, rules, config, engine, request, verdict, result, unserved));
  }
  result.notes.insert(result.notes.end(), unserved.begin(), unserved.end());
  add_skipped(layers, result);
}

// The configuration of a folder. Where only tensors are asked for, a broken one is no reason to stop.
Result<ModelConfig> read_config(const ModelRequest& request, bool only_tensors, ModelShapes& result) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(request.path, ignored)) return ModelConfig(nullptr);
  Result<ModelConfig> config = ModelConfig::read(request.path);
  if (config || !only_tensors) return config;
  warn(result, config.status().message() + ": ignored");
  return ModelConfig(nullptr);
}

Result<EngineRules> find_engine(const std::string& name) {
  GEMVJIT_TRY_ASSIGN(const std::vector<EngineRules> engines, builtin_engines());
  for (const EngineRules& engine : engines) {
    if (engine.name == name) return engine;
  }
  return Status(StatusCode::invalid_argument, fmt::format("no engine is called {}", printable(name)));
}

// Which rules to take; nullptr, with a warning where rules were wanted, for none.
const ModelRules* choose_rules(const std::vector<ModelRules>& all, const ModelConfig& config, bool only_tensors,
                               const ModelRequest& request, ModelShapes& result) {
  if (only_tensors) return nullptr;
  const ModelRules* rules = find_rules(all, config.model_types());
  if (rules != nullptr) return rules;
  std::vector<std::string> types;
  for (const std::string& type : config.model_types()) types.push_back(printable(type));
  std::vector<std::string> known;
  for (const ModelRules& one : all) known.insert(known.end(), one.model_types.begin(), one.model_types.end());
  const std::string meant = types.empty() ? "" : did_you_mean(types.front(), known);
  const std::string why = !config.exists() ? "has no config.json"
                          : types.empty()  ? "its config.json names no model_type"
                                           : fmt::format("no rules for model type {}{}", fmt::join(types, ", "), meant);
  warn(result,
       fmt::format("{}: {}: each tensor is taken as it is stored, unmerged and for tp 1 only", request.path, why));
  return nullptr;
}

Status examine(const std::vector<Tensor>& tensors, const ModelRequest& request, const ShapeVerdict& verdict,
               ModelShapes& result) {
  const bool only_tensors = request.engine == "none" && request.tps == std::vector<std::int64_t>{1};
  GEMVJIT_TRY_ASSIGN(const ModelConfig config, read_config(request, only_tensors, result));
  GEMVJIT_TRY_ASSIGN(const EngineRules engine, find_engine(request.engine));
  GEMVJIT_TRY_ASSIGN(const std::vector<ModelRules> all, builtin_model_rules());
  const ModelRules* rules = choose_rules(all, config, only_tensors, request, result);
  const std::vector<CheckpointModule> modules = find_modules(tensors);
  GEMVJIT_TRY(check_claims(modules, config.quantization()));

  const auto& types = config.model_types();
  result.json["model_type"] = types.empty() ? ordered_json() : ordered_json(types.front());
  result.json["rules"] = rules == nullptr ? ordered_json() : ordered_json(rules->file);
  if (rules == nullptr) {
    add_tensors(tensors, request, verdict, result);
    std::vector<const CheckpointModule*> all_modules;
    for (const CheckpointModule& module : modules) {
      if (!is_other_kind(module.name)) all_modules.push_back(&module);
    }
    say_quantization(config, all_modules, result);
    say_unsound_scales(all_modules, result);
  } else {
    const CheckpointLayers layers = match_layers(modules, *rules, config, engine);
    result.notes.push_back(fmt::format("{}: model type {} by {}, engine {}, tp {}", request.path,
                                       printable(types.front()), rules->file, engine.name,
                                       fmt::join(request.tps, ",")));
    add_layers(layers, *rules, config, engine, request, verdict, result);
    say_quantization(config, layers.matched, result);
    say_unsound_scales(layers.matched, result);
    say_global_scales(layers.merged, result);
  }
  if (request.scan) say_scan(modules, result);
  return {};
}

}  // namespace

void warn(ModelShapes& result, const std::string& text) {
  result.notes.push_back("warning: " + text);
  result.json["warnings"].push_back(text);
}

ExitCode make_model_shapes(const ModelRequest& request, const ShapeVerdict& verdict, ModelShapes& result,
                           std::string& error) {
  const Result<std::vector<Tensor>> tensors = read_model(request.path);
  if (!tensors) {
    error = tensors.status().message();
    return tensors.status().code() == StatusCode::not_found ? exit_nothing_found : exit_usage;
  }
  result.json = {{"path", request.path}, {"engine", request.engine}, {"tp", request.tps}};
  for (const char* list : {"layers", "skipped", "warnings"}) result.json[list] = ordered_json::array();
  if (const Status status = examine(*tensors, request, verdict, result); !status) {
    error = status.message();
    return exit_usage;
  }
  if (!result.shapes.empty()) return exit_done;
  error = fmt::format("model {}: none of its {} tensors is a linear layer that a kernel serves", request.path,
                      tensors->size());
  for (const std::string& note : result.notes) error += "\n  " + note;
  return exit_nothing_found;
}

}  // namespace gemvjit::tools
