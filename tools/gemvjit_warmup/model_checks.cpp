#include "tools/gemvjit_warmup/model_checks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "tools/common/printable.h"

namespace gemvjit::tools {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t most_listed = 50;

std::string first_and_count(const std::vector<std::string>& names) {
  return names.size() == 1 ? printable(names.front())
                           : fmt::format("{} and {} more", printable(names.front()), names.size() - 1);
}

const char* word_of(const FormatCounts& counts) {
  if (counts.multiplier && counts.reciprocal) return "both";
  return counts.multiplier ? "multiplier" : counts.reciprocal ? "reciprocal" : "";
}

void say_kind(const FormatCounts& counts, ModelShapes& result) {
  if (counts.multiplier) result.notes.push_back("  global scales: weight_scale_2, a multiplier (ModelOpt)");
  if (counts.reciprocal) {
    result.notes.push_back(
        "  global scales: weight_global_scale, a reciprocal (compressed-tensors): the engine has to pass 1/scale");
  }
}

}  // namespace

void say_quantization(const ModelConfig& config, const std::vector<const CheckpointModule*>& modules,
                      ModelShapes& result) {
  const QuantConfig& claimed = config.quantization();
  for (const std::string& warning : claimed.warnings) warn(result, warning);
  const FormatCounts counts = count_formats(modules, claimed);
  std::vector<std::string> excluded;
  for (const ExclusionPattern& pattern : claimed.excluded) excluded.push_back(pattern.text());

  std::vector<std::string> shown;
  for (const std::string& pattern : excluded) {
    if (shown.size() < most_listed) shown.push_back(printable(pattern));
  }
  if (!claimed.source.empty()) {
    result.notes.push_back(
        fmt::format("  quantization by {}: {} {}{}", claimed.source, printable(claimed.method),
                    claimed.algorithm.empty() ? "(no algorithm said)" : printable(claimed.algorithm),
                    claimed.group_size > 0 ? fmt::format(", group size {}", claimed.group_size) : ""));
    if (!shown.empty()) {
      result.notes.push_back(fmt::format(
          "  excluded: {}{}", fmt::join(shown, ", "),
          excluded.size() > shown.size() ? fmt::format(" and {} more", excluded.size() - shown.size()) : ""));
    }
  }
  result.notes.push_back(fmt::format("  by its tensors: {} matrices NVFP4, {} not quantized, {} of other formats",
                                     counts.nvfp4, counts.unquantized, counts.other));
  say_kind(counts, result);
  if (!counts.excluded_but_quantized.empty()) {
    warn(result, fmt::format("{} excludes {}, but the tensors are NVFP4; they are taken as NVFP4", claimed.source,
                             first_and_count(counts.excluded_but_quantized)));
  }
  if (!counts.claimed_but_not_quantized.empty()) {
    warn(result, fmt::format("{} says NVFP4 and does not exclude {}, but the tensors are not quantized; they are taken "
                             "as BF16",
                             claimed.source, first_and_count(counts.claimed_but_not_quantized)));
  }
  if (excluded.size() > most_listed) excluded.resize(most_listed);
  const std::string kind = word_of(counts);
  result.json["quantization"] = {{"source", claimed.source},
                                 {"method", claimed.method},
                                 {"algorithm", claimed.algorithm},
                                 {"kv_cache_algorithm", claimed.kv_cache_algorithm},
                                 {"group_size", claimed.group_size},
                                 {"excluded", excluded},
                                 {"global_scale", kind.empty() ? ordered_json() : ordered_json(kind)},
                                 {"nvfp4", counts.nvfp4},
                                 {"not_quantized", counts.unquantized},
                                 {"other", counts.other}};
}

