// Linear layers of a model: which of its tensors are weights that a GEMV of this library can serve, from names, types
// and shapes alone.
//
//   NVFP4   X.weight U8 [N, K/2], X.weight_scale F8_E4M3 [N, K/16], X.weight_scale_2 one number (ModelOpt's layout;
//           X.input_scale is not needed and not looked at)
//   BF16    X.weight BF16, F16 or F32 [N, K]; an engine casts the latter two when it loads them
//
// Everything else is skipped with a reason: embeddings (looked up, not multiplied), norms, biases, convolutions, other
// quantizations, and shapes that no kernel serves.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tools/common/safetensors.h"

namespace gemvjit::tools {

enum class WeightType { nvfp4, bf16 };

struct LinearLayer {
  std::string name;  // of the weight tensor
  std::int64_t n = 0, k = 0;
  WeightType type = WeightType::bf16;
  bool operator==(const LinearLayer&) const = default;
};

struct SkippedTensor {
  std::string name, dtype, shape;
  std::string reason;
  bool minor = false;  // 1-D: a bias or norm, of which every model has many; counted rather than listed
};

struct ModelLayers {
  std::vector<LinearLayer> layers;
  std::vector<SkippedTensor> skipped;
};

// Why no kernel serves such a weight; empty if one does. The rules are the library's, so the caller asks it.
using ShapeCheck = std::function<std::string(WeightType type, std::int64_t n, std::int64_t k)>;

// `tensors` sorted by name, as read_model gives them; so are both lists of the result.
ModelLayers find_linear_layers(const std::vector<Tensor>& tensors, const ShapeCheck& shape_check);

}  // namespace gemvjit::tools
