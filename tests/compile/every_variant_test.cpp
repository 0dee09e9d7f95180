// A sample of flag sets for every family and target compiles, without spills, and says by itself whether it waits. What
// the tuning tables name: table_keys_test.cpp. A machine without NVRTC skips these aloud.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <ostream>
#include <sstream>

#include "kernels/shared/gemv_geometry.h"
#include "src/catalog/catalog.h"
#include "src/compile/nvrtc_compiler.h"
#include "src/compile/specialize.h"
#include "src/cuda/nvrtc_api.h"
#include "tests/support/nvdisasm.h"
#include "tests/support/temp_dir.h"

namespace gemvjit {
namespace {

using testing::HasSubstr;

Result<std::unique_ptr<Compiler>> open_compiler() {
  GEMVJIT_TRY_ASSIGN(auto api, cuda::load_nvrtc(cuda::nvrtc_search_from_environment(), 0, "the compile tests"));
  return make_nvrtc_compiler(std::move(api));
}

Result<Cubin> compile(Compiler& compiler, const Result<KernelKey>& key) {
  if (!key) return key.status();
  GEMVJIT_TRY_ASSIGN(const Recipe recipe, specialize(*key));
  return compiler.compile(recipe);
}

struct Variant {
  Family family;
  Arch arch;
};
std::ostream& operator<<(std::ostream& out, const Variant& variant) {
  return out << family_row(variant.family).name << " on " << variant.arch.text();
}

class EveryVariant : public testing::TestWithParam<Variant> {};

// A sample in which every value of a field that changes the source meets every nt, silu_mul, PDL, rows in bands of 128
// and not, a tail of K and of N, and K that is no multiple of 32.
struct Combination {
  int nt;
  bool silu_mul, pdl;
  std::int64_t n, k;
  TileConfig tile;
  bool everywhere = false;  // on every tested target, not only on one of each generation
};
// clang-format off
const Combination kCombinations[] = {
    {1, false, true, 1968, 4096, {.warps_k = 8, .stages = 4}},
    {1, true, false, 1968, 2880, {.warps_k = 8, .cluster_k = 2, .stages = 2}},
    {1, false, true, 2048, 2880, {.variant = 1, .warps_k = 8, .stages = 5, .min_ctas = 2}, true},
    {1, true, true, 2048, 4096, {.variant = 1, .warps_k = 4, .warps_n = 2, .row_tiles = 2, .stages = 2, .x_path = 1, .rounds = 3}},
    {1, false, true, 2048, 4096, {.variant = 1, .warps_k = 8, .warps_n = 2, .stages = 3, .x_path = 6}, true},
    {1, true, true, 2048, 16384, {.warps_k = 8, .row_tiles = 2, .stages = 2, .x_path = 6, .release = 2}},
    {1, false, true, 2048, 4096, {.variant = 2, .warps_k = 4, .warps_n = 4, .stages = 4, .x_path = 3}},
    {2, true, true, 2048, 4096, {.variant = 2, .warps_k = 1, .warps_n = 16, .cluster_k = 4, .stages = 3, .x_path = 2, .rounds = 2}},
    {4, false, true, 1984, 7168, {.variant = 2, .warps_k = 1, .warps_n = 8, .cluster_k = 8, .row_tiles = 2, .stages = 3, .x_path = 3, .release = 2}},
    {1, false, true, 2064, 1520, {.warps_k = 3, .warps_n = 5, .stages = 2, .release = 1}},
    {1, false, true, 28656, 14336, {.warps_k = 2, .warps_n = 2, .row_tiles = 4, .stages = 1, .x_path = 1, .rounds = 13}},
    {2, false, true, 2944, 2880, {.warps_k = 4, .warps_n = 2, .row_tiles = 2, .stages = 2, .x_path = 3, .rounds = 2}, true},
    {2, true, false, 2048, 4096, {.warps_k = 4, .cluster_k = 4, .stages = 2, .release = 1, .min_ctas = 4}},
    {2, false, true, 1968, 7168, {.variant = 1, .warps_k = 4, .cluster_k = 2, .stages = 4, .rounds = 5, .min_ctas = 3}},
    {4, false, true, 2064, 14336, {.warps_k = 8, .row_tiles = 2, .stages = 2}},
    {4, true, true, 2048, 2880, {.warps_k = 4, .warps_n = 2, .stages = 1, .x_path = 2, .rounds = 2}, true},
    {4, false, false, 1968, 4096, {.variant = 1, .warps_k = 2, .warps_n = 2, .cluster_k = 8, .stages = 5, .x_path = 2}},
};
// clang-format on

bool is_one_of_each_generation(const Arch& arch) {
  return arch == Arch{80, 0} || arch == Arch{90, 'a'} || arch == Arch{100, 'a'} || arch == Arch{120, 'a'};
}

// Compiles and has what every kernel must have.
void check_kernel(Compiler& compiler, const Result<KernelKey>& key) {
  const auto cubin = compile(compiler, key);
  ASSERT_TRUE(cubin) << cubin.status().text();
  const KernelSpec spec = *describe_key(*key);
  const std::string what = key->text() + ": " + flags_text(key->flags);
  EXPECT_GT(cubin->bytes.size(), 1000u);
  EXPECT_EQ(cubin->waits_for_predecessor, spec.pdl) << what;
  EXPECT_EQ(cubin->resources.spill_store_bytes, 0u) << what;
  EXPECT_EQ(cubin->resources.spill_load_bytes, 0u) << what;
  EXPECT_GT(cubin->resources.registers, 0u);
  // What can be launched at all, min_ctas at a time: 64 Ki registers an SM, allocated in units of 8 a thread.
  const unsigned ctas = spec.tile.min_ctas == 0 ? 1 : spec.tile.min_ctas;
  EXPECT_LE((cubin->resources.registers + 7) / 8 * 8 * launch_config(spec).block_x * ctas, 65536u) << what;
}

TEST_P(EveryVariant, CompilesWithoutSpills) {
  auto compiler = open_compiler();
  if (!compiler) GTEST_SKIP() << compiler.status().message();
  const auto& [family, arch] = GetParam();
  if (!(*compiler)->supports(arch)) GTEST_SKIP() << (*compiler)->version() << " does not know " << arch.text();
  const ArchFacts facts = *arch_facts(arch);
  if (!family_row(family).has_tokens) {
    for (const bool pdl : {false, true}) {
      if (pdl && (!facts.has_pdl || !family_row(family).can_pdl)) continue;
      check_kernel(**compiler, make_key({family, 1968, 2880, false, pdl}, 0, no_tile(), true, arch));
    }
    return;
  }
  for (const Combination& one : kCombinations) {
    if (!one.everywhere && !is_one_of_each_generation(arch)) continue;
    TileConfig tile = one.tile;
    if (tile.variant == kWgmmaVariant && !facts.has_wgmma) continue;
    if (tile.x_path == kXDealt && family != Family::nvfp4_gemv) continue;
    if (!facts.has_clusters) tile.cluster_k = 1;
    Problem problem{family, one.n, one.k, one.silu_mul, one.pdl};
    ASSERT_NO_FATAL_FAILURE(check_kernel(**compiler, make_key(problem, one.nt, tile, true, arch)));
    if (!family_row(family).can_scale_segments || !is_one_of_each_generation(arch)) continue;
    problem.scale_segments = true;
    ASSERT_NO_FATAL_FAILURE(check_kernel(**compiler, make_key(problem, one.nt, tile, true, arch)));
  }
}

std::vector<Variant> all_variants() {
  std::vector<Variant> variants;
  for (const Arch& arch : tested_archs()) {
    for (const FamilyRow& row : families()) variants.push_back({row.family, arch});
  }
  return variants;
}
INSTANTIATE_TEST_SUITE_P(All, EveryVariant, testing::ValuesIn(all_variants()), [](const auto& variant) {
  return fmt::format("{}_{}", family_row(variant.param.family).name, variant.param.arch.text());
});

class CompileTest : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = open_compiler();
    if (!opened) GTEST_SKIP() << opened.status().message();
    compiler_ = std::move(*opened);
  }
  Recipe recipe(bool pdl = true, Arch arch = {90, 'a'}) {
    return *specialize(*make_key({Family::bf16_gemv, 64, 128, false, pdl}, 1, TileConfig{}, true, arch));
  }
  std::unique_ptr<Compiler> compiler_;
};

