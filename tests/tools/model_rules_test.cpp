// The rules of tools/model_rules against shapes that were derived by hand from public configurations, and the parts
// they are made of: expressions, names, configurations.
#include "tools/common/model_rules.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "tools/common/bounded_json.h"
#include "tools/common/name_pattern.h"
#include "tools/common/size_expression.h"

namespace gemvjit::tools {
namespace {

using nlohmann::json;

const std::vector<ModelRules>& all_rules() {
  static const std::vector<ModelRules> rules = [] {
    const Result<std::vector<ModelRules>> read = builtin_model_rules();
    EXPECT_TRUE(read) << read.status().message();
    return read ? *read : std::vector<ModelRules>();
  }();
  return rules;
}

EngineRules engine(const std::string& name) {
  const Result<std::vector<EngineRules>> engines = builtin_engines();
  EXPECT_TRUE(engines) << engines.status().message();
  for (const EngineRules& candidate : *engines) {
    if (candidate.name == name) return candidate;
  }
  ADD_FAILURE() << "no engine " << name;
  return {};
}

// The layers of a configuration at a tp, as "layer NxK", or "layer: why not".
std::set<std::string> layers_of(const json& config_json, const EngineRules& by, std::int64_t tp) {
  const ModelConfig config(config_json);
  const ModelRules* rules = find_rules(all_rules(), config.model_types());
  if (rules == nullptr) return {"no rules"};
  std::set<std::string> result;
  for (const LayerRule& layer : rules->layers) {
    if (!rules->is_there(layer, config) || !stored_shapes(*rules, layer, config)) continue;
    const bool merges = by.merges || layer.parts.front().modules.empty() || layer.parts.size() == 1;
    for (std::size_t i = 0; i < (merges ? 1 : layer.parts.size()); ++i) {
      const auto part = merges ? std::optional<std::size_t>() : i;
      const Result<RankShape> shape = rank_shape(*rules, layer, config, by, tp, part);
      const std::string name = part ? layer.parts[i].name : layer.layer;
      result.insert(shape ? name + " " + std::to_string(shape->n) + "x" + std::to_string(shape->k)
                          : name + ": " + shape.status().message());
    }
  }
  return result;
}

// What model_shapes.json leaves out because its configurations need not have it, or has under another name.
struct Known {
  const char* id;
  json more_config;  // from the model's public config.json
};
const std::vector<Known>& known_models() {
  static const std::vector<Known> models{
      {"Llama-3.1-8B", {{"model_type", "llama"}}},
      {"Llama-3.x-70B", {{"model_type", "llama"}}},
      {"Qwen3-0.6B", {{"model_type", "qwen3"}}},
      {"Qwen3-8B", {{"model_type", "qwen3"}}},
      {"Qwen3-32B", {{"model_type", "qwen3"}}},
      {"Qwen3-30B-A3B", {{"model_type", "qwen3_moe"}}},
      {"DeepSeek-V3/R1", {{"model_type", "deepseek_v3"}}},
      {"gpt-oss-20b", {{"model_type", "gpt_oss"}}},
      {"Mistral-Small-3.x-24B", {{"model_type", "mistral"}}},
      {"Gemma-3-4B", {{"model_type", "gemma3_text"}}},
      {"Nemotron-Nano-9B-v2",
       {{"model_type", "nemotron_h"},
        {"mamba_num_heads", 128},
        {"mamba_head_dim", 80},
        {"ssm_state_size", 128},
        {"n_groups", 8}}},
  };
  return models;
}

// Differences that are right: model_shapes.json has only what NVFP4 can be (K a multiple of 16), the rules have all.
struct Difference {
  const char* id;
  const char* tp;
  const char* only_in_rules;
  const char* why;
};
constexpr Difference differences[] = {
    {"gpt-oss-20b", "tp8", "routed_expert.down_proj 2880x360",
     "K = 360 is no multiple of 16, so it is not in the list"},
    {"Nemotron-Nano-9B-v2", "tp8", "mlp.down_proj 4480x1960",
     "K = 1960 is no multiple of 16, so it is not in the list"},
};

TEST(ModelRules, GiveTheShapesOfEveryKnownModelAtEveryTp) {
  std::ifstream file(std::string(GEMVJIT_SOURCE_DIR) + "/tests/tools/fixtures/model_shapes.json");
  const json document = json::parse(file);
  std::size_t compared = 0, explained = 0;
  for (const json& model : document["models"]) {
    const std::string id = model["id"];
    const auto known =
        std::find_if(known_models().begin(), known_models().end(), [&](const Known& k) { return k.id == id; });
    ASSERT_NE(known, known_models().end()) << id << " has no model type here";
    json config = model["config"];
    config.update(known->more_config);
    for (const auto& [tp, layers] : model["layers_by_tp"].items()) {
      std::set<std::string> expected;
      for (const json& layer : layers) {
        std::string name = layer["layer"];
        if (const auto place = name.find("(one expert)"); place != std::string::npos) name.erase(place, 12);
        expected.insert(name + " " + layer["N"].dump() + "x" + layer["K"].dump());
      }
      for (const Difference& difference : differences) {
        if (id != difference.id || tp != difference.tp) continue;
        EXPECT_TRUE(expected.insert(difference.only_in_rules).second) << difference.why << ": no longer needed";
        ++explained;
      }
      EXPECT_EQ(layers_of(config, engine("vllm"), std::stoi(tp.substr(2))), expected) << id << " " << tp;
      ++compared;
    }
  }
  EXPECT_EQ(compared, 44u);
  EXPECT_EQ(explained, std::size(differences));
}

// Negative control: the comparison above sees a changed size.
TEST(ModelRules, AnotherHeadDimensionIsAnotherShape) {
  json config = {{"model_type", "llama"}, {"hidden_size", 4096},       {"intermediate_size", 14336},
                 {"vocab_size", 128256},  {"num_attention_heads", 32}, {"num_key_value_heads", 8}};
  EXPECT_TRUE(layers_of(config, engine("vllm"), 1).contains("attn.qkv_proj 6144x4096"));  // head_dim = hidden / heads
  config["head_dim"] = 64;
  EXPECT_TRUE(layers_of(config, engine("vllm"), 1).contains("attn.qkv_proj 3072x4096"));
  EXPECT_TRUE(layers_of(config, engine("vllm"), 1).contains("attn.o_proj 4096x2048"));
}

TEST(ModelRules, KvHeadsAreReplicatedWhereThereAreFewerThanRanks) {
  const json config = {{"model_type", "llama"},   {"hidden_size", 2048}, {"intermediate_size", 1536},
                       {"head_dim", 64},          {"vocab_size", 32000}, {"num_attention_heads", 24},
                       {"num_key_value_heads", 2}};
  EXPECT_TRUE(layers_of(config, engine("vllm"), 8).contains("attn.qkv_proj 320x2048"));  // 3 + 1 + 1 heads
  EXPECT_TRUE(layers_of(config, engine("vllm"), 3)
                  .contains("attn.qkv_proj: tp 3 is no multiple of kv_heads (2), which are replicated"));
  EXPECT_TRUE(layers_of(config, engine("vllm"), 16).contains("attn.o_proj: tp 16 does not divide heads (24)"));
}

TEST(ModelRules, EnginesDifferInMergingAndVocabularyOnly) {
  const json config = {{"model_type", "llama"},   {"hidden_size", 64},  {"intermediate_size", 128},
                       {"head_dim", 16},          {"vocab_size", 1001}, {"num_attention_heads", 4},
                       {"num_key_value_heads", 2}};
  const auto vllm = layers_of(config, engine("vllm"), 2), sglang = layers_of(config, engine("sglang"), 2),
             trtllm = layers_of(config, engine("trtllm"), 2), none = layers_of(config, engine("none"), 2);
  EXPECT_TRUE(vllm.contains("lm_head 512x64"));    // 1001 padded to 1024
  EXPECT_TRUE(trtllm.contains("lm_head 501x64"));  // to 1002
  EXPECT_TRUE(none.contains("lm_head: tp 2 does not divide the vocabulary of 1001"));
  EXPECT_EQ(vllm, sglang);
  EXPECT_TRUE(vllm.contains("attn.qkv_proj 64x64"));
  for (const char* part : {"attn.q_proj 32x64", "attn.k_proj 16x64", "attn.v_proj 16x64", "mlp.gate_proj 64x64"}) {
    EXPECT_TRUE(none.contains(part)) << part;
    EXPECT_FALSE(vllm.contains(part)) << part;
  }
  EXPECT_TRUE(layers_of(config, engine("none"), 1).contains("lm_head 1001x64"));
}

TEST(ModelRules, LatentAttentionWithoutQueryRank) {  // DeepSeek-V2-Lite: q_lora_rank is null
  const json config = {{"model_type", "deepseek_v2"}, {"hidden_size", 2048},    {"num_attention_heads", 16},
                       {"q_lora_rank", nullptr},      {"kv_lora_rank", 512},    {"qk_nope_head_dim", 128},
                       {"qk_rope_head_dim", 64},      {"v_head_dim", 128},      {"moe_intermediate_size", 1408},
                       {"n_shared_experts", 2},       {"n_routed_experts", 64}, {"vocab_size", 102400},
                       {"intermediate_size", 10944}};
  const auto layers = layers_of(config, engine("vllm"), 2);
  EXPECT_TRUE(layers.contains("attn.q_proj 1536x2048"));
  EXPECT_TRUE(layers.contains("attn.kv_a_proj_with_mqa 576x2048"));
  EXPECT_TRUE(layers.contains("shared_expert.gate_up_proj 2816x2048"));
  for (const std::string& layer : layers) EXPECT_FALSE(layer.starts_with("attn.fused_qkv_a_proj")) << layer;
}

TEST(ModelRules, PhiInBothStorages) {
  json config = {{"hidden_size", 3072},       {"intermediate_size", 8192}, {"vocab_size", 32064},
                 {"num_attention_heads", 32}, {"num_key_value_heads", 32}, {"model_type", "phi3"}};
  const std::set<std::string> phi3{"attn.qkv_proj 4608x3072", "attn.o_proj 3072x1536", "mlp.gate_up_proj 8192x3072",
                                   "mlp.down_proj 3072x4096", "lm_head 16032x3072"};
  EXPECT_EQ(layers_of(config, engine("vllm"), 2), phi3);
  config["model_type"] = "phi";
  const std::set<std::string> phi{"attn.qkv_proj 4608x3072", "attn.o_proj 3072x1536", "mlp.fc1 4096x3072",
                                  "mlp.fc2 3072x4096", "lm_head 16032x3072"};
  EXPECT_EQ(layers_of(config, engine("vllm"), 2), phi);
}

TEST(ModelRules, TheTextPartOfAMultimodalModelCounts) {
  const json text = {{"model_type", "gemma3_text"}, {"hidden_size", 2560}, {"intermediate_size", 10240}};
  const json config = {
      {"model_type", "gemma3"}, {"hidden_size", 1}, {"text_config", text}, {"vision_config", {{"hidden_size", 2}}}};
  // Heads, head_dim and vocabulary are defaults that Gemma's config.json leaves out.
  EXPECT_TRUE(layers_of(config, engine("vllm"), 1).contains("attn.qkv_proj 4096x2560"));
  EXPECT_TRUE(layers_of(config, engine("vllm"), 1).contains("lm_head 262208x2560"));
}

TEST(ModelRules, SiluIsTheModelsActivation) {
  const auto uses_silu = [](json config) {
    const ModelConfig model(std::move(config));
    const ModelRules* rules = find_rules(all_rules(), model.model_types());
    return rules != nullptr && rules->uses_silu(model);
  };
  EXPECT_TRUE(uses_silu({{"model_type", "llama"}}));
  EXPECT_TRUE(uses_silu({{"model_type", "llama"}, {"hidden_act", "silu"}}));
  EXPECT_FALSE(uses_silu({{"model_type", "llama"}, {"hidden_act", "gelu"}}));
  EXPECT_FALSE(uses_silu({{"model_type", "gemma3_text"}}));
  EXPECT_FALSE(uses_silu({{"model_type", "gpt_oss"}, {"hidden_act", "silu"}}));  // its own clamped function
}

// A field of a wrong type must not be replaced by a default, which would be the shape of another model.
TEST(ModelRules, AWrongTypeIsNotADefault) {
  const json good = {{"model_type", "llama"}, {"hidden_size", 4096},       {"intermediate_size", 14336},
                     {"vocab_size", 128256},  {"num_attention_heads", 32}, {"num_key_value_heads", 8}};
  const ModelRules* rules = find_rules(all_rules(), {"llama"});
  ASSERT_NE(rules, nullptr);
  const auto qkv = [&](const json& config) {
    return stored_shapes(*rules, rules->layers.front(), ModelConfig(config));
  };
  ASSERT_TRUE(qkv(good));
  for (const json& wrong : {json("8"), json(-8), json(8.0), json(1e300), json(true), json::array({8}), json::object(),
                            json(std::uint64_t{1} << 63)}) {
    json config = good;
    config["num_key_value_heads"] = wrong;
    const auto result = qkv(config);
    ASSERT_FALSE(result) << wrong;
    EXPECT_NE(result.status().message().find("num_key_value_heads"), std::string::npos) << result.status().message();
  }
  json config = good;
  config["num_key_value_heads"] = nullptr;  // as if it were not there: the number of heads
  ASSERT_TRUE(qkv(config));
  EXPECT_EQ((*qkv(config))[1].n, 4096);
  config["num_attention_heads"] = 0;
  EXPECT_FALSE(qkv(config));
  config = good;
  config["num_attention_heads"] = std::int64_t{1} << 40;
  EXPECT_FALSE(qkv(config));  // hidden / heads is no whole number
  config.erase("hidden_size");
  EXPECT_FALSE(qkv(config));
}

TEST(ModelRules, ATypeThatIsNoTextNamesNoRules) {
  for (const json& type : {json(7), json::array({"llama"}), json(nullptr), json("unheard_of")}) {
    EXPECT_EQ(layers_of({{"model_type", type}}, engine("vllm"), 1), std::set<std::string>{"no rules"});
  }
}

TEST(ModelRules, AMistakeInARuleFileIsNamed) {
  const std::string good =
      R"({"model_types": ["x"], "sources": [], "sizes": {}, "activation": "silu", "layers":
          [{"layer": "a", "modules": ["a"], "n": "1", "k": "2", "shard": "row"}]})";
  EXPECT_TRUE(parse_model_rules("x.json", good));
  const std::pair<const char*, const char*> mistakes[] = {{"\"row\"", "\"rows\""},
                                                          {"\"n\": \"1\"", "\"n\": 1"},
                                                          {"\"modules\"", "\"module\""},
                                                          {"[\"x\"]", "[1]"},
                                                          {"\"k\": \"2\", ", ""}};
  for (const auto& [from, to] : mistakes) {
    std::string text = good;
    text.replace(text.find(from), std::string(from).size(), to);
    const auto result = parse_model_rules("x.json", text);
    ASSERT_FALSE(result) << text;
    EXPECT_NE(result.status().message().find("x.json"), std::string::npos);
  }
}

