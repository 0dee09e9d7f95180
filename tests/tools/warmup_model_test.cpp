// gemvjit-warmup --model: what it makes of good and bad model folders. Nothing here compiles.
#include "tests/tools/cli_fixture.h"
#include "tests/tools/model_files.h"

namespace gemvjit::test {
namespace {

class WarmupModel : public CliTest {
 protected:
  std::string model_ = folder_.path("model");

  void write(const std::string& name, const std::string& content) const { folder_.write("model/" + name, content); }
  ProgramOutput plan(std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments{"--model", model_, "--arch", "sm_90a", "--dry-run", "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return warmup(arguments);
  }
  void expect_refused(int exit_code, const std::string& said, const std::string& also_said = "") const {
    const ProgramOutput output = plan();
    EXPECT_EQ(output.exit_code, exit_code) << output.err;
    EXPECT_TRUE(contains(output.err, said)) << output.err;
    EXPECT_TRUE(contains(output.err, also_said)) << output.err;
    EXPECT_TRUE(contains(output.err, model_)) << output.err;
    EXPECT_TRUE(contains(error_message(output), said)) << output.out;
  }
};

TEST_F(WarmupModel, EveryLinearLayerAndNothingElse) {
  write("model.safetensors", safetensors_file(small_model()));
  const ProgramOutput output = plan();
  ASSERT_EQ(output.exit_code, 0) << output.err;
  std::size_t nvfp4 = 0, bf16 = 0, dequantize = 0;
  const nlohmann::json results = document(output)["results"];
  for (const nlohmann::json& result : results) {
    const std::string family = result["family"];
    if (family == "nvfp4_gemv") ++nvfp4;
    if (family == "bf16_gemv") ++bf16;
    if (family == "dequantize_rows") ++dequantize;
    EXPECT_EQ(result["n"], family == "bf16_gemv" ? 96 : 128);
    EXPECT_EQ(result["k"], 64);
  }
  EXPECT_EQ(nvfp4, 3u);
  EXPECT_EQ(bf16, 3u);
  EXPECT_EQ(dequantize, 1u);
  EXPECT_TRUE(contains(output.err, "skipped embeddings.word_embeddings.weight BF16 [512, 64]: embedding"))
      << output.err;
  EXPECT_TRUE(contains(output.err, "2 linear layers")) << output.err;
  EXPECT_EQ(plan({"-q"}).err, "");
}

TEST_F(WarmupModel, LayersOfOneShapeAreWarmedOnce) {
  std::vector<ModelTensor> tensors;
  for (const char* name : {"a.weight", "b.weight", "c.weight"}) tensors.push_back({name, "F32", {64, 64}, 4});
  write("model.safetensors", safetensors_file(tensors));
  EXPECT_EQ(document(plan())["results"].size(), 3u);  // nt 1, 2, 4
}

TEST_F(WarmupModel, ALayerThatNoKernelServesIsSkippedWithTheRule) {
  write("model.safetensors", safetensors_file({{"a.weight", "BF16", {64, 64}, 2}, {"b.weight", "BF16", {63, 64}, 2}}));
  const ProgramOutput output = plan();
  EXPECT_EQ(output.exit_code, 0) << output.err;
  EXPECT_TRUE(contains(output.err, "skipped b.weight BF16 [63, 64]")) << output.err;
  EXPECT_TRUE(contains(output.err, "multiple of 8")) << output.err;
}

TEST_F(WarmupModel, AShardedModelIsReadThroughItsIndex) {
  write("model-1.safetensors", safetensors_file(nvfp4_layer("a", 64, 64)));
  write("model-2.safetensors", safetensors_file({{"b.weight", "BF16", {64, 64}, 2}}));
  write("model.safetensors.index.json",
        R"({"weight_map": {"a.weight": "model-1.safetensors", "b.weight": "model-2.safetensors"}})");
  EXPECT_EQ(document(plan())["results"].size(), 7u);
}

TEST_F(WarmupModel, AFolderWithoutAModelIsFour) {
  expect_refused(4, "No such file");
  std::filesystem::create_directory(model_);
  expect_refused(4, "no *.safetensors");
}

TEST_F(WarmupModel, AModelWithoutLinearLayersIsFour) {
  write("model.safetensors", safetensors_file({{"wte.weight", "BF16", {512, 64}, 2}, {"ln.weight", "F32", {64}, 4}}));
  expect_refused(4, "linear layer", "wte.weight");
}

TEST_F(WarmupModel, AnEmptyFileIsRefused) {
  write("model.safetensors", "");
  expect_refused(2, "model.safetensors");
}

TEST_F(WarmupModel, SomethingElseIsRefused) {
  write("model.safetensors", "<html>404: this page is not a model, whatever its name says</html>");
  expect_refused(2, "not a safetensors file");
}

TEST_F(WarmupModel, ATruncatedFileIsRefused) {
  const std::string whole = safetensors_file(small_model());
  write("model.safetensors", whole.substr(0, whole.size() - 100));
  expect_refused(2, "truncated", "tensor");
}

TEST_F(WarmupModel, AHeaderThatLiesAboutSizesIsRefused) {
  std::uint64_t data_bytes = 0;
  nlohmann::json header = safetensors_header({{"a.weight", "BF16", {64, 64}, 2}}, data_bytes);
  header["a.weight"]["shape"] = {8192, 64};
  write("model.safetensors", safetensors_bytes(header.dump(), data_bytes));
  expect_refused(2, "a.weight", "takes 1048576 bytes");
}

TEST_F(WarmupModel, AnIndexThatNamesAMissingFileIsRefused) {
  write("model.safetensors.index.json", R"({"weight_map": {"a.weight": "model-1.safetensors"}})");
  expect_refused(2, "model-1.safetensors", "a.weight");
}

}  // namespace
}  // namespace gemvjit::test
