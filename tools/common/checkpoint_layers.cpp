#include "tools/common/checkpoint_layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "tools/common/name_pattern.h"

namespace gemvjit::tools {
namespace {

// One matrix of a rule, as far as it is there.
struct Instance {
  std::vector<const CheckpointModule*> parts;  // as many as the rule's; nullptr: not seen
  const CheckpointModule* merged = nullptr;
};

struct RuleMatches {
  const LayerRule* rule = nullptr;
  std::map<std::string, Instance> instances;  // by what match_module_end gives
};

std::optional<std::string> match_any(const std::string& module, const std::vector<std::string>& patterns) {
  for (const std::string& pattern : patterns) {
    if (auto key = match_module_end(module, pattern)) return key;
  }
  return std::nullopt;
}

bool has_part(const std::string& module, const std::vector<std::string>& words) {
  const std::string dotted = "." + module + ".";
  return std::any_of(words.begin(), words.end(),
                     [&](const std::string& word) { return dotted.find("." + word + ".") != std::string::npos; });
}

// Embeddings, norms and convolutions are no linear layers, so that no rule for them is no news.
bool is_other_kind(const CheckpointModule& module) {
  const std::size_t dot = module.name.rfind('.');
  const std::string own = dot == std::string::npos ? module.name : module.name.substr(dot + 1);
  return own.find("embed") != std::string::npos || own.find("norm") != std::string::npos ||
         own.find("conv") != std::string::npos || own == "wte";
}

class Matcher {
 public:
  Matcher(const ModelRules& rules, const ModelConfig& config, const EngineRules& engine)
      : rules_(rules), config_(config), engine_(engine) {
    for (const LayerRule& layer : rules.layers) {
      if (rules.is_there(layer, config)) matches_.push_back({.rule = &layer, .instances = {}});
    }
  }

  CheckpointLayers match(const std::vector<CheckpointModule>& modules) {
    for (const CheckpointModule& module : modules) {
      if (has_part(module.name, rules_.foreign)) {
        ++result_.foreign;
      } else if (place(module)) {
        result_.matched.push_back(&module);
      } else if (!is_other_kind(module)) {
        result_.unmatched.push_back(&module);
      }
    }
    for (RuleMatches& match : matches_) {
      if (match.instances.empty() && !match.rule->tied.empty()) add_tied(*match.rule, modules);
      judge(match);
    }
    return std::move(result_);
  }

 private:
  bool place(const CheckpointModule& module) {
    for (RuleMatches& match : matches_) {
      const LayerRule& rule = *match.rule;
      if (const auto key = match_any(module.name, rule.merged)) {
        instance(match, *key).merged = &module;
        return true;
      }
      for (std::size_t i = 0; i < rule.parts.size(); ++i) {
        if (const auto key = match_any(module.name, rule.parts[i].modules)) {
          instance(match, *key).parts[i] = &module;
          return true;
        }
      }
    }
    return false;
  }

  static Instance& instance(RuleMatches& match, const std::string& key) {
    Instance& found = match.instances[key];
    found.parts.resize(match.rule->parts.size());
    return found;
  }

  void judge(const RuleMatches& match) {
    if (match.instances.empty()) return;
    const LayerRule& rule = *match.rule;
    const Result<std::vector<RankShape>> stored = stored_shapes(rules_, rule, config_);
    for (const auto& [key, found] : match.instances) {
      if (!stored) {
        const auto any =
            std::find_if(found.parts.begin(), found.parts.end(), [](auto* part) { return part != nullptr; });
        skip(rule.layer, stored.status().message(), found.merged != nullptr ? found.merged->name : (*any)->name);
      } else if (found.merged != nullptr) {
        RankShape whole{.n = 0, .k = stored->front().k};
        for (const RankShape& part : *stored) whole.n += part.n;
        if (is_sound(rule.layer, *found.merged, whole)) add(rule, std::nullopt, *found.merged);
      } else {
        judge_parts(rule, found, *stored);
      }
    }
  }