TEST(SizeExpression, Arithmetic) {
  const NameLookup lookup = [](std::string_view name) -> Result<std::int64_t> {
    if (name == "heads") return std::int64_t{32};
    return Status(StatusCode::not_found, "unknown " + std::string(name));
  };
  const auto value = [&](const char* text) {
    const Result<std::int64_t> result = evaluate_size(text, lookup);
    return result ? *result : -1;
  };
  EXPECT_EQ(value("2 + 3 * heads"), 98);
  EXPECT_EQ(value("(2 + 3) * heads / 4"), 40);
  EXPECT_EQ(value("7 - 7"), 0);
  EXPECT_EQ(value("1099511627776"), largest_size);
  for (const char* bad : {"", "1 +", "(1", "1)", "1 2", "heads heads", "5 / 2", "1 / 0", "1 - 2", "-1", "nobody", "9x",
                          "1099511627777", "99999999999999999999", "1099511627776 * 2", "1099511627776 + 1", "2 ^ 3"}) {
    EXPECT_EQ(value(bad), -1) << bad;
  }
  EXPECT_EQ(value((std::string(1000, '(') + "1" + std::string(1000, ')')).c_str()), -1);
}

TEST(NamePattern, EndsOfModules) {
  EXPECT_EQ(match_module_end("model.layers.3.self_attn.q_proj", "self_attn.q_proj"), "model.layers.3.");
  EXPECT_EQ(match_module_end("self_attn.q_proj", "self_attn.q_proj"), "");
  EXPECT_EQ(match_module_end("l.3.mlp.experts.17.w1", "mlp.experts.#.w1"), "l.3.|17.");
  EXPECT_FALSE(match_module_end("l.3.mlp.experts.x.w1", "mlp.experts.#.w1"));
  EXPECT_FALSE(match_module_end("l.3.cross_self_attn.q_proj", "self_attn.q_proj"));  // whole parts only
  EXPECT_FALSE(match_module_end("q_proj", "self_attn.q_proj"));
}

