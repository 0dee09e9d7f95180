#include "tools/common/linear_layers.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/tools/model_files.h"

namespace gemvjit::tools {
namespace {

using test::ModelTensor;

std::string any_shape(WeightType, std::int64_t, std::int64_t) { return {}; }

ModelLayers classify(const std::vector<ModelTensor>& model, const ShapeCheck& check = any_shape) {
  std::vector<Tensor> tensors;
  for (const ModelTensor& tensor : model) {
    tensors.push_back({.name = tensor.name, .dtype = tensor.dtype, .shape = tensor.shape, .file = "model"});
  }
  std::sort(tensors.begin(), tensors.end(), [](const Tensor& a, const Tensor& b) { return a.name < b.name; });
  return find_linear_layers(tensors, check);
}

ModelTensor bf16(const std::string& name, std::vector<std::int64_t> shape) {
  return {name, "BF16", std::move(shape), 2};
}

// The reason for the one tensor that is skipped.
std::string only_reason(const std::vector<ModelTensor>& model) {
  const ModelLayers layers = classify(model);
  EXPECT_TRUE(layers.layers.empty());
  EXPECT_EQ(layers.skipped.size(), 1u);
  return layers.skipped.empty() ? "" : layers.skipped.front().reason;
}

TEST(LinearLayers, FindsBothTypesInASmallModel) {
  const ModelLayers layers = classify(test::small_model());
  ASSERT_EQ(layers.layers.size(), 2u);
  EXPECT_EQ(layers.layers[0], (LinearLayer{"layer.0.up.weight", 128, 64, WeightType::nvfp4}));
  EXPECT_EQ(layers.layers[1], (LinearLayer{"lm_head.weight", 96, 64, WeightType::bf16}));
  ASSERT_EQ(layers.skipped.size(), 3u);  // the scales belong to their layer
  EXPECT_EQ(layers.skipped[0].name, "embeddings.LayerNorm.weight");
  EXPECT_TRUE(layers.skipped[0].minor);
  EXPECT_EQ(layers.skipped[1].name, "embeddings.word_embeddings.weight");
  EXPECT_FALSE(layers.skipped[1].minor);
  EXPECT_EQ(layers.skipped[1].shape, "[512, 64]");
  EXPECT_NE(layers.skipped[1].reason.find("embedding"), std::string::npos);
  EXPECT_EQ(layers.skipped[2].name, "layer.0.up.bias");
}

TEST(LinearLayers, EmbeddingsByTheirNames) {
  for (const char* name : {"model.embed_tokens.weight", "transformer.wte.weight", "transformer.wpe.weight",
                           "shared.weight", "embeddings.word_embeddings.weight",
                           "embeddings.position_embeddings.weight", "embeddings.token_type_embeddings.weight",
                           "model.tok_embeddings.weight", "gpt_neox.embed_in.weight", "embeddings.position.weight"}) {
    EXPECT_NE(only_reason({bf16(name, {512, 64})}).find("embedding"), std::string::npos) << name;
  }
}

TEST(LinearLayers, LinearLayersThatSoundLikeEmbeddings) {
  for (const char* name : {"lm_head.weight", "embed_out.weight", "encoder.embedding_hidden_mapping_in.weight",
                           "time_embedding.linear_1.weight", "model.embed_proj.weight", "pooler.dense.weight",
                           "model.layers.0.self_attn.q_proj.weight", "weight"}) {
    EXPECT_EQ(classify({bf16(name, {512, 64})}).layers.size(), 1u) << name;
  }
}

TEST(LinearLayers, CastableTypesCountAsBf16) {
  for (const char* dtype : {"BF16", "F16", "F32"}) {
    const ModelLayers layers = classify({{"fc.weight", dtype, {64, 32}, 2}});
    ASSERT_EQ(layers.layers.size(), 1u) << dtype;
    EXPECT_EQ(layers.layers[0].type, WeightType::bf16);
  }
}

TEST(LinearLayers, Nvfp4NeedsItsScales) {
  const auto with = [](std::size_t index, const char* dtype, std::vector<std::int64_t> shape) {
    auto tensors = test::nvfp4_layer("fc", 64, 32);
    tensors[index].dtype = dtype;
    tensors[index].shape = std::move(shape);
    return tensors;
  };
  EXPECT_EQ(classify(test::nvfp4_layer("fc", 64, 32)).layers.size(), 1u);
  EXPECT_EQ(classify(with(2, "F32", {1})).layers.size(), 1u);
  EXPECT_EQ(classify(with(2, "BF16", {1})).layers.size(), 1u);
  EXPECT_NE(only_reason(with(1, "F32", {64, 2})).find("weight_scale is F32"), std::string::npos);
  EXPECT_NE(only_reason(with(1, "F8_E4M3", {64, 1})).find("block size 16"), std::string::npos);
  EXPECT_NE(only_reason(with(1, "F8_E4M3", {1, 64, 2})).find("block size 16"), std::string::npos);
  EXPECT_NE(only_reason(with(2, "F32", {3})).find("one number"), std::string::npos);
  // K = 40 has no whole number of blocks.
  EXPECT_NE(only_reason(with(0, "U8", {64, 20})).find("block size 16"), std::string::npos);

  auto tensors = test::nvfp4_layer("fc", 64, 32);
  tensors.pop_back();
  EXPECT_NE(only_reason(tensors).find("weight_scale_2"), std::string::npos);
  tensors.pop_back();
  EXPECT_NE(only_reason(tensors).find("without a weight_scale"), std::string::npos);
}

TEST(LinearLayers, TheInputScaleMayBeThereOrNot) {
  auto tensors = test::nvfp4_layer("fc", 64, 32);
  tensors.push_back({"fc.input_scale", "F32", {}, 4});
  const ModelLayers layers = classify(tensors);
  EXPECT_EQ(layers.layers.size(), 1u);
  EXPECT_TRUE(layers.skipped.empty());
}

TEST(LinearLayers, OtherThingsAreSkippedWithAReason) {
  EXPECT_NE(only_reason({{"fc.weight", "F8_E4M3", {64, 32}, 1}}).find("FP8"), std::string::npos);
  EXPECT_NE(only_reason({{"fc.weight", "F64", {64, 32}, 8}}).find("F64"), std::string::npos);
  EXPECT_NE(only_reason({bf16("conv.weight", {64, 3, 7, 7})}).find("4-D"), std::string::npos);
  EXPECT_NE(only_reason({bf16("fc.bias", {64})}).find("1-D"), std::string::npos);
  EXPECT_NE(only_reason({bf16("norm.weight", {64, 32})}).find("norm"), std::string::npos);
  EXPECT_NE(only_reason({{"fc.weight_packed", "U8", {64, 16}, 1}}).find("compressed-tensors"), std::string::npos);
  EXPECT_NE(only_reason({{"fc.weight_scale", "F8_E4M3", {64, 2}, 1}}).find("2-D"), std::string::npos);
  EXPECT_NE(only_reason({{"fc.qweight", "I32", {64, 32}, 4}}).find(".weight"), std::string::npos);
  EXPECT_NE(only_reason({bf16("fc.lightweight", {64, 32})}).find(".weight"), std::string::npos);
}

TEST(LinearLayers, ShapesAreTheCallersToJudge) {
  const ModelLayers layers = classify({bf16("a.weight", {12, 64}), bf16("b.weight", {16, 64})},
                                      [](WeightType type, std::int64_t n, std::int64_t k) -> std::string {
                                        EXPECT_EQ(type, WeightType::bf16);
                                        EXPECT_EQ(k, 64);
                                        return n % 8 == 0 ? "" : "N must be a multiple of 8";
                                      });
  ASSERT_EQ(layers.layers.size(), 1u);
  EXPECT_EQ(layers.layers[0].name, "b.weight");
  ASSERT_EQ(layers.skipped.size(), 1u);
  EXPECT_EQ(layers.skipped[0].reason, "N must be a multiple of 8");
}

}  // namespace
}  // namespace gemvjit::tools
