// CheckpointLayers: the modules of a checkpoint as the layers of its model's rules.
//
// A merged layer needs all its parts in one format; where they differ the parts count by themselves. A module whose
// shape is not what its rule says is left out, never guessed at.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/common/checkpoint_modules.h"
#include "tools/common/model_rules.h"

namespace gemvjit::tools {

struct LayerGroup {
  const LayerRule* rule = nullptr;
  std::optional<std::size_t> part;  // of the rule; nothing: all parts as one matrix
  WeightType type = WeightType::bf16;
  std::size_t count = 0;  // matrices in the checkpoint
  std::string first;      // a module of the first
  bool is_tied = false;   // its weight is the embedding's
  const std::string& name() const { return part ? rule->parts[*part].name : rule->layer; }
};

struct SkippedLayer {
  std::string layer, reason;
  std::size_t count = 0;
  std::string first;
};

struct MergedMatrix {
  const LayerRule* rule = nullptr;
  std::vector<const CheckpointModule*> parts;
};

struct CheckpointLayers {
  std::vector<LayerGroup> groups;  // in the order of the rules
  std::vector<SkippedLayer> skipped;
  std::vector<MergedMatrix> merged;                // NVFP4 of more than one part
  std::vector<const CheckpointModule*> matched;    // by a rule, whatever became of them
  std::vector<const CheckpointModule*> unmatched;  // neither by a rule nor an embedding, norm or convolution
  std::size_t foreign = 0;                         // of other parts of the model (vision)
};

// All pointers are into the arguments.
CheckpointLayers match_layers(const std::vector<CheckpointModule>& modules, const ModelRules& rules,
                              const ModelConfig& config, const EngineRules& engine);

}  // namespace gemvjit::tools
