// QuantConfig: what a checkpoint says of its quantization, in hf_quant_config.json (ModelOpt) or in config.json's
// quantization_config (ModelOpt, compressed-tensors, others). What it says is a claim; the tensors decide.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tools/common/name_pattern.h"

namespace gemvjit::tools {

struct QuantConfig {
  std::string source;  // "hf_quant_config.json" or "config.json"; empty: nothing is said
  std::string method;  // "modelopt", "compressed-tensors", "fp8", "mxfp4", ... as in the file
  std::string
      algorithm;  // "NVFP4", "FP8", "MIXED_PRECISION", ... ; of compressed-tensors its format in ModelOpt's words
  std::string kv_cache_algorithm;
  std::int64_t group_size = 0;  // 0: not said
  std::vector<ExclusionPattern> excluded;
  std::map<std::string, std::string> algorithm_of_module;  // ModelOpt's quantized_layers of a mixed checkpoint
  std::vector<std::string> warnings;                       // what was not understood

  bool is_excluded(const std::string& module) const;
  // "NVFP4" or another; empty for what is excluded or not mentioned.
  std::string algorithm_for(const std::string& module) const;
};

// The first of both that says something. Either may be null: absent. Wrong types are left out with a warning.
QuantConfig read_quant_config(const nlohmann::json& hf_quant_config, const nlohmann::json& config);

}  // namespace gemvjit::tools