void say_unsound_scales(const std::vector<const CheckpointModule*>& modules, ModelShapes& result) {
  std::size_t all = 0, unread = 0;
  std::string problem;
  std::vector<std::string> unsound;
  for (const CheckpointModule* module : modules) {
    if (module->type != WeightType::nvfp4 || !module->why_not.empty()) continue;
    ++all;
    const Result<GlobalScales> scale = read_global_scales({module});
    if (!scale) {
      if (unread++ == 0) problem = scale.status().message();
    } else if (scale->ratio == 0) {
      unsound.push_back(module->name);
    }
  }
  result.json["unsound_global_scales"] = ordered_json::array();
  if (unread > 0) {
    warn(result, fmt::format("the global scales of {} of {} NVFP4 matrices were not read: {}", unread, all, problem));
  }
  if (unsound.empty()) return;
  warn(result, fmt::format("{} of {} NVFP4 matrices have a global scale that is 0, negative or no number (first: {})",
                           unsound.size(), all, printable(unsound.front())));
  if (unsound.size() > most_listed) unsound.resize(most_listed);
  result.json["unsound_global_scales"] = unsound;
}

void say_global_scales(const std::vector<MergedMatrix>& merged, ModelShapes& result) {
  struct Unequal {
    std::size_t matrices = 0, unequal = 0;
    double most = 1;
    std::string first;
  };
  std::map<std::string, Unequal> by_layer;
  for (const MergedMatrix& matrix : merged) {
    Unequal& layer = by_layer[matrix.rule->layer];
    ++layer.matrices;
    const std::string& module = matrix.parts.front()->name;
    const Result<GlobalScales> scales = read_global_scales(matrix.parts);
    // Which cannot be read or are of no use, say_unsound_scales() says.
    if (!scales || scales->ratio == 0 || scales->is_equal) continue;
    if (layer.unequal++ == 0) layer.first = module;
    layer.most = std::max(layer.most, scales->ratio);
  }
  result.json["unequal_global_scales"] = ordered_json::array();
  for (const auto& [name, layer] : by_layer) {
    if (layer.unequal == 0) continue;
    warn(result,
         fmt::format("{}: the parts of {} of {} matrices have unequal global scales, ratio up to {:.3g} (first: {}); a "
                     "merged matrix with one global scale, such as the largest, computes wrong numbers",
                     name, layer.unequal, layer.matrices, layer.most, printable(layer.first)));
    result.json["unequal_global_scales"].push_back({{"layer", name},
                                                    {"matrices", layer.matrices},
                                                    {"unequal", layer.unequal},
                                                    {"ratio", layer.most},
                                                    {"first", layer.first}});
  }
}

void say_scan(const std::vector<CheckpointModule>& modules, ModelShapes& result) {
  std::uint64_t bytes = 0, nan = 0;
  std::size_t tensors = 0, bad = 0;
  ordered_json list = ordered_json::array();
  for (const CheckpointModule& module : modules) {
    if (module.type != WeightType::nvfp4 || !module.why_not.empty()) continue;
    const Result<NanScan> scan = scan_scales(module);
    if (!scan) {
      warn(result, scan.status().message());
      continue;
    }
    ++tensors;
    bytes += scan->bytes;
    nan += scan->nan;
    if (scan->nan == 0 || ++bad > most_listed) continue;
    warn(result,
         fmt::format("{}: {} of {} scale bytes are NaN, the first at row {}, column {}", printable(module.scale->name),
                     scan->nan, scan->bytes, scan->first_row, scan->first_column));
    list.push_back(
        {{"tensor", module.scale->name}, {"nan", scan->nan}, {"row", scan->first_row}, {"column", scan->first_column}});
  }
  if (bad > most_listed) warn(result, fmt::format("... and NaN in {} scale tensors more", bad - most_listed));
  result.notes.push_back(fmt::format("  scan: {} scale bytes of {} tensors, {} NaN", bytes, tensors, nan));
  result.json["scan"] = {{"tensors", tensors}, {"bytes", bytes}, {"nan", nan}, {"with_nan", list}};
}

}  // namespace gemvjit::tools
