// gemvjit-cache explain N K M, and --arch as people write it, from the command line. B139.
#include "tests/tools/cli_fixture.h"

namespace gemvjit::test {
namespace {

using nlohmann::json;

class ExplainShapeCli : public CliTest {};

TEST_F(ExplainShapeCli, SaysWhatIsChosenAndRejectedWithoutAGpuOrACache) {
  const json document =
      CliTest::document(cache({"explain", "4096", "14336", "9", "--silu", "--arch", "hopper", "--json"}));
  EXPECT_EQ(document["n"], 4096);
  EXPECT_EQ(document["silu_mul"], true);
  EXPECT_EQ(document["tables_hash"].get<std::string>().size(), 64u);
  ASSERT_EQ(document["selections"].size(), 1u);
  const json selection = document["selections"][0];
  EXPECT_EQ(selection["arch"], "sm_90a");
  EXPECT_EQ(selection["table"], "sm_90a.json");
  ASSERT_EQ(selection["kernels"].size(), 3u);
  EXPECT_EQ(selection["kernels"][0]["not_chosen"], "nt_too_small");
  int chosen = 0;
  for (const json& kernel : selection["kernels"]) {
    if (kernel["chosen"] != true) continue;
    ++chosen;
    EXPECT_EQ(kernel["nt"], selection["nt"]);
    EXPECT_EQ(kernel["reason"], selection["reason"]);
    EXPECT_EQ(kernel["not_chosen"], nullptr);
    EXPECT_EQ(kernel["digest"].get<std::string>().size(), 64u);
    EXPECT_TRUE(kernel["tile"].contains("warps_k"));
    // The key is one that the other form takes: it would miss here.
    EXPECT_EQ(cache({"explain", kernel["key"]}).exit_code, 9);
  }
  EXPECT_EQ(chosen, 1);
  EXPECT_FALSE(std::filesystem::exists(cache_dir_));
}

TEST_F(ExplainShapeCli, ForPeopleTheReasonsStandBesideTheirTokens) {
  const ProgramOutput output = cache({"explain", "4096", "4096", "40", "--bf16", "--arch", "9.0a"});
  EXPECT_EQ(output.exit_code, 4);
  EXPECT_TRUE(contains(output.out, "choice: none, m_out_of_range: M is not 1 to 32")) << output.out;
  EXPECT_TRUE(contains(output.out, "bf16_gemv N=4096 K=4096 M=40")) << output.out;
}

TEST_F(ExplainShapeCli, SeveralTargetsAreSeveralSelections) {
  const json document = CliTest::document(cache({"explain", "4096", "4096", "1", "--arch", "blackwell", "--json"}));
  std::vector<std::string> archs;
  for (const json& selection : document["selections"]) archs.push_back(selection["arch"]);
  EXPECT_EQ(archs, (std::vector<std::string>{"sm_100a", "sm_103a", "sm_120a", "sm_121a"}));
}

TEST_F(ExplainShapeCli, WrongUse) {
  EXPECT_EQ(cache({"explain", "4096", "4096", "--arch", "sm_90a"}).exit_code, 2);
  EXPECT_EQ(cache({"explain", "4096", "x", "1", "--arch", "sm_90a"}).exit_code, 2);
  EXPECT_EQ(cache({"explain", "4096", "4096", "1", "--arch", "sm_75"}).exit_code, 2);
  const ProgramOutput misspelt = cache({"explain", "4096", "4096", "1", "--arch", "hoper"});
  EXPECT_EQ(misspelt.exit_code, 2);
  EXPECT_TRUE(contains(misspelt.err, "did you mean hopper?")) << misspelt.err;
  const ProgramOutput of_key = cache({"explain", "n64-k64-nt0-f0000000000000023-sm_90a", "--silu"});
  EXPECT_EQ(of_key.exit_code, 2);
  EXPECT_TRUE(contains(of_key.err, "explain N K M")) << of_key.err;
}

TEST_F(ExplainShapeCli, WarmupPrintsWhatArchWasTakenFor) {
  const ProgramOutput output = warmup({"--shape", "64x64:dequant", "--arch", "Hopper,9.0,90a", "--dry-run", "--json"});
  ASSERT_EQ(output.exit_code, 0) << output.err;
  const json archs = CliTest::document(output)["archs"];
  ASSERT_EQ(archs.size(), 3u);
  EXPECT_EQ(archs[0]["name"], "Hopper");
  EXPECT_EQ(archs[0]["targets"], json::array({"sm_90a"}));
  EXPECT_EQ(archs[1]["targets"], json::array({"sm_90"}));
  EXPECT_TRUE(contains(archs[1]["note"], "looks for sm_90a first"));
  EXPECT_EQ(CliTest::document(output)["results"].size(), 2u) << "one target, however it is spelt, is one kernel";
  EXPECT_TRUE(contains(output.err, "--arch Hopper: sm_90a\n")) << output.err;
}

TEST_F(ExplainShapeCli, DoctorHasAPolicyRowForEachCapability) {
  const json nvrtc = CliTest::document(cache({"doctor", "--json"}))["nvrtc"];
  if (nvrtc["found"] != true) GTEST_SKIP() << nvrtc["problem"];
  bool has_hopper = false;
  for (const json& row : nvrtc["policy"]) {
    if (row["capability"] != "9.0") continue;
    has_hopper = true;
    EXPECT_EQ(row["target"], "sm_90a");
    EXPECT_EQ(row["reason"], "arch_specific");
  }
  EXPECT_TRUE(has_hopper) << nvrtc["policy"];
}

}  // namespace
}  // namespace gemvjit::test