TEST_F(CompileTest, EdgeShapesCompile) {
  for (const std::int64_t k : {16, 48, 464, 1504, 2880, 5376}) {
    for (const Family family : {Family::nvfp4_gemv, Family::bf16_gemv}) {
      const auto cubin = compile(*compiler_, make_key({family, 24, k, false, true}, 1, TileConfig{}, true, {90, 'a'}));
      ASSERT_TRUE(cubin) << cubin.status().text();
      EXPECT_EQ(cubin->resources.spill_store_bytes, 0u);
    }
  }
  const std::int64_t large = std::int64_t{1} << 31;
  const auto cubin = compile(
      *compiler_, make_key({Family::nvfp4_gemv, large / 8, 65536, false, true}, 1, TileConfig{}, true, {90, 'a'}));
  EXPECT_TRUE(cubin) << cubin.status().text();
}

TEST_F(CompileTest, OutputIsDeterministic) {
  const auto first = compiler_->compile(recipe()), second = compiler_->compile(recipe());
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->bytes, second->bytes);
}

// B101, B106: it is the compiled code that says.
TEST_F(CompileTest, RemovingTheWaitFromTheSourceIsSeen) {
  Recipe without = recipe();
  bool removed = false;
  for (SourceFile& source : without.sources) {
    const std::string wait = "asm volatile(\"griddepcontrol.wait;\" ::: \"memory\");";
    if (const std::size_t at = source.text.find(wait); at != std::string::npos) {
      source.text.replace(at, wait.size(), ";");
      removed = true;
    }
  }
  ASSERT_TRUE(removed);
  const auto cubin = compiler_->compile(without);
  ASSERT_TRUE(cubin) << cubin.status().text();
  EXPECT_FALSE(cubin->waits_for_predecessor) << "the key asks for PDL, but the compiled code does not wait";
  EXPECT_TRUE(compiler_->compile(recipe())->waits_for_predecessor);
}

