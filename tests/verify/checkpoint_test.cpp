#include "tools/gemvjit_verify/checkpoint.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>

#include "tests/support/temp_dir.h"
#include "tools/verification/number_formats.h"

namespace gemvjit {
namespace {

using tools::Checkpoint;
using tools::LayerWeights;
using tools::LinearLayer;
using tools::WeightType;

// Writes one safetensors file, tensor by tensor.
class Writer {
 public:
  void add(const std::string& name, const std::string& dtype, std::vector<std::int64_t> shape,
           const std::string& bytes) {
    header_[name] = {{"dtype", dtype}, {"shape", shape}, {"data_offsets", {data_.size(), data_.size() + bytes.size()}}};
    data_ += bytes;
  }
  std::string content() const {
    const std::string header = header_.dump();
    const std::uint64_t size = header.size();
    std::string out(8, '\0');
    std::memcpy(out.data(), &size, 8);
    return out + header + data_;
  }

 private:
  nlohmann::json header_ = nlohmann::json::object();
  std::string data_;
};

template <typename T>
std::string raw(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

class CheckpointTest : public testing::Test {
 protected:
  CheckpointTest() {
    gemvjit_options options;
    (void)gemvjit_options_init(&options);
    options.device = GEMVJIT_DEVICE_NONE;
    options.cache_dir = "";
    EXPECT_EQ(gemvjit_create(&options, &context_), GEMVJIT_OK) << gemvjit_last_error();
  }
  ~CheckpointTest() override { (void)gemvjit_destroy(context_); }

  LayerWeights only_layer(const Writer& writer) {
    dir_.write("model.safetensors", writer.content());
    auto checkpoint = Checkpoint::open(dir_.path(), context_);
    EXPECT_TRUE(checkpoint) << checkpoint.status().text();
    if (!checkpoint) return {};
    EXPECT_EQ(checkpoint->layers().size(), 1u);
    auto weights = checkpoint->load(checkpoint->layers().at(0));
    EXPECT_TRUE(weights) << weights.status().text();
    return weights ? std::move(weights).value() : LayerWeights{};
  }

  test::TempDir dir_;
  gemvjit_context* context_ = nullptr;
};

TEST_F(CheckpointTest, Nvfp4TensorsAsTheyAreInTheFile) {
  std::string codes(16 * 32 / 2, '\0'), scales(16 * 2, '\0');
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<char>(i * 7);
  for (std::size_t i = 0; i < scales.size(); ++i) scales[i] = static_cast<char>(i + 1);
  Writer writer;
  writer.add("a.dense.input_scale", "F32", {}, raw(std::vector<float>{3}));
  writer.add("a.dense.weight", "U8", {16, 16}, codes);
  writer.add("a.dense.weight_scale", "F8_E4M3", {16, 2}, scales);
  writer.add("a.dense.weight_scale_2", "F32", {}, raw(std::vector<float>{0.0123f}));
  const LayerWeights weights = only_layer(writer);
  EXPECT_EQ(weights.layer, (LinearLayer{"a.dense.weight", 16, 32, WeightType::nvfp4}));
  EXPECT_EQ(std::string(weights.weight.begin(), weights.weight.end()), codes);
  EXPECT_EQ(std::string(weights.row_scales.begin(), weights.row_scales.end()), scales);
  EXPECT_EQ(weights.global_scale, 0.0123f);
}

std::vector<double> values_of(const LayerWeights& weights) {
  std::vector<double> values(weights.weight.size() / 2);
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::uint16_t bits;
    std::memcpy(&bits, weights.weight.data() + 2 * i, 2);
    values[i] = reference::bf16_to_float(bits);
  }
  return values;
}

TEST_F(CheckpointTest, F32IsRoundedToBf16) {
  std::vector<float> values(8 * 8);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 0.1f * static_cast<float>(i) - 2;
  Writer writer;
  writer.add("fc.weight", "F32", {8, 8}, raw(values));
  const std::vector<double> cast = values_of(only_layer(writer));
  ASSERT_EQ(cast.size(), values.size());
  for (std::size_t i = 0; i < values.size(); ++i) EXPECT_EQ(cast[i], reference::round_to_bf16(values[i])) << i;
}

TEST_F(CheckpointTest, F16IsRoundedToBf16) {
  // 1, -2, the largest, the smallest subnormal, 1 + 2^-10 (rounds to 1), 0.333...
  std::vector<std::uint16_t> values(8 * 8, 0x3C00);
  const std::vector<std::uint16_t> first = {0x3C00, 0xC000, 0x7BFF, 0x0001, 0x3C01, 0x3555};
  std::copy(first.begin(), first.end(), values.begin());
  Writer writer;
  writer.add("fc.weight", "F16", {8, 8}, raw(values));
  const std::vector<double> cast = values_of(only_layer(writer));
  ASSERT_EQ(cast.size(), values.size());
  EXPECT_EQ(cast[0], 1);
  EXPECT_EQ(cast[1], -2);
  EXPECT_EQ(cast[2], 65536);  // 65504 has 11 significant bits
  EXPECT_EQ(cast[3], 1.0 / (1 << 24));
  EXPECT_EQ(cast[4], 1);
  EXPECT_EQ(cast[5], reference::round_to_bf16(1365.0 / 4096));
}

TEST_F(CheckpointTest, AModelWithoutLinearLayersIsNotFound) {
  Writer writer;
  writer.add("norm.weight", "F32", {8}, raw(std::vector<float>(8, 1)));
  dir_.write("model.safetensors", writer.content());
  const auto checkpoint = Checkpoint::open(dir_.path(), context_);
  ASSERT_FALSE(checkpoint);
  EXPECT_EQ(checkpoint.status().code(), StatusCode::not_found);
}

TEST_F(CheckpointTest, AFileThatShrankIsAnIoError) {
  Writer writer;
  writer.add("fc.weight", "F32", {8, 8}, raw(std::vector<float>(64, 1)));
  dir_.write("model.safetensors", writer.content());
  const auto checkpoint = Checkpoint::open(dir_.path(), context_);
  ASSERT_TRUE(checkpoint) << checkpoint.status().text();
  dir_.write("model.safetensors", writer.content().substr(0, 100));
  const auto weights = checkpoint->load(checkpoint->layers().at(0));
  ASSERT_FALSE(weights);
  EXPECT_EQ(weights.status().code(), StatusCode::io_error);
}

TEST(OneOfEachShape, KeepsTheFirstOfEachTypeAndShape) {
  const std::vector<LinearLayer> layers = {{"a", 8, 16, WeightType::bf16},
                                           {"b", 8, 16, WeightType::nvfp4},
                                           {"c", 8, 16, WeightType::bf16},
                                           {"d", 16, 8, WeightType::bf16}};
  const auto chosen = tools::one_of_each_shape(layers);
  ASSERT_EQ(chosen.size(), 3u);
  EXPECT_EQ(chosen[0].name, "a");
  EXPECT_EQ(chosen[1].name, "b");
  EXPECT_EQ(chosen[2].name, "d");
}

}  // namespace
}  // namespace gemvjit
