// ModelRules: how the linear layers of a type of model follow from its config.json, and how an engine merges and shards
// them. The rules are data, tools/model_rules/*.json (its README.md says what the fields mean), built into the tools.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/status.h"
#include "tools/common/model_config.h"

namespace gemvjit::tools {

enum class Sharding { column, row, replicated, vocabulary };

struct RulePart {
  std::string name;                  // "attn.q_proj": of the layer, where the engine does not merge
  std::vector<std::string> modules;  // how its modules' names end; empty: never stored by itself
  std::string n;                     // rows, an expression
  std::string units;                 // what is dealt out to the ranks (heads); empty: rows
  bool replicated_units = false;     // fewer units than ranks: each rank holds one whole unit (KV heads)
};

struct LayerRule {
  std::string layer;  // "attn.qkv_proj"
  std::string k;      // columns, an expression
  std::string units;  // row sharding: what is dealt out; empty: columns
  Sharding sharding = Sharding::replicated;
  std::vector<RulePart> parts;      // of the rows, one or more
  std::vector<std::string> merged;  // how the module's name ends where a checkpoint stores the parts as one
  std::vector<std::string> tied;    // the module whose weight is used where the layer has none of its own
  bool gated = false;               // gate and up rows: silu_mul if the model's activation is SiLU
  std::string when, unless;         // expressions: the layer is there if `when` is more than 0 and `unless` is not
  std::string note;
};

struct ModelRules {
  std::string file;  // "llama.json"
  std::vector<std::string> model_types;
  std::map<std::string, std::vector<std::string>, std::less<>> sizes;  // name: expressions, the first with a value
  std::vector<std::string> activation_fields;
  std::string activation;            // where none of the fields is there
  std::vector<std::string> foreign;  // parts of a module's name that say it belongs to another part (vision)
  std::vector<LayerRule> layers;

  // The value of an expression in the names of `sizes`, or which field is missing or wrong.
  Result<std::int64_t> evaluate(std::string_view expression, const ModelConfig& config) const;
  bool is_there(const LayerRule& layer, const ModelConfig& config) const;
  bool uses_silu(const ModelConfig& config) const;
};

struct EngineRules {
  std::string name;
  bool merges = false;
  std::int64_t vocabulary_multiple = 1;
  bool vocabulary_multiple_of_tp = false;  // padded to a multiple of the ranks
};

// All that is built in. invalid_argument, with file and place, for one that does not parse: a mistake in the tree.
Result<std::vector<ModelRules>> builtin_model_rules();
Result<ModelRules> parse_model_rules(const std::string& file, std::string_view text);
// nullptr: no rules for these types.
const ModelRules* find_rules(const std::vector<ModelRules>& rules, const std::vector<std::string>& model_types);

Result<std::vector<EngineRules>> builtin_engines();

struct RankShape {
  std::int64_t n = 0, k = 0;
  bool operator==(const RankShape&) const = default;
};

// Rows of each part and columns in the checkpoint (tp 1, nothing padded). Or which field is missing.
Result<std::vector<RankShape>> stored_shapes(const ModelRules& rules, const LayerRule& layer,
                                             const ModelConfig& config);

// One rank's shape of all parts together, or of one. Or the rule that tp breaks, in words.
Result<RankShape> rank_shape(const ModelRules& rules, const LayerRule& layer, const ModelConfig& config,
                             const EngineRules& engine, std::int64_t tp, std::optional<std::size_t> part = {});

}  // namespace gemvjit::tools
