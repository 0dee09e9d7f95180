// ModelConfig: the sizes of a model's config.json, believed only as far as their types go.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "tools/common/quant_config.h"

namespace gemvjit::tools {

class ModelConfig {
 public:
  // Of JSON that read_model_json accepted; null: there is no such file.
  explicit ModelConfig(nlohmann::json config, nlohmann::json hf_quant_config = nullptr);

  // The files of a folder; both may be absent. A file that is there and broken is an error.
  static Result<ModelConfig> read(const std::string& folder);

  bool exists() const { return config_.is_object(); }
  // The types to look for rules by, best first: that of the text part of a multimodal model, then the whole's.
  const std::vector<std::string>& model_types() const { return model_types_; }
  // A whole number in 0..2^40. not_found: absent or null; invalid_argument: of another type. The text part
  // (text_config, llm_config, language_config) is asked first.
  Result<std::int64_t> size(std::string_view field) const;
  // A text; empty if there is none.
  std::string text(std::string_view field) const;
  bool flag(std::string_view field, bool otherwise) const;
  const QuantConfig& quantization() const { return quantization_; }

 private:
  const nlohmann::json* find(std::string_view field) const;
  std::vector<const nlohmann::json*> scopes() const;

  nlohmann::json config_;
  std::vector<std::string> model_types_;
  QuantConfig quantization_;
};

}  // namespace gemvjit::tools