TEST(NamePattern, Exclusions) {
  const auto excludes = [](const std::string& pattern, const std::string& module) {
    const auto parsed = ExclusionPattern::parse(pattern);
    return parsed && parsed->matches(module);
  };
  EXPECT_TRUE(excludes("lm_head", "lm_head"));
  EXPECT_FALSE(excludes("lm_head", "lm_head2"));
  EXPECT_TRUE(excludes("model.layers.0", "model.layers.0.mlp.up_proj"));
  EXPECT_FALSE(excludes("model.layers.1", "model.layers.10.mlp.up_proj"));
  EXPECT_TRUE(excludes("*.self_attn*", "model.layers.0.self_attn.q_proj"));
  EXPECT_TRUE(excludes("model.layers.?.mlp.gate", "model.layers.4.mlp.gate"));
  EXPECT_FALSE(excludes("model.layers.?.mlp.gate", "model.layers.14.mlp.gate"));
  EXPECT_TRUE(excludes("re:.*mlp\\.gate$", "model.layers.4.mlp.gate"));
  EXPECT_FALSE(excludes("re:.*mlp\\.gate$", "model.layers.4.mlp.gate_proj"));
  EXPECT_TRUE(excludes("re:model\\.layers\\.\\d+\\..*attn.*", "model.layers.44.self_attn.q_proj"));
  EXPECT_FALSE(excludes("re:attn", "model.self_attn"));  // from the beginning, as Python matches
  EXPECT_FALSE(excludes("", "x"));
  // Not understood, so that nothing of them is run.
  for (const char* pattern : {"re:(a)\\1", "re:a{1000}{1000}", "re:(?!x)y", "re:(", "re:\\bx"}) {
    EXPECT_FALSE(ExclusionPattern::parse(pattern)) << pattern;
  }
  EXPECT_FALSE(ExclusionPattern::parse("re:" + std::string(600, 'a')));
}

