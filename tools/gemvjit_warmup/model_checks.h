// What --model tells of a checkpoint beside its shapes: quantization, global scales, bad scale bytes. Each adds lines
// to the notes and a member to the JSON of the model.
#pragma once

#include <string>
#include <vector>

#include "tools/common/checkpoint_checks.h"
#include "tools/common/checkpoint_layers.h"
#include "tools/common/model_config.h"
#include "tools/gemvjit_warmup/model_shapes.h"

namespace gemvjit::tools {

// A line that begins with "warning: ", and an element of "warnings".
void warn(ModelShapes& result, const std::string& text);

// "quantization": what the files claim, what is excluded, and what the tensors are.
void say_quantization(const ModelConfig& config, const std::vector<const CheckpointModule*>& modules,
                      ModelShapes& result);
// "unsound_global_scales": modules whose own is 0, negative or no number. Reads 4 bytes each.
void say_unsound_scales(const std::vector<const CheckpointModule*>& modules, ModelShapes& result);
// "unequal_global_scales": per merged layer. Reads 4 bytes a part.
void say_global_scales(const std::vector<MergedMatrix>& merged, ModelShapes& result);
// "scan": E4M3 NaN bytes. Reads all NVFP4 scales.
void say_scan(const std::vector<CheckpointModule>& modules, ModelShapes& result);

}  // namespace gemvjit::tools
