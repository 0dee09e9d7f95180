// gemvjit-warmup --model with --tp, --engine and --scan, on small made-up checkpoints. Nothing here compiles.
#include <cstring>
#include <limits>
#include <map>
#include <set>

#include "tests/tools/cli_fixture.h"
#include "tests/tools/model_files.h"

namespace gemvjit::test {
namespace {

using nlohmann::json;

class ModelOfRules : public CliTest {
 protected:
  std::string model_ = folder_.path("model");
  json config_ = {{"model_type", "llama"},    {"hidden_size", 64},        {"intermediate_size", 128},
                  {"num_attention_heads", 4}, {"num_key_value_heads", 2}, {"vocab_size", 1000}};
  json hf_quant_config_ = {
      {"quantization", {{"quant_algo", "NVFP4"}, {"group_size", 16}, {"exclude_modules", {"lm_head"}}}}};
  // Bytes of a tensor; all else is 0x38 in scales (1.0) and 1.0f in global scales.
  std::map<std::string, std::string> bytes_;

  static void append(std::vector<ModelTensor>& to, const std::vector<ModelTensor>& more) {
    to.insert(to.end(), more.begin(), more.end());
  }
  static std::vector<ModelTensor> llama() {
    std::vector<ModelTensor> tensors{{"model.embed_tokens.weight", "BF16", {1000, 64}, 2},
                                     {"model.layers.0.input_layernorm.weight", "BF16", {64}, 2}};
    const std::string layer = "model.layers.0.";
    append(tensors, nvfp4_layer(layer + "self_attn.q_proj", 64, 64));
    append(tensors, nvfp4_layer(layer + "self_attn.k_proj", 32, 64));
    append(tensors, nvfp4_layer(layer + "self_attn.v_proj", 32, 64));
    append(tensors, nvfp4_layer(layer + "self_attn.o_proj", 64, 64));
    append(tensors, nvfp4_layer(layer + "mlp.gate_proj", 128, 64));
    append(tensors, nvfp4_layer(layer + "mlp.up_proj", 128, 64));
    append(tensors, nvfp4_layer(layer + "mlp.down_proj", 64, 128));
    return tensors;
  }
  static std::string float_bytes(float value) {
    std::string bytes(4, '\0');
    std::memcpy(bytes.data(), &value, 4);
    return bytes;
  }