TEST(ModelJson, IsRefusedWhereItIsNotPlain) {
  EXPECT_TRUE(parse_model_json("f", R"({"a": {"b": [1]}, "b": 2})"));
  // Nemotron-H's config.json has Infinity, as Python writes it.
  const auto python = parse_model_json("f", R"({"limit": [0.0, Infinity, -Infinity, NaN], "s": "NaN \" Infinity"})");
  ASSERT_TRUE(python) << python.status().message();
  EXPECT_EQ((*python)["s"], "NaN \" Infinity");
  for (const char* bad : {"", "[]", "{", "{\"a\": 1, \"a\": 2}", "{\"a\": {\"b\": 1, \"b\": 2}}", "{\"a\": \"\xff\"}",
                          "nul", "{\"a\": Infinit}"}) {
    EXPECT_FALSE(parse_model_json("f", bad)) << bad;
  }
  EXPECT_FALSE(parse_model_json("f", "{\"a\":" + std::string(100000, '[')));
}

TEST(QuantConfig, BothFilesAndStrangeOnes) {
  const json modelopt = json::parse(R"({"quantization": {"quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8",
      "group_size": 16, "exclude_modules": ["lm_head", "model.layers.0*", 7]}})");
  const QuantConfig first = read_quant_config(modelopt, nullptr);
  EXPECT_EQ(first.algorithm, "NVFP4");
  EXPECT_EQ(first.kv_cache_algorithm, "FP8");
  EXPECT_EQ(first.group_size, 16);
  EXPECT_EQ(first.algorithm_for("model.layers.1.mlp.up_proj"), "NVFP4");
  EXPECT_EQ(first.algorithm_for("model.layers.0.mlp.up_proj"), "");
  EXPECT_EQ(first.warnings.size(), 1u);  // 7

  const json tensors = json::parse(R"({"quantization_config": {"quant_method": "compressed-tensors",
      "format": "nvfp4-pack-quantized", "config_groups": {"g": {"weights": {"group_size": 16}}},
      "ignore": ["re:.*lm_head"]}})");
  const QuantConfig second = read_quant_config(nullptr, tensors);
  EXPECT_EQ(second.algorithm, "NVFP4");
  EXPECT_EQ(second.group_size, 16);
  EXPECT_TRUE(second.is_excluded("lm_head"));

  const json mixed = json::parse(R"({"quantization": {"quant_algo": "MIXED_PRECISION",
      "quantized_layers": {"a": {"quant_algo": "FP8"}, "b": {"quant_algo": "NVFP4"}, "c": 1}}})");
  EXPECT_EQ(read_quant_config(mixed, nullptr).algorithm_for("a"), "FP8");
  EXPECT_EQ(read_quant_config(mixed, nullptr).algorithm_for("c"), "");

  for (const char* strange : {R"({"quantization_config": 1})", R"({"quantization_config": {"ignore": "x"}})",
                              R"({"quantization_config": {"quant_algo": [], "group_size": -1}})"}) {
    EXPECT_FALSE(read_quant_config(nullptr, json::parse(strange)).warnings.empty()) << strange;
  }
}

}  // namespace
}  // namespace gemvjit::tools
