// CheckpointModule: a tensor that may be the weight of a linear layer, with what its neighbours say of its format.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/common/linear_layers.h"

namespace gemvjit::tools {

struct CheckpointModule {
  std::string name;  // without ".weight": "model.layers.0.mlp.up_proj"
  const Tensor* weight = nullptr;
  WeightType type = WeightType::bf16;
  std::string why_not;        // the format is not served; type, n and k then say nothing
  std::int64_t n = 0, k = 0;  // as stored; of one expert where `experts` are stacked
  std::int64_t experts = 1;
  const Tensor* scale = nullptr;         // NVFP4: one E4M3 byte for 16 columns
  const Tensor* global_scale = nullptr;  // NVFP4: one number
  bool reciprocal = false;               // NVFP4: the global scale is a divisor (compressed-tensors)
};

// Of `tensors` sorted by name, which have to outlive the result: those of two dimensions or, where experts are stacked,
// three, that are called X.weight, X.weight_packed, X_blocks (MXFP4), or X alone if stacked. Sorted by name.
std::vector<CheckpointModule> find_modules(const std::vector<Tensor>& tensors);

}  // namespace gemvjit::tools