  void write_model(const std::vector<ModelTensor>& tensors) const {
    std::uint64_t data_bytes = 0;
    const json header = safetensors_header(tensors, data_bytes);
    std::string file = safetensors_bytes(header.dump(), data_bytes);
    const std::size_t data = file.size() - data_bytes;
    for (const ModelTensor& tensor : tensors) {
      const std::size_t begin = data + header[tensor.name]["data_offsets"][0].get<std::size_t>();
      const std::size_t end = data + header[tensor.name]["data_offsets"][1].get<std::size_t>();
      if (const auto given = bytes_.find(tensor.name); given != bytes_.end()) {
        file.replace(begin, given->second.size(), given->second);
      } else if (tensor.dtype == "F32" && end - begin == 4) {
        file.replace(begin, 4, float_bytes(1));
      } else if (tensor.dtype == "F8_E4M3") {
        file.replace(begin, end - begin, std::string(end - begin, '\x38'));
      }
    }
    folder_.write("model/model.safetensors", file);
    if (!config_.is_null()) folder_.write("model/config.json", config_.dump());
    if (!hf_quant_config_.is_null()) folder_.write("model/hf_quant_config.json", hf_quant_config_.dump());
  }
  ProgramOutput plan(std::vector<std::string> more) const {
    std::vector<std::string> arguments{"--model", model_, "--arch", "sm_90a", "--dry-run", "--json", "--nt", "1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return warmup(arguments);
  }
  static json model_of(const ProgramOutput& output) {
    EXPECT_EQ(output.exit_code, 0) << output.err;
    const json all = document(output);
    return all.contains("models") && all["models"].size() == 1 ? all["models"][0] : json();
  }
  // "attn.qkv_proj tp2 NVFP4 64x64 silu" of every layer that is served.
  static std::set<std::string> served(const json& model) {
    std::set<std::string> result;
    for (const json& layer : model["layers"]) {
      if (layer["why_not"] != "") continue;
      result.insert(layer["layer"].get<std::string>() + " tp" + layer["tp"].dump() + " " +
                    layer["type"].get<std::string>() + " " + layer["n"].dump() + "x" + layer["k"].dump() +
                    (layer["silu_mul"] ? " silu" : ""));
    }
    return result;
  }
};

TEST_F(ModelOfRules, AnEnginesShapesFlowIntoTheKernels) {
  write_model(llama());
  const ProgramOutput output = plan({"--engine", "vllm", "--tp", "1,4"});
  const json model = model_of(output);
  const std::set<std::string> expected{
      "attn.qkv_proj tp1 NVFP4 128x64",       "attn.o_proj tp1 NVFP4 64x64",   "mlp.gate_up_proj tp1 NVFP4 256x64 silu",
      "mlp.down_proj tp1 NVFP4 64x128",       "lm_head tp1 BF16 1024x64",      "attn.qkv_proj tp4 NVFP4 48x64",
      "attn.o_proj tp4 NVFP4 64x16",          "mlp.down_proj tp4 NVFP4 64x32", "lm_head tp4 BF16 256x64",
      "mlp.gate_up_proj tp4 NVFP4 64x64 silu"};
  EXPECT_EQ(served(model), expected);
  EXPECT_EQ(model["rules"], "llama.json");
  std::set<std::string> kernels;
  const json results = document(output)["results"];
  for (const json& result : results) {
    kernels.insert(result["family"].get<std::string>() + " " + result["n"].dump() + "x" + result["k"].dump());
  }
  EXPECT_TRUE(kernels.contains("nvfp4_gemv 48x64"));
  EXPECT_TRUE(kernels.contains("dequantize_rows 256x64"));
  EXPECT_TRUE(kernels.contains("bf16_gemv 1024x64"));
  EXPECT_FALSE(kernels.contains("nvfp4_gemv 32x64"));  // k_proj alone is no kernel of vLLM
  for (const json& layer : model["layers"]) {
    if (layer["layer"] == "lm_head") {
      EXPECT_EQ(layer["tied"], true);
    }
  }
}

TEST_F(ModelOfRules, EngineNoneAtOneRankIsTheTensorsAsTheyAre) {
  write_model(llama());
  const json model = model_of(plan({"--engine", "none", "--tp", "1"}));
  EXPECT_EQ(model["rules"], nullptr);
  EXPECT_EQ(document(plan({}))["results"], document(plan({"--engine", "none", "--tp", "1"}))["results"]);
  // With more ranks the rules shard, but nothing is merged, padded or fused.
  const std::set<std::string> two = served(model_of(plan({"--tp", "2"})));
  EXPECT_TRUE(two.contains("attn.q_proj tp2 NVFP4 32x64"));
  EXPECT_TRUE(two.contains("mlp.gate_proj tp2 NVFP4 64x64"));
  for (const std::string& layer : two) EXPECT_FALSE(layer.ends_with("silu")) << layer;
}

TEST_F(ModelOfRules, ATpThatDoesNotDivideIsSaidPerLayer) {
  write_model(llama());
  const ProgramOutput output = plan({"--engine", "vllm", "--tp", "8,3"});
  EXPECT_TRUE(contains(output.err, "not served: attn.qkv_proj at tp 8: tp 8 does not divide heads (4)")) << output.err;
  EXPECT_TRUE(contains(output.err, "not served: mlp.down_proj at tp 3: tp 3 does not divide its 128 columns"));
  EXPECT_TRUE(served(model_of(output)).contains("mlp.down_proj tp8 NVFP4 64x16"));
}

TEST_F(ModelOfRules, AShardThatNoKernelServesIsNamedWithTheRule) {
  write_model(llama());
  const ProgramOutput output = plan({"--engine", "vllm", "--tp", "16"});
  EXPECT_TRUE(contains(output.err, "not served: mlp.down_proj at tp 16: ")) << output.err;  // K = 8
  EXPECT_TRUE(contains(output.err, "multiple of 16")) << output.err;
}

TEST_F(ModelOfRules, AnUnknownTypeFallsBackToTheHeadersWithAWarning) {
  config_["model_type"] = "never\x1bheard";
  write_model(llama());
  ProgramOutput output = plan({"--engine", "vllm", "--tp", "2"});
  EXPECT_TRUE(contains(output.err, "warning: ")) << output.err;
  EXPECT_TRUE(contains(output.err, "no rules for model type never\\x1bheard")) << output.err;
  EXPECT_EQ(model_of(output)["rules"], nullptr);
  EXPECT_EQ(document(output)["results"], document(plan({}))["results"]);
  std::filesystem::remove(model_ + "/config.json");
  output = plan({"--engine", "vllm"});
  EXPECT_EQ(output.exit_code, 0) << output.err;
  EXPECT_TRUE(contains(output.err, "has no config.json")) << output.err;
}

TEST_F(ModelOfRules, ATensorThatIsNotWhatItsRuleSaysIsNeverGuessedAt) {
  config_["head_dim"] = 32;  // q would be 128 rows
  write_model(llama());
  const ProgramOutput output = plan({"--engine", "vllm"});
  EXPECT_TRUE(contains(output.err, "its weight is [64, 64], but by llama.json and config.json it would be [128, 64]"))
      << output.err;
  for (const std::string& layer : served(model_of(output))) EXPECT_FALSE(layer.starts_with("attn.")) << layer;
}

TEST_F(ModelOfRules, PartsOfDifferentFormatsAreNotMerged) {
  std::vector<ModelTensor> tensors = llama();
  std::erase_if(tensors, [](const ModelTensor& tensor) { return contains(tensor.name, "v_proj"); });
  tensors.push_back({"model.layers.0.self_attn.v_proj.weight", "BF16", {32, 64}, 2});
  write_model(tensors);
  const ProgramOutput output = plan({"--engine", "sglang"});
  EXPECT_TRUE(contains(output.err, "different formats")) << output.err;
  EXPECT_TRUE(contains(output.err, "does not exclude model.layers.0.self_attn.v_proj")) << output.err;
  const std::set<std::string> layers = served(model_of(output));
  EXPECT_TRUE(layers.contains("attn.q_proj tp1 NVFP4 64x64"));
  EXPECT_TRUE(layers.contains("attn.v_proj tp1 BF16 32x64"));
}

TEST_F(ModelOfRules, ExpertsRouterAndOtherPartsOfTheModel) {
  config_ = {{"model_type", "qwen3_moe"}, {"hidden_size", 64},        {"moe_intermediate_size", 32}, {"num_experts", 8},
             {"vocab_size", 1024},        {"num_attention_heads", 4}, {"num_key_value_heads", 2}};
  hf_quant_config_ = nullptr;
  std::vector<ModelTensor> tensors{{"lm_head.weight", "BF16", {1024, 64}, 2},
                                   {"model.layers.0.mlp.gate.weight", "BF16", {8, 64}, 2},
                                   {"model.layers.0.strange.weight", "BF16", {64, 64}, 2}};
  for (const char* expert : {"0", "1"}) {
    const std::string module = std::string("model.layers.0.mlp.experts.") + expert;
    append(tensors, nvfp4_layer(module + ".gate_proj", 32, 64));
    append(tensors, nvfp4_layer(module + ".up_proj", 32, 64));
    append(tensors, nvfp4_layer(module + ".down_proj", 64, 32));
  }
  write_model(tensors);
  const ProgramOutput output = plan({"--engine", "trtllm", "--tp", "2"});
  const std::set<std::string> expected{"routed_expert.gate_up_proj tp2 NVFP4 32x64 silu",
                                       "routed_expert.down_proj tp2 NVFP4 64x16", "moe.router tp2 BF16 8x64",
                                       "lm_head tp2 BF16 512x64"};
  const json model = model_of(output);
  EXPECT_EQ(served(model), expected);
  EXPECT_TRUE(contains(output.err, "skipped model.layers.0.strange.weight")) << output.err;
  for (const json& layer : model["layers"]) {
    if (layer["layer"] == "routed_expert.down_proj") {
      EXPECT_EQ(layer["count"], 2);
    }
  }
}

TEST_F(ModelOfRules, TheVisionPartIsLeftOut) {
  std::vector<ModelTensor> tensors = llama();
  tensors.push_back({"vision_tower.encoder.layers.0.self_attn.q_proj.weight", "BF16", {48, 48}, 2});
  write_model(tensors);
  const ProgramOutput output = plan({"--engine", "vllm"});
  EXPECT_TRUE(contains(output.err, "skipped 1 matrices of other parts")) << output.err;
  EXPECT_TRUE(served(model_of(output)).contains("attn.qkv_proj tp1 NVFP4 128x64"));
}

// B136: an FP8 export that calls itself NVFP4.
TEST_F(ModelOfRules, Fp8ThatCallsItselfNvfp4IsRefused) {
  std::vector<ModelTensor> tensors = llama();
  std::erase_if(tensors, [](const ModelTensor& tensor) { return contains(tensor.name, "down_proj"); });
  tensors.push_back({"model.layers.0.mlp.down_proj.weight", "F8_E4M3", {64, 128}, 1});
  write_model(tensors);
  for (const char* engine : {"vllm", "none"}) {
    const ProgramOutput output = plan({"--engine", engine});
    EXPECT_EQ(output.exit_code, 2) << output.err;
    const std::string message = error_message(output);
    EXPECT_TRUE(contains(message, "'model.layers.0.mlp.down_proj.weight'")) << message;
    EXPECT_TRUE(contains(message, "expected U8 [64, 128/2]")) << message;
    EXPECT_TRUE(contains(message, "found F8_E4M3 [64, 128]")) << message;
  }
  // Not where the checkpoint says that this one is not NVFP4.
  hf_quant_config_["quantization"]["exclude_modules"] = {"*down_proj"};
  write_model(tensors);
  const ProgramOutput output = plan({"--engine", "vllm"});
  EXPECT_EQ(output.exit_code, 0) << output.err;
  EXPECT_TRUE(contains(output.err, "skipped mlp.down_proj (model.layers.0.mlp.down_proj): FP8 weights are not served"));
}

// B119, B122: which convention a checkpoint's global scales follow.
TEST_F(ModelOfRules, TheConventionOfTheGlobalScaleIsTold) {
  write_model(llama());
  EXPECT_EQ(model_of(plan({"--engine", "vllm"}))["quantization"]["global_scale"], "multiplier");
  hf_quant_config_ = nullptr;
  std::filesystem::remove(model_ + "/hf_quant_config.json");
  config_["quantization_config"] = {
      {"quant_method", "compressed-tensors"}, {"format", "nvfp4-pack-quantized"}, {"ignore", {"re:.*lm_head"}}};
  std::vector<ModelTensor> tensors;
  for (ModelTensor tensor : llama()) {
    if (tensor.dtype == "U8") tensor.name += "_packed";
    if (tensor.name.ends_with("weight_scale_2")) {
      tensor.name.replace(tensor.name.size() - 14, 14, "weight_global_scale");
      tensor.shape = {1};
    }
    tensors.push_back(tensor);
  }
  write_model(tensors);
  const ProgramOutput output = plan({"--engine", "vllm"});
  const json model = model_of(output);
  EXPECT_EQ(model["quantization"]["global_scale"], "reciprocal");
  EXPECT_EQ(model["quantization"]["algorithm"], "NVFP4");
  EXPECT_EQ(model["quantization"]["excluded"], json::array({"re:.*lm_head"}));
  EXPECT_TRUE(served(model).contains("attn.qkv_proj tp1 NVFP4 128x64"));
  EXPECT_TRUE(contains(output.err, "the engine has to pass 1/scale")) << output.err;
}

// B121: parts of a merged matrix with different global scales.
TEST_F(ModelOfRules, UnequalGlobalScalesOfAMergedMatrixAreTold) {
  write_model(llama());
  EXPECT_TRUE(model_of(plan({"--engine", "vllm"}))["unequal_global_scales"].empty());  // all are 1
  bytes_["model.layers.0.self_attn.q_proj.weight_scale_2"] = float_bytes(0.5f);
  bytes_["model.layers.0.mlp.up_proj.weight_scale_2"] = float_bytes(0.f);
  write_model(llama());
  const ProgramOutput output = plan({"--engine", "vllm"});
  const json unequal = model_of(output)["unequal_global_scales"];
  ASSERT_EQ(unequal.size(), 1u) << output.err;
  EXPECT_EQ(unequal[0]["layer"], "attn.qkv_proj");
  EXPECT_EQ(unequal[0]["ratio"], 2.0);
  EXPECT_TRUE(contains(output.err, "NVFP4 matrices have a global scale that is 0, negative or no number"))
      << output.err;
}

// Also of weights that nothing merges, and where no rules are asked for.
TEST_F(ModelOfRules, AGlobalScaleOfNoUseIsToldOfAnyWeightWithAnyEngine) {
  write_model(llama());
  EXPECT_TRUE(model_of(plan({}))["unsound_global_scales"].empty());
  const std::string module = "model.layers.0.mlp.down_proj";  // by itself in every engine
  for (const float scale :
       {0.f, -1.f, std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    bytes_[module + ".weight_scale_2"] = float_bytes(scale);
    write_model(llama());
    for (const char* engine : {"none", "vllm"}) {
      const ProgramOutput output = plan({"--engine", engine});
      EXPECT_EQ(model_of(output)["unsound_global_scales"], json::array({module})) << engine << scale;
      EXPECT_TRUE(contains(output.err, "(first: " + module + ")")) << output.err;
    }
  }
}

// B124: E4M3 NaN among the scales.
TEST_F(ModelOfRules, ScanFindsNanScales) {
  const std::string scale = "model.layers.0.mlp.down_proj.weight_scale";  // [64, 8]
  write_model(llama());
  EXPECT_EQ(model_of(plan({"--scan"}))["scan"]["nan"], 0);
  std::string bytes(64 * 8, '\x38');
  bytes[8 * 5 + 3] = '\x7f';
  bytes[8 * 9] = '\xff';
  bytes[8 * 10] = '\x7e';  // the largest number
  bytes_[scale] = bytes;
  write_model(llama());
  EXPECT_FALSE(model_of(plan({})).contains("scan"));
  const ProgramOutput output = plan({"--scan", "--engine", "vllm"});
  const json scan = model_of(output)["scan"];
  EXPECT_EQ(scan["nan"], 2);
  ASSERT_EQ(scan["with_nan"].size(), 1u);
  const json expected = {{"tensor", scale}, {"nan", 2}, {"row", 5}, {"column", 3}};
  EXPECT_EQ(scan["with_nan"][0], expected);
  EXPECT_TRUE(contains(output.err, "2 of 512 scale bytes are NaN, the first at row 5, column 3")) << output.err;
}

TEST_F(ModelOfRules, AStrangersConfigIsRefusedOrIgnoredButNeverBelieved) {
  write_model(llama());
  for (const std::string& text : {std::string("{"), std::string("[]"), "{\"a\":" + std::string(100000, '['),
                                  std::string("{\"model_type\": \"llama\", \"model_type\": \"phi\"}")}) {
    folder_.write("model/config.json", text);
    EXPECT_EQ(plan({"--engine", "vllm"}).exit_code, 2) << text.substr(0, 60);
    EXPECT_EQ(plan({}).exit_code, 0) << text.substr(0, 60);  // only tensors are asked for
  }
  for (const char* text : {R"({"model_type": "llama"})", R"({"model_type": ["llama"]})", R"({"model_type": "llama",
       "hidden_size": "64", "num_attention_heads": -4, "vocab_size": 1e300, "text_config": 3})"}) {
    folder_.write("model/config.json", text);
    const ProgramOutput output = plan({"--engine", "vllm"});
    EXPECT_TRUE(output.exit_code == 4 || output.exit_code == 0) << output.exit_code << output.err;
    EXPECT_TRUE(contains(output.err, "config.json")) << output.err;
  }
}

TEST_F(ModelOfRules, OptionsThatMeanNothingAreRefused) {
  write_model(llama());
  for (const std::vector<std::string>& wrong : std::vector<std::vector<std::string>>{
           {"--tp", "0"}, {"--tp", "1,,2"}, {"--tp", "-1"}, {"--tp", "two"}, {"--tp", "1025"}, {"--engine", "other"}}) {
    EXPECT_EQ(plan(wrong).exit_code, 2) << wrong[1];
  }
  EXPECT_EQ(warmup({"--shape", "64x64", "--arch", "sm_90a", "--dry-run", "--tp", "2"}).exit_code, 2);
}

}  // namespace
}  // namespace gemvjit::test
