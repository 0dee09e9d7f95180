// B49, B74, B77, B82: plans: what one machine writes another warms, checks and collects garbage by, and a miss names
// what differs. The compiler is a fake one, so that many kernels cost nothing.
#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tests/tools/cli_fixture.h"

namespace gemvjit::test {
namespace {

using nlohmann::json;
using Arguments = std::vector<std::string>;

class PlanCli : public CliTest {
 protected:
  PlanCli() { environment_["GEMVJIT_NVRTC"] = FIXTURE_MISBEHAVING_NVRTC; }

  static Arguments shapes() {
    return {"--shape", "64x4096", "--shape", "128x4096:bf16", "--arch", "sm_90a,sm_80", "--nt", "1,2"};
  }
  static Arguments with(Arguments arguments, const Arguments& more) {
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  std::string write_plan(const Arguments& what, const std::string& name = "plan.json") const {
    const std::string path = folder_.path(name);
    const ProgramOutput output = warmup(with(what, {"--dry-run", "--plan-out", path, "-q"}));
    EXPECT_EQ(output.exit_code, 0) << output.err;
    return path;
  }
  static std::vector<std::string> keys_of(const json& document) {
    std::vector<std::string> keys;
    for (const auto& result : document["results"]) keys.push_back(result["key"]);
    std::sort(keys.begin(), keys.end());
    return keys;
  }
  static std::vector<std::string> keys_of_plan(const std::string& path) {
    std::vector<std::string> keys;
    const json plan = json::parse(read_text(path));
    for (const auto& kernel : plan["keys"]) keys.push_back(kernel["key"]);
    return keys;
  }
  void replace_in(const std::string& path, const std::string& what, const std::string& by) const {
    std::string text = read_text(path);
    const std::size_t at = text.find(what);
    ASSERT_NE(at, std::string::npos) << what;
    std::ofstream(path) << text.replace(at, what.size(), by);
  }
};

TEST_F(PlanCli, IsTheSameBytesWhateverTheOrder) {
  const std::string one = read_text(write_plan(shapes()));
  const Arguments other{"--arch",        "sm_80,sm_90a", "--nt",    "2,1",     "--shape",
                        "128x4096:bf16", "--shape",      "64x4096", "--shape", "64x4096"};
  EXPECT_EQ(read_text(write_plan(other, "other.json")), one);
  const json plan = json::parse(one);
  EXPECT_EQ(plan["schema"], 1);
  EXPECT_EQ(plan["archs"], (json{"sm_80", "sm_90a"}));
  EXPECT_EQ(plan["keys"].size(), 10u) << "2 targets, 2 nt of 2 families and a dequantize_rows";
  for (const json& kernel : plan["keys"]) EXPECT_EQ(kernel["from"].size(), 1u) << kernel;
  EXPECT_TRUE(contains(one, "shape 64x4096:nvfp4"));
  EXPECT_EQ(read_text(write_plan({"--plan", folder_.path("plan.json")}, "again.json")), one);
}

TEST_F(PlanCli, IsWarmedAndChecked) {
  const std::string plan = write_plan(shapes());
  const ProgramOutput cold = warmup({"--plan", plan, "--check", "--json"});
  EXPECT_EQ(cold.exit_code, 9) << cold.err;
  EXPECT_EQ(keys_of(document(cold)), keys_of_plan(plan));
  const ProgramOutput warmed = warmup({"--plan", plan, "--json"});
  EXPECT_EQ(warmed.exit_code, 0) << warmed.err;
  EXPECT_EQ(document(warmed)["summary"]["compiled"], 10);
  EXPECT_EQ(warmup({"--plan", plan, "--check"}).exit_code, 0);
  EXPECT_EQ(warmup(with(shapes(), {"--check"})).exit_code, 0);
}

// As a mounted ConfigMap has it: a link to a link.
TEST_F(PlanCli, IsReadThroughLinks) {
  const std::string plan = write_plan(shapes());
  std::filesystem::create_symlink(plan, folder_.path("data"));
  std::filesystem::create_symlink("data", folder_.path("link.json"));
  EXPECT_EQ(keys_of(document(warmup({"--plan", folder_.path("link.json"), "--dry-run", "--json"}))), keys_of_plan(plan));
}

// Neither library is opened: there is none to be found.
TEST_F(PlanCli, CheckAndDryRunNeedNoLibrary) {
  const std::string plan = write_plan(shapes());
  EXPECT_EQ(warmup({"--plan", plan}).exit_code, 0);
  environment_["GEMVJIT_NVRTC"] = folder_.path("no-nvrtc");
  environment_["GEMVJIT_LIBCUDA"] = folder_.path("no-libcuda");
  EXPECT_EQ(warmup({"--plan", plan, "--check"}).exit_code, 0);
  EXPECT_EQ(warmup({"--plan", plan, "--dry-run"}).exit_code, 0);
}

// Tables that choose otherwise for a shape do not change what a plan means.
TEST_F(PlanCli, MeansItsKeysWhateverTheTables) {
  const std::string plan = write_plan(shapes());
  replace_in(plan, "\"tuning_hash\": \"", "\"tuning_hash\": \"" + std::string(64, '0') + "\", \"x\": \"");
  EXPECT_EQ(warmup({"--plan", plan, "--check"}).exit_code, 2) << "an unknown field";
  write_plan(shapes());
  const json tables = json::parse(read_text(plan));
  replace_in(plan, std::string(tables["tuning_hash"]), std::string(64, '0'));
  const ProgramOutput output = warmup({"--plan", plan, "--json"});
  EXPECT_EQ(output.exit_code, 0) << output.err;
  EXPECT_EQ(keys_of(document(output)), keys_of_plan(plan));
  EXPECT_TRUE(contains(output.err, "other tuning tables")) << output.err;
}

TEST_F(PlanCli, BadPlansAreUsageErrors) {
  const std::string plan = write_plan(shapes());
  const std::string text = read_text(plan);
  const auto refused = [&](const Arguments& arguments, const std::string& message) {
    const ProgramOutput output = warmup(arguments);
    EXPECT_EQ(output.exit_code, 2) << output.out << output.err;
    EXPECT_TRUE(contains(output.err, message)) << message << "\n" << output.err;
    EXPECT_TRUE(entry_files(cache_dir_).empty());
  };
  refused({"--plan", folder_.path("absent")}, "absent");
  refused({"--plan", ""}, "--plan is empty");
  refused({"--plan", plan, "--shape", "64x64"}, "a plan says all");
  refused({"--plan", plan, "--arch", "sm_90a"}, "a plan says all");
  refused({"--any-digest", "--shape", "64x64", "--arch", "sm_90a"}, "--any-digest");
  replace_in(plan, "\"schema\": 1", "\"schema\": 7");
  refused({"--plan", plan}, "schema 7");
  std::ofstream(plan) << text;
  const std::string digest = json::parse(text)["keys"][0]["digest"];
  replace_in(plan, digest, std::string(64, '0'));
  refused({"--plan", plan}, "other kernel sources");
  refused({"--plan", plan, "--check"}, "other kernel sources");
  const ProgramOutput taken = warmup({"--plan", plan, "--any-digest"});
  EXPECT_EQ(taken.exit_code, 0) << taken.err;
  EXPECT_TRUE(contains(taken.err, "its keys count")) << taken.err;
}

TEST_F(PlanCli, ThatCannotBeWrittenIsExitFiveAndNothingIsDone) {
  const ProgramOutput output = warmup(with(shapes(), {"--plan-out", folder_.path("no/such/plan.json")}));
  EXPECT_EQ(output.exit_code, 5) << output.err;
  EXPECT_TRUE(entry_files(cache_dir_).empty());
}

TEST_F(PlanCli, ShardsOfAPlanAreDisjointAndCoverIt) {
  const std::string plan = write_plan(shapes());
  std::vector<std::string> together;
  for (const char* shard : {"0/3", "1/3", "2/3"}) {
    const ProgramOutput output = warmup({"--plan", plan, "--shard", shard, "--json"});
    EXPECT_EQ(output.exit_code, 0) << output.err;
    EXPECT_EQ(document(output)["summary"]["cached"], 0);
    for (const std::string& key : keys_of(document(output))) together.push_back(key);
  }
  std::sort(together.begin(), together.end());
  EXPECT_EQ(together, keys_of_plan(plan));
  EXPECT_EQ(warmup({"--plan", plan, "--shard", "99/100"}).exit_code, 0) << "a rank without a kernel";
}

TEST_F(PlanCli, MaxSecondsLeavesTheRestAndARerunGoesOn) {
  const std::string plan = write_plan(shapes());
  const ProgramOutput output = warmup({"--plan", plan, "--max-seconds", "0.001", "-j", "1", "--json"});
  EXPECT_EQ(output.exit_code, 9) << output.err;
  EXPECT_GT(document(output)["summary"]["left"], 0);
  EXPECT_EQ(warmup({"--plan", plan}).exit_code, 0);
}

TEST_F(PlanCli, AMissNamesTheNearestEntryAndTheFirstFieldThatDiffers) {
  const Arguments shape{"--shape", "64x4096", "--arch", "sm_90a"};
  const ProgramOutput none = warmup(with(shape, {"--nt", "1", "--check"}));
  EXPECT_TRUE(contains(none.out, "no entry is there")) << none.out;
  ASSERT_EQ(warmup(with(shape, {"--nt", "1"})).exit_code, 0);
  const ProgramOutput text = warmup(with(shape, {"--nt", "1,2", "--check"}));
  EXPECT_EQ(text.exit_code, 9);
  EXPECT_TRUE(contains(text.out, "first differing field nt: wanted 2, found 1")) << text.out;
  const json checked = document(warmup(with(shape, {"--nt", "1,2", "--check", "--json"})));
  int missing = 0;
  for (const json& result : checked["results"]) {
    if (result["status"] != "missing") {
      EXPECT_FALSE(result.contains("nearest"));
      continue;
    }
    ++missing;
    EXPECT_EQ(result["nearest"]["field"], "nt");
    EXPECT_EQ(result["nearest"]["wanted"], "2");
    EXPECT_TRUE(std::filesystem::exists(result["nearest"]["path"]));
  }
  EXPECT_EQ(missing, 1);
}

TEST_F(PlanCli, ADryRunSaysWhereEachComesFromAndHowLongTheRestTakes) {
  const Arguments layered{"--shape", "64x4096", "--arch", "sm_90a", "--nt", "1"};
  const std::string layer = folder_.path("layer");
  ASSERT_EQ(warmup(with(layered, {"--cache-dir", layer})).exit_code, 0);
  const json no_basis = document(warmup(with(layered, {"--dry-run", "--json"})));
  EXPECT_EQ(no_basis["summary"]["forecast"]["compiles"], 2);
  EXPECT_TRUE(no_basis["summary"]["forecast"]["seconds"].is_null());
  EXPECT_TRUE(contains(warmup(with(layered, {"--dry-run"})).out, "no entry tells how long that takes"));

  environment_["GEMVJIT_CACHE_RO"] = layer;
  ASSERT_EQ(warmup({"--shape", "128x4096:bf16", "--arch", "sm_90a", "--nt", "1"}).exit_code, 0);
  const json plan = document(warmup(
      {"--shape", "64x4096", "--shape", "128x4096:bf16", "--arch", "sm_90a", "--nt", "1,2", "--dry-run", "--json"}));
  std::map<std::string, int> from;
  for (const json& result : plan["results"]) {
    EXPECT_EQ(result["status"], "planned");
    EXPECT_EQ(result["error"], "");
    ++from[result["from"]];
    if (result["from"] == "layer") {
      EXPECT_EQ(result["from_place"], layer);
    }
    if (result["from"] == "cache") {
      EXPECT_EQ(result["from_place"], cache_dir_);
    }
  }
  EXPECT_EQ(from, (std::map<std::string, int>{{"layer", 2}, {"cache", 1}, {"compile", 2}}));
  const json& forecast = plan["summary"]["forecast"];
  EXPECT_EQ(forecast["from_cache"], 1);
  EXPECT_EQ(forecast["from_layers"], 2);
  EXPECT_EQ(forecast["jobs"], 1);
  EXPECT_TRUE(forecast["seconds"].is_number());
  EXPECT_EQ(forecast["without_basis"], 0);
  EXPECT_EQ(forecast["basis"].size(), 2u);
}

TEST_F(PlanCli, ADamagedEntryIsToBeCompiledInADryRun) {
  const Arguments shape{"--shape", "128x4096:bf16", "--arch", "sm_90a", "--nt", "1"};
  ASSERT_EQ(warmup(shape).exit_code, 0);
  damage(entry_files(cache_dir_).front());
  const ProgramOutput output = warmup(with(shape, {"--dry-run", "--json"}));
  EXPECT_EQ(output.exit_code, 0) << output.err;
  EXPECT_EQ(document(output)["results"][0]["from"], "compile");
  EXPECT_EQ(warmup(with(shape, {"--check"})).exit_code, 7);
}

TEST_F(PlanCli, GcKeepsWhatAPlanHas) {
  const std::string plan = write_plan({"--shape", "64x4096", "--arch", "sm_90a", "--nt", "1"});
  ASSERT_EQ(warmup(with(shapes(), {"-q"})).exit_code, 0);
  ASSERT_EQ(entry_files(cache_dir_).size(), 10u);
  const json dry = document(cache({"gc", "--keep-plan", plan, "--dry-run", "--json"}));
  EXPECT_EQ(dry["removed"].size(), 3u) << "of sm_90a only";
  EXPECT_EQ(entry_files(cache_dir_).size(), 10u);
  EXPECT_EQ(cache({"gc", "--keep-plan", plan}).exit_code, 0);
  EXPECT_EQ(entry_files(cache_dir_).size(), 7u);
  EXPECT_EQ(warmup({"--plan", plan, "--check"}).exit_code, 0);
  EXPECT_EQ(document(cache({"gc", "--keep-plan", plan, "--all-archs", "--json"}))["removed"].size(), 5u);
  EXPECT_EQ(warmup({"--plan", plan, "--check"}).exit_code, 0);
}

TEST_F(PlanCli, GcRemovesNothingByAPlanThatDoesNotFit) {
  const std::string plan = write_plan({"--shape", "64x4096", "--arch", "sm_90a", "--nt", "1"});
  ASSERT_EQ(warmup(with(shapes(), {"-q"})).exit_code, 0);
  const std::string digest = json::parse(read_text(plan))["keys"][0]["digest"];
  replace_in(plan, digest, std::string(64, '0'));
  EXPECT_EQ(cache({"gc", "--keep-plan", plan}).exit_code, 2);
  EXPECT_EQ(cache({"gc", "--keep-plan", folder_.path("absent")}).exit_code, 2);
  EXPECT_EQ(cache({"gc", "--keep-plan", plan, "--max-age", "1d"}).exit_code, 2);
  EXPECT_EQ(cache({"gc", "--all-archs", "--max-age", "1d"}).exit_code, 2);
  EXPECT_EQ(entry_files(cache_dir_).size(), 10u);
  EXPECT_EQ(document(cache({"gc", "--keep-plan", plan, "--any-digest", "--json"}))["removed"].size(), 3u);
}

}  // namespace
}  // namespace gemvjit::test
