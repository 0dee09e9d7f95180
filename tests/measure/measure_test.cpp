// tools/measure without a device: statistics, cold operands and their references, the search for cuBLASLt.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <set>

#include "src/compile/nvrtc_compiler.h"
#include "src/compile/options.h"
#include "src/cuda/nvrtc_api.h"
#include "tests/support/temp_dir.h"
#include "tools/measure/cold_data.h"
#include "tools/measure/cublaslt_abi.h"
#include "tools/measure/cublaslt_search.h"
#include "tools/measure/number_check.h"
#include "tools/measure/samples.h"
#include "tools/verification/number_formats.h"
#if __has_include(<cublasLt.h>)
#include <cublasLt.h>
#endif

namespace gemvjit::tools {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Not;

TEST(Samples, MedianAndQuartiles) {
  const Spread odd = summarize({5, 1, 2, 4, 3});
  EXPECT_DOUBLE_EQ(odd.median, 3);
  EXPECT_DOUBLE_EQ(odd.half_iqr, 1);
  EXPECT_DOUBLE_EQ(summarize({1, 2}).median, 1.5);
  EXPECT_DOUBLE_EQ(summarize({7}).half_iqr, 0);
  EXPECT_DOUBLE_EQ(summarize({}).median, 0);
  // One replay that something disturbed moves neither.
  EXPECT_DOUBLE_EQ(summarize({2, 2, 2, 2, 900}).median, 2);
  EXPECT_DOUBLE_EQ(summarize({2, 2, 2, 2, 900}).half_iqr, 0);
}

TEST(Samples, GeometricMean) {
  EXPECT_NEAR(geometric_mean(std::vector<double>{2, 8}), 4, 1e-12);
  EXPECT_DOUBLE_EQ(geometric_mean({}), 0);
}

TEST(ColdCopies, AreColdAndAtLeastFour) {
  EXPECT_EQ(cold_copies(1u << 20), 210);
  EXPECT_EQ(cold_copies(100u << 20), 4);
  EXPECT_EQ(cold_copies(std::uint64_t{1} << 32), 4);
  EXPECT_EQ(cold_copies(64), 1024);
  EXPECT_GE(cold_copies(4718592) * std::int64_t{4718592}, std::int64_t{210} << 20);
}

class References : public testing::Test {
 protected:
  static const HostBlocks& blocks() {
    static const HostBlocks made;
    return made;
  }
};

// out as a kernel would leave it: [m, columns], right everywhere that the reference looks.
std::vector<std::uint16_t> right_out(const SampledReference& reference) {
  std::vector<std::uint16_t> out(static_cast<std::size_t>(reference.m * reference.out_columns), 0);
  for (std::int64_t token = 0; token < reference.m; ++token) {
    for (std::size_t i = 0; i < reference.columns.size(); ++i) {
      const auto at = static_cast<std::size_t>(token * reference.out_columns + reference.columns[i]);
      out[at] = reference::bf16_bits(
          reference.expected.value[static_cast<std::size_t>(token) * reference.columns.size() + i]);
    }
  }
  return out;
}

TEST_F(References, ColumnsAreSpreadOverPlacesOfATile) {
  const auto made = make_reference(blocks(), {Family::bf16_gemv, 4096, 64, false}, 1);
  ASSERT_EQ(made.columns.size(), 32u);
  EXPECT_EQ(made.columns.back(), 4095);
  std::set<std::int64_t> places;
  for (const std::int64_t column : made.columns) places.insert(column % 16);
  EXPECT_GE(places.size(), 8u);
  EXPECT_EQ(make_reference(blocks(), {Family::bf16_gemv, 8, 64, false}, 1).columns.size(), 8u);
}

TEST_F(References, AcceptRightNumbersAndRefuseOthers) {
  for (const Problem& problem :
       {Problem{Family::bf16_gemv, 256, 72, false}, Problem{Family::nvfp4_gemv, 256, 80, false},
        Problem{Family::nvfp4_gemv, 256, 80, true}}) {
    const auto reference = make_reference(blocks(), problem, 3);
    auto out = right_out(reference);
    EXPECT_EQ(compare_sampled(reference, out).problem, "");
    auto wrong = out;
    const auto last = static_cast<std::size_t>(2 * reference.out_columns + reference.columns[5]);
    wrong[last] = reference::bf16_bits(1e6);
    EXPECT_NE(compare_sampled(reference, wrong).problem, "");
    // An element outside the sample that was never written.
    out[static_cast<std::size_t>(reference.out_columns + (reference.columns[3] == 1 ? 2 : 1))] = 0xFFFF;
    EXPECT_THAT(compare_sampled(reference, out).problem, testing::HasSubstr("was not written"));
  }
}

// The blocks repeat over the device's buffers, so row r of the first copy begins at r * k of the block.
TEST_F(References, UseTheBytesOfTheFirstCopy) {
  const std::int64_t k = 64;
  const auto reference = make_reference(blocks(), {Family::bf16_gemv, 16, k, false}, 1);
  for (std::size_t i = 0; i < reference.columns.size(); ++i) {
    double sum = 0;
    for (std::int64_t at = 0; at < k; ++at) {
      sum += static_cast<double>(reference::bf16_to_float(blocks().x[static_cast<std::size_t>(at)])) *
             static_cast<double>(
                 reference::bf16_to_float(blocks().bf16[static_cast<std::size_t>(reference.columns[i] * k + at)]));
    }
    EXPECT_NEAR(reference.expected.value[i], sum, 1e-9);
  }
}

TEST(CublasLtSearch, NamedAloneElseLoaderThenFoldersOfNvrtc) {
  test::TempDir dir;
  EXPECT_THAT(cublaslt_candidates("/some/libcublasLt.so", {}), ElementsAre("/some/libcublasLt.so"));
  cuda::NvrtcSearch search;
  search.toolkits_parent = dir.path();
  dir.write("cuda/lib64/libnvrtc.so.13", "");
  const std::string toolkit = dir.write("cuda/lib64/libcublasLt.so.13", "");
  search.virtual_env = dir.path("venv");
  const std::string packages = "venv/lib/python3.11/site-packages/nvidia";
  dir.write(packages + "/cuda_nvrtc/lib/libnvrtc.so.12", "");
  const std::string wheel = std::filesystem::canonical(dir.write(packages + "/cublas/lib/libcublasLt.so.12", ""));
  const auto files = cublaslt_candidates("", search);
  ASSERT_GE(files.size(), 5u);
  EXPECT_EQ(files[0], "libcublasLt.so.13");
  EXPECT_THAT(files, Contains(toolkit));
  EXPECT_THAT(files, Not(Contains(dir.path("cuda/lib64/libcublasLt.so.12"))));
  bool found = false;
  for (const std::string& file : files) found = found || std::filesystem::weakly_canonical(file) == wheel;
  EXPECT_TRUE(found);
}

TEST(CublasLtAbi, IsThatOfTheInstalledHeader) {
#if __has_include(<cublasLt.h>)
  EXPECT_EQ(cublaslt::kSuccess, CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(cublaslt::kTypeFloat, CUDA_R_32F);
  EXPECT_EQ(cublaslt::kTypeBf16, CUDA_R_16BF);
  EXPECT_EQ(cublaslt::kComputeFloat, CUBLAS_COMPUTE_32F);
  EXPECT_EQ(cublaslt::kTransposed, CUBLAS_OP_T);
  EXPECT_EQ(cublaslt::kDescTransA, CUBLASLT_MATMUL_DESC_TRANSA);
  EXPECT_EQ(cublaslt::kPrefMaxWorkspace, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
  EXPECT_EQ(sizeof(cublaslt::Algorithm), sizeof(cublasLtMatmulAlgo_t));
  EXPECT_EQ(sizeof(cublaslt::HeuristicResult), sizeof(cublasLtMatmulHeuristicResult_t));
  EXPECT_EQ(offsetof(cublaslt::HeuristicResult, state), offsetof(cublasLtMatmulHeuristicResult_t, state));
  EXPECT_EQ(offsetof(cublaslt::HeuristicResult, workspace_bytes),
            offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
#else
  GTEST_SKIP() << "no cublasLt.h here to compare with";
#endif
}

// The kernels of this folder include no header but their configuration, for every target that is tested.
TEST(HelperKernels, CompileWithoutSpills) {
  const auto nvrtc = cuda::load_nvrtc(cuda::nvrtc_search_from_environment(), 0, "compile the helper kernels");
  if (!nvrtc) GTEST_SKIP() << nvrtc.status().text();
  const auto compiler = make_nvrtc_compiler(*nvrtc);
  for (const auto& [name, config] : std::vector<std::pair<std::string, std::string>>{
           {"read_ceiling", "inline constexpr int kMode = 2;"}, {"silu_mul", ""}}) {
    for (const Arch& arch : {Arch{90, 'a'}, Arch{120, 'a'}}) {
      Recipe recipe;
      recipe.key.arch = arch;
      recipe.entry_name = name;
      recipe.sources = {
          {name + ".cu", test::read_text(std::string(GEMVJIT_SOURCE_DIR) + "/tools/measure/" + name + ".cu")},
          {"kernel_config.h", config}};
      recipe.options = nvrtc_options(arch);
      const auto cubin = compiler->compile(recipe);
      ASSERT_TRUE(cubin) << cubin.status().text();
      EXPECT_EQ(cubin->resources.spill_store_bytes, 0u);
    }
  }
}

}  // namespace
}  // namespace gemvjit::tools