  void judge_parts(const LayerRule& rule, const Instance& found, const std::vector<RankShape>& stored) {
    std::vector<std::size_t> sound;
    for (std::size_t i = 0; i < found.parts.size(); ++i) {
      if (found.parts[i] != nullptr && is_sound(rule.parts[i].name, *found.parts[i], stored[i])) sound.push_back(i);
    }
    if (sound.empty()) return;
    const CheckpointModule& first = *found.parts[sound.front()];
    if (found.parts.size() == 1) return add(rule, std::nullopt, first);
    const bool is_whole = sound.size() == found.parts.size();
    const bool is_uniform = std::all_of(sound.begin(), sound.end(), [&](std::size_t i) {
      return found.parts[i]->type == first.type && found.parts[i]->reciprocal == first.reciprocal;
    });
    if (engine_.merges && is_whole && is_uniform) {
      add(rule, std::nullopt, first);
      if (first.type == WeightType::nvfp4) result_.merged.push_back({.rule = &rule, .parts = found.parts});
      return;
    }
    if (engine_.merges) {
      skip(rule.layer,
           is_whole ? "its parts have different formats, so they are not merged: each counts by itself"
                    : "not all of its parts are there and served, so they are not merged: each counts by itself",
           first.name);
    }
    for (const std::size_t i : sound) add(rule, i, *found.parts[i]);
  }

  // Whether a module is served and what its rule says; otherwise it is skipped with the reason.
  bool is_sound(const std::string& layer, const CheckpointModule& module, RankShape expected) {
    if (!module.why_not.empty()) return skip(layer, module.why_not, module.name), false;
    const RankShape found{.n = module.n, .k = module.k};
    const bool is_stacked = module.weight->shape.size() == 3;
    if (found == expected || (is_stacked && found == RankShape{.n = expected.k, .k = expected.n})) return true;
    skip(layer,
         fmt::format(
             "its weight is [{}, {}], but by {} and config.json it would be [{}, {}]: name its shapes by --shape",
             found.n, found.k, rules_.file, expected.n, expected.k),
         module.name);
    return false;
  }

  // An output head without a tensor of its own multiplies with the embedding's.
  void add_tied(const LayerRule& rule, const std::vector<CheckpointModule>& modules) {
    for (const CheckpointModule& module : modules) {
      if (has_part(module.name, rules_.foreign) || !match_any(module.name, rule.tied)) continue;
      if (!config_.flag("tie_word_embeddings", true)) {
        return skip(rule.layer, "has no tensor, but config.json says that embeddings are not tied", module.name);
      }
      const Result<std::vector<RankShape>> stored = stored_shapes(rules_, rule, config_);
      if (!stored) return skip(rule.layer, stored.status().message(), module.name);
      if (!is_sound(rule.layer, module, stored->front())) return;
      add(rule, std::nullopt, module);
      result_.groups.back().is_tied = true;
      return;
    }
  }

  void add(const LayerRule& rule, std::optional<std::size_t> part, const CheckpointModule& module) {
    const auto same = std::find_if(result_.groups.begin(), result_.groups.end(), [&](const LayerGroup& group) {
      return group.rule == &rule && group.part == part && group.type == module.type;
    });
    const auto count = static_cast<std::size_t>(module.experts);
    if (same != result_.groups.end()) {
      same->count += count;
    } else {
      result_.groups.push_back(
          {.rule = &rule, .part = part, .type = module.type, .count = count, .first = module.name});
    }
  }

  void skip(const std::string& layer, const std::string& reason, const std::string& module) {
    const auto [place, is_new] = skipped_.try_emplace({layer, reason}, result_.skipped.size());
    if (is_new) result_.skipped.push_back({.layer = layer, .reason = reason, .count = 0, .first = module});
    ++result_.skipped[place->second].count;
  }

  const ModelRules& rules_;
  const ModelConfig& config_;
  const EngineRules& engine_;
  std::vector<RuleMatches> matches_;
  CheckpointLayers result_;
  std::map<std::pair<std::string, std::string>, std::size_t> skipped_;
};

}  // namespace

CheckpointLayers match_layers(const std::vector<CheckpointModule>& modules, const ModelRules& rules,
                              const ModelConfig& config, const EngineRules& engine) {
  return Matcher(rules, config, engine).match(modules);
}

}  // namespace gemvjit::tools
