// Names of modules against patterns of two kinds.
//
// Rules (tools/model_rules) name the end of a module: "mlp.experts.#.gate_proj" fits
// "model.layers.3.mlp.experts.17.gate_proj"; # is a decimal part. Lists of excluded modules in a checkpoint use * and ?
// (ModelOpt), whole names, classes ("Linear"), or a regular expression after "re:" (compressed-tensors).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace gemvjit::tools {

// What the parts of one merged matrix share: the module's name without the words of the pattern, numbers kept
// ("model.layers.3.|17."). Nothing if the module does not end as the pattern says.
std::optional<std::string> match_module_end(std::string_view module, std::string_view pattern);

// Whether `name` fits a text with * (any number of characters, dots too) and ? (one). Time is the product of both
// lengths at worst.
bool matches_wildcards(std::string_view name, std::string_view pattern);

// One line of a list of excluded modules. A plain name stands for the module and all below it.
class ExclusionPattern {
 public:
  // Nothing if the text is not understood: a regular expression with back references, counts, look-around, or of more
  // than 512 bytes, which could take memory or time without bound.
  static std::optional<ExclusionPattern> parse(std::string_view text);

  bool matches(const std::string& module) const;
  const std::string& text() const { return text_; }

 private:
  struct Expression;
  std::string text_;
  std::shared_ptr<const Expression> expression_;  // of "re:"
};

}  // namespace gemvjit::tools
