// Recipes: what decides the compiled bytes, and nothing else.
#include "src/compile/specialize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/catalog/catalog.h"
#include "src/catalog/kernel_flags.h"
#include "src/compile/nvrtc_compiler.h"

namespace gemvjit {
namespace {

using testing::HasSubstr;

KernelKey key_of(Family family, const TileConfig& tile = {}, std::int64_t n = 256, std::int64_t k = 256) {
  return *make_key({family, n, k, false, true}, 1, tile, true, {90, 'a'});
}

TEST(Specialize, ConfigHoldsEveryFlagOnce) {
  TileConfig tile;
  tile.warps_k = 16;
  const auto config = generate_kernel_config(key_of(Family::nvfp4_gemv, tile));
  ASSERT_TRUE(config);
  EXPECT_THAT(*config, HasSubstr("kN = 256;"));
  EXPECT_THAT(*config, HasSubstr("kWarpsK = 16;"));
  for (const FlagField& field : flag_fields()) {
    const std::string line = std::string(" ") + field.constant + " = ";
    EXPECT_NE(config->find(line), std::string::npos) << field.constant;
    EXPECT_EQ(config->find(line), config->rfind(line)) << field.constant;
  }
}

TEST(Specialize, DigestCoversKeySourcesAndOptionsAndIsStable) {
  const KernelKey key = key_of(Family::nvfp4_gemv);
  const auto recipe = specialize(key);
  ASSERT_TRUE(recipe) << recipe.status().message();
  EXPECT_EQ(recipe->digest, specialize(key)->digest);
  EXPECT_EQ(recipe->entry_name, "nvfp4_gemv");
  TileConfig other;
  other.stages = 2;
  EXPECT_NE(recipe->digest, specialize(key_of(Family::nvfp4_gemv, other))->digest);
  EXPECT_NE(recipe->digest, specialize(key_of(Family::bf16_gemv))->digest);
  EXPECT_NE(recipe->digest, specialize(key_of(Family::nvfp4_gemv, {}, 264))->digest);
}

TEST(Specialize, OptionsNameTheTargetAndReadNothingFromDisk) {
  const auto recipe = specialize(key_of(Family::bf16_gemv));
  ASSERT_TRUE(recipe);
  EXPECT_THAT(recipe->options, testing::Contains("--gpu-architecture=sm_90a"));
  EXPECT_THAT(recipe->options, testing::Contains("--no-source-include"));
  EXPECT_THAT(recipe->options, testing::Contains("--no-cache"));
  for (const std::string& option : recipe->options) {
    EXPECT_EQ(option.find("compute_"), std::string::npos) << "a virtual target would give PTX";
    EXPECT_EQ(option.find("-I"), std::string::npos);
  }
}

TEST(PtxasReport, IsReadForTheRightEntry) {
  const std::string log =
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : Compiling entry function 'other' for 'sm_90a'\n"
      "ptxas info    : Function properties for other\n"
      "ptxas         .     8 bytes stack frame, 4 bytes spill stores, 12 bytes spill loads\n"
      "ptxas info    : Used 99 registers, used 1 barriers, 77 bytes smem\n"
      "ptxas info    : Compiling entry function 'mine' for 'sm_90a'\n"
      "ptxas info    : Function properties for mine\n"
      "ptxas         .     16 bytes stack frame, 20 bytes spill stores, 24 bytes spill loads\n"
      "ptxas info    : Used 40 registers, used 1 barriers, 256 bytes smem\n";
  KernelResources resources;
  ASSERT_TRUE(parse_ptxas_report(log, "mine", resources));
  EXPECT_EQ(resources, (KernelResources{40, 256, 20, 24, 16}));
  ASSERT_TRUE(parse_ptxas_report(log, "other", resources));
  EXPECT_EQ(resources, (KernelResources{99, 77, 4, 12, 8}));
  EXPECT_FALSE(parse_ptxas_report(log, "neither", resources));
  EXPECT_FALSE(parse_ptxas_report(log.substr(0, log.find("Used 99")), "other", resources))
      << "a report cut short is none";
}

TEST(PtxWaits, CountsInstructionsNotComments) {
  EXPECT_TRUE(ptx_waits_for_predecessor("\tmov.u32 %r1, 0;\n\tgriddepcontrol.wait;\n"));
  EXPECT_FALSE(ptx_waits_for_predecessor("\t// griddepcontrol.wait;\n\tgriddepcontrol.launch_dependents;\n"));
  EXPECT_FALSE(ptx_waits_for_predecessor(""));
}

}  // namespace
}  // namespace gemvjit