TEST_F(CompileTest, FailureHasTheLogAndTheKey) {
  Recipe broken = recipe();
  broken.sources[0].text += "\n#error deliberate\n";
  const auto cubin = compiler_->compile(broken);
  EXPECT_EQ(cubin.status().code(), StatusCode::compile_failed);
  EXPECT_THAT(cubin.status().message(), HasSubstr("deliberate"));
  EXPECT_THAT(cubin.status().message(), HasSubstr(broken.key.text()));
}

// A header that lies beside the source, seen from the current directory, is found by a plain NVRTC, and not with the
// options of a recipe.
TEST_F(CompileTest, NothingIsReadFromDisk) {
  const test::TempDir dir;
  dir.write("kernels/on_disk.h", "#pragma once\n");
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(dir.path());
  Recipe reaching = recipe();
  reaching.sources[0].text = "#include \"on_disk.h\"\n" + reaching.sources[0].text;
  const auto refused = compiler_->compile(reaching);
  std::erase(reaching.options, "--no-source-include");
  const auto control = compiler_->compile(reaching);
  std::filesystem::current_path(before);
  EXPECT_EQ(refused.status().code(), StatusCode::compile_failed);
  EXPECT_THAT(refused.status().message(), HasSubstr("on_disk.h"));
  EXPECT_TRUE(control) << "without the option it would have been read: " << control.status().text();
}

TEST_F(CompileTest, SourceListThatLacksAFileCannotCompile) {
  Recipe incomplete = recipe();
  std::erase_if(incomplete.sources,
                [](const SourceFile& source) { return source.name == "kernels/device/row_map.cuh"; });
  EXPECT_EQ(compiler_->compile(incomplete).status().code(), StatusCode::compile_failed);
}

TEST_F(CompileTest, UnknownTargetIsRefusedBeforeCompiling) {
  const auto cubin = compiler_->compile(recipe(true, {101, 'a'}));
  EXPECT_EQ(cubin.status().code(), StatusCode::no_compiler);
  EXPECT_THAT(cubin.status().message(), HasSubstr("sm_101a"));
  EXPECT_THAT(cubin.status().message(), HasSubstr("sm_90"));
}

