#include "tools/common/linear_layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "src/base/suggestion.h"
#include "tools/common/printable.h"

namespace gemvjit::tools {
namespace {

using TensorMap = std::map<std::string_view, const Tensor*>;

constexpr std::string_view weight_suffix = "weight";

// "a.b.weight" has the module "a.b."; a bare "weight" the module "".
bool names_part(std::string_view name, std::string_view part, std::string_view& module) {
  if (!name.ends_with(part)) return false;
  module = name.substr(0, name.size() - part.size());
  return module.empty() || module.ends_with('.');
}

bool contains_any(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return text.find(word) != std::string_view::npos; });
}

// Whether a table is looked up by row instead of multiplied. The module's own name (its last part) decides first: a
// projection inside an "embeddings" block, or an output head called embed_out, is a linear layer.
bool is_embedding(std::string_view module) {
  const std::string name = lower_case(module.empty() ? module : module.substr(0, module.size() - 1));
  const std::size_t dot = name.rfind('.');
  const std::string_view own = std::string_view(name).substr(dot == std::string::npos ? 0 : dot + 1);
  if (contains_any(own, {"proj", "dense", "linear", "mapping", "head", "mlp", "embed_out", "fc"})) return false;
  if (own == "wte" || own == "wpe" || own == "shared") return true;
  return contains_any(name, {"embed", "position", "token_type"});
}

bool is_norm(std::string_view module) { return lower_case(module).find("norm") != std::string::npos; }

const Tensor* find(const TensorMap& by_name, std::string_view module, std::string_view part) {
  const auto place = by_name.find(std::string(module) + std::string(part));
  return place == by_name.end() ? nullptr : place->second;
}

// Of a 2-D U8 weight: why it is no NVFP4 weight in ModelOpt's layout; empty if it is one.
std::string not_nvfp4(const Tensor& weight, std::string_view module, const TensorMap& by_name) {
  const Tensor* scale = find(by_name, module, "weight_scale");
  if (scale == nullptr) return "U8 without a weight_scale beside it: not NVFP4";
  if (scale->dtype != "F8_E4M3") {
    return fmt::format("its weight_scale is {}: not NVFP4 (that has F8_E4M3)", printable(scale->dtype));
  }
  const std::int64_t n = weight.shape[0], k = weight.shape[1] * 2;
  if (scale->shape != std::vector<std::int64_t>{n, k / 16} || k % 16 != 0) {
    return fmt::format(
        "its weight_scale is {}: not NVFP4 of block size 16 (that has one scale for 16 of its {} columns)",
        scale->shape_text(), k);
  }
  const Tensor* global = find(by_name, module, "weight_scale_2");
  if (global == nullptr) return "NVFP4 without the global scale weight_scale_2";
  if (std::any_of(global->shape.begin(), global->shape.end(), [](std::int64_t size) { return size != 1; })) {
    return fmt::format("its weight_scale_2 is {}: one number is served", global->shape_text());
  }
  return {};
}

// Either a layer or a reason, for a tensor called <module>.weight.
std::string classify_weight(const Tensor& tensor, std::string_view module, const TensorMap& by_name,
                            const ShapeCheck& shape_check, LinearLayer& layer) {
  if (tensor.shape.size() != 2) return fmt::format("{}-D: no linear layer", tensor.shape.size());
  if (is_embedding(module)) return "embedding: looked up, not multiplied";
  if (is_norm(module)) return "norm: no linear layer";
  layer = {.name = tensor.name, .n = tensor.shape[0], .k = tensor.shape[1], .type = WeightType::bf16};
  if (tensor.dtype == "U8") {
    if (std::string reason = not_nvfp4(tensor, module, by_name); !reason.empty()) return reason;
    layer.type = WeightType::nvfp4;
    layer.k *= 2;
  } else if (tensor.dtype.starts_with("F8_")) {
    return "FP8 weights are not served";
  } else if (tensor.dtype != "BF16" && tensor.dtype != "F16" && tensor.dtype != "F32") {
    return fmt::format("{} weights are not served", printable(tensor.dtype));
  }
  return shape_check(layer.type, layer.n, layer.k);
}

// A scale that belongs to a weight is judged with that weight and not listed itself.
bool is_companion(const Tensor& tensor, const TensorMap& by_name) {
  static constexpr std::array<std::string_view, 4> parts{"weight_scale", "weight_scale_2", "weight_scale_inv",
                                                         "input_scale"};
  return std::any_of(parts.begin(), parts.end(), [&](std::string_view part) {
    std::string_view module;
    return names_part(tensor.name, part, module) && find(by_name, module, weight_suffix) != nullptr;
  });
}

std::string reason_for_other(const Tensor& tensor) {
  std::string_view module;
  if (names_part(tensor.name, "weight_packed", module)) {
    return "compressed-tensors layout, whose global scale is a divisor: not served yet";
  }
  return fmt::format("{}-D, its name does not end in .weight", tensor.shape.size());
}

}  // namespace

ModelLayers find_linear_layers(const std::vector<Tensor>& tensors, const ShapeCheck& shape_check) {
  TensorMap by_name;
  for (const Tensor& tensor : tensors) by_name[tensor.name] = &tensor;

  ModelLayers result;
  for (const Tensor& tensor : tensors) {
    if (is_companion(tensor, by_name)) continue;
    std::string_view module;
    LinearLayer layer;
    std::string reason = names_part(tensor.name, weight_suffix, module)
                             ? classify_weight(tensor, module, by_name, shape_check, layer)
                             : reason_for_other(tensor);
    if (reason.empty()) {
      result.layers.push_back(std::move(layer));
    } else {
      result.skipped.push_back({.name = tensor.name,
                                .dtype = tensor.dtype,
                                .shape = tensor.shape_text(),
                                .reason = std::move(reason),
                                .minor = tensor.shape.size() < 2});
    }
  }
  return result;
}

}  // namespace gemvjit::tools
