#include "tools/common/checkpoint_modules.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>

#include "tools/common/printable.h"

namespace gemvjit::tools {
namespace {

using TensorMap = std::map<std::string_view, const Tensor*>;

const Tensor* find(const TensorMap& by_name, const std::string& name) {
  const auto place = by_name.find(name);
  return place == by_name.end() ? nullptr : place->second;
}

bool is_one_number(const Tensor& tensor) {
  return std::all_of(tensor.shape.begin(), tensor.shape.end(), [](std::int64_t size) { return size == 1; });
}

// Fills in what NVFP4 needs, or says what is missing. `global` is the name of the global scale.
void judge_nvfp4(CheckpointModule& module, const TensorMap& by_name, const char* global) {
  module.type = WeightType::nvfp4;
  module.k *= 2;
  module.scale = find(by_name, module.name + ".weight_scale");
  module.global_scale = find(by_name, module.name + "." + global);
  if (module.scale == nullptr) {
    module.why_not = "U8 without a weight_scale beside it: not NVFP4";
  } else if (module.scale->dtype != "F8_E4M3") {
    module.why_not =
        fmt::format("its weight_scale is {}: not NVFP4 (that has F8_E4M3)", printable(module.scale->dtype));
  } else if (module.k % 16 != 0 || module.scale->shape != std::vector<std::int64_t>{module.n, module.k / 16}) {
    module.why_not = fmt::format("its weight_scale is {}: not NVFP4 of block size 16 (that has [{}, {}/16])",
                                 module.scale->shape_text(), module.n, module.k);
  } else if (module.global_scale == nullptr) {
    module.why_not = fmt::format("NVFP4 without the global scale {}", global);
  } else if (!is_one_number(*module.global_scale)) {
    module.why_not = fmt::format("its {} is {}: one number is served", global, module.global_scale->shape_text());
  }
}

void judge(CheckpointModule& module, const TensorMap& by_name) {
  const std::string& dtype = module.weight->dtype;
  const bool is_stacked = module.weight->shape.size() == 3;
  if (module.weight->name.ends_with("_blocks")) {
    module.why_not = "MXFP4 weights are not served";
  } else if (module.weight->name.ends_with(".weight_packed")) {
    module.reciprocal = true;
    if (dtype != "U8") {
      module.why_not = fmt::format("compressed-tensors weights of {} are not served", printable(dtype));
    } else if (find(by_name, module.name + ".weight_global_scale") == nullptr) {
      module.why_not = "weight_packed without weight_global_scale: not NVFP4";
    } else {
      judge_nvfp4(module, by_name, "weight_global_scale");
    }
  } else if (dtype == "U8" && !is_stacked) {
    judge_nvfp4(module, by_name, "weight_scale_2");
  } else if (dtype.starts_with("F8_")) {
    module.why_not = "FP8 weights are not served";
  } else if (dtype != "BF16" && dtype != "F16" && dtype != "F32") {
    module.why_not = fmt::format("{}{} weights are not served", is_stacked ? "stacked " : "", printable(dtype));
  }
}

// The module that a tensor is the weight of, if it may be one.
std::optional<std::string> module_of(const Tensor& tensor) {
  const std::string& name = tensor.name;
  const std::size_t dimensions = tensor.shape.size();
  for (const std::string_view suffix : {".weight", ".weight_packed"}) {
    if (name.ends_with(suffix) && name.size() > suffix.size() && (dimensions == 2 || dimensions == 3)) {
      return name.substr(0, name.size() - suffix.size());
    }
  }
  constexpr std::string_view blocks = "_blocks";
  if (name.ends_with(blocks) && dimensions == 4) return name.substr(0, name.size() - blocks.size());
  if (dimensions == 3 && name.find("expert") != std::string::npos) return name;
  return std::nullopt;
}

}  // namespace

std::vector<CheckpointModule> find_modules(const std::vector<Tensor>& tensors) {
  TensorMap by_name;
  for (const Tensor& tensor : tensors) by_name[tensor.name] = &tensor;
  std::vector<CheckpointModule> modules;
  for (const Tensor& tensor : tensors) {
    const auto name = module_of(tensor);
    if (!name || name->empty()) continue;
    CheckpointModule module{.name = *name, .weight = &tensor, .why_not = {}};
    const std::size_t first = tensor.shape.size() == 3 ? 1 : 0;
    if (first == 1) module.experts = tensor.shape[0];
    module.n = tensor.shape[first];
    module.k = tensor.shape[first + 1];
    // Above any size of a rule, and far from an overflow of what is computed with it.
    constexpr std::int64_t largest = std::int64_t{1} << 40;
    if (module.n > largest || module.k > largest || module.experts > largest) continue;
    judge(module, by_name);
    modules.push_back(std::move(module));
  }
  return modules;
}

}  // namespace gemvjit::tools