// What the entry says of its wait is what the machine code does: ACQBULK is griddepcontrol.wait in SASS.
TEST_F(CompileTest, DisassemblyAgreesAboutTheWait) {
  const auto disassembler = test::find_nvdisasm();
  if (disassembler.empty()) GTEST_SKIP() << "no nvdisasm found (CUDA toolkit, or the wheel nvidia-cuda-nvdisasm)";
  for (const Arch& arch : {Arch{90, 'a'}, Arch{100, 'a'}, Arch{103, 'a'}, Arch{120, 'a'}, Arch{121, 'a'}}) {
    for (const bool pdl : {false, true}) {
      const auto cubin = compiler_->compile(recipe(pdl, arch));
      ASSERT_TRUE(cubin) << cubin.status().text();
      const std::string sass = test::disassemble(disassembler, cubin->bytes);
      ASSERT_THAT(sass, HasSubstr("EXIT")) << arch.text();
      EXPECT_THAT(sass, HasSubstr("HMMA")) << arch.text();
      EXPECT_EQ(sass.find("ACQBULK") != std::string::npos, pdl) << arch.text();
      EXPECT_EQ(cubin->waits_for_predecessor, pdl);
    }
  }
}

// Loads of global memory in a listing, by what tells them apart in the machine code.
struct Loads {
  int weights = 0, scales = 0, activations = 0;
};
Loads count_loads(const std::string& sass) {
  Loads loads;
  std::istringstream lines(sass);
  for (std::string line; std::getline(lines, line);) {
    const auto has = [&](const char* mark) { return line.find(mark) != std::string::npos; };
    const bool copy = has(" LDGSTS.");  // asynchronously, to shared memory
    if (!copy && !has(" LDG.")) continue;
    if (has(".LTC128B")) {  // reads ahead in L2
      ++loads.weights;
    } else if (copy ? !has(".BYPASS") : has(".EL")) {  // 4 bytes through L1; kept in L1. The global scale too
      ++loads.scales;
    } else {
      ++loads.activations;
    }
  }
  return loads;
}

// B100. Weights are requested before the wait, kStages steps of them, activations only after it: in every variant and
// way for x.
TEST_F(CompileTest, ActivationsAreReadAfterTheWait) {
  const auto disassembler = test::find_nvdisasm();
  if (disassembler.empty()) GTEST_SKIP() << "no nvdisasm found (CUDA toolkit, or the wheel nvidia-cuda-nvdisasm)";
  const TileConfig tiles[] = {{.warps_k = 8, .stages = 4},
                              {.warps_k = 8, .stages = 2, .x_path = 2, .rounds = 3},
                              {.variant = 1, .warps_k = 8, .stages = 5},
                              {.variant = 1, .warps_k = 8, .row_tiles = 2, .stages = 3, .x_path = 3, .rounds = 2},
                              {.variant = 1, .warps_k = 8, .stages = 3, .x_path = 6},
                              {.variant = 1, .warps_k = 8, .stages = 3, .x_path = 5},
                              {.variant = 2, .warps_k = 2, .warps_n = 4, .stages = 3, .x_path = 3}};
  for (const Family family : {Family::nvfp4_gemv, Family::bf16_gemv}) {
    for (const TileConfig& tile : tiles) {
      if (tile.x_path == kXDealt && family != Family::nvfp4_gemv) continue;
      const auto key = make_key({family, 4096, 8192, false, true}, 1, tile, true, {90, 'a'});
      const auto cubin = compile(*compiler_, key);
      ASSERT_TRUE(cubin) << cubin.status().text();
      const std::string what = flags_text(key->flags);
      const std::string sass = test::disassemble(disassembler, cubin->bytes);
      const std::size_t wait = sass.find("ACQBULK");
      ASSERT_NE(wait, std::string::npos) << what;
      const Loads before = count_loads(sass.substr(0, wait)), after = count_loads(sass.substr(wait));
      const bool nvfp4 = family == Family::nvfp4_gemv;
      const auto half_tiles = static_cast<int>(tile.stages * tile.row_tiles * 2);
      EXPECT_EQ(before.weights, half_tiles * (nvfp4 ? 1 : 2)) << what;
      EXPECT_EQ(before.scales, nvfp4 ? half_tiles + 1 : 0) << what;
      EXPECT_EQ(before.activations, 0) << what;
      EXPECT_GT(after.weights, 0) << what;
      EXPECT_GT(after.activations, 0) << what;
      EXPECT_EQ(sass.substr(0, wait).find("STG"), std::string::npos) << what << ": out is written only after the wait";
      EXPECT_NE(sass.substr(wait).find("STG"), std::string::npos) << what;
    }
  }
}

}  // namespace
}  // namespace gemvjit
