// B49, B74: what a plan says is the same on every machine, and what is not one is refused with the field that is wrong.
#include "tools/cache_view/plan_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "src/compile/specialize.h"
#include "tests/support/temp_dir.h"

namespace gemvjit::tools {
namespace {

// A kernel that this version makes.
PlannedKernel kernel(std::int64_t n, std::vector<std::string> sources = {"shape"}, const char* arch = "sm_90a") {
  KernelKey key = *KernelKey::parse("n64-k4096-nt1-f0000410208848021-sm_90a");
  key.n = n;
  key.arch = *Arch::parse(arch);
  const auto recipe = specialize(key);
  EXPECT_TRUE(recipe) << recipe.status().message();
  return {recipe ? recipe->id() : EntryId{key, {}}, std::move(sources)};
}

Plan plan_of(std::vector<PlannedKernel> kernels) {
  Plan plan;
  plan.made_by = "gemvjit 1.2.3";
  plan.tuning_hash = std::string(64, 'a');
  plan.kernels = std::move(kernels);
  normalize(plan);
  return plan;
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const std::size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what << " is not in " << text;
  return at == std::string::npos ? text : text.replace(at, what.size(), by);
}

TEST(PlanFile, WhatIsWrittenIsReadAgain) {
  const Plan plan =
      plan_of({kernel(128, {"model m: layers.*.up", "shape \"x\"\n"}), kernel(64), kernel(64, {"b"}, "sm_120a")});
  const std::string text = write_plan(plan);
  const Result<Plan> read = parse_plan(text);
  ASSERT_TRUE(read) << read.status().message();
  EXPECT_EQ(write_plan(*read), text);
  ASSERT_EQ(read->kernels.size(), 3u);
  EXPECT_EQ(read->made_by, "gemvjit 1.2.3");
  EXPECT_EQ(read->tuning_hash, plan.tuning_hash);
  EXPECT_EQ(read->kernels[0].id.key.n, 128) << "sorted as texts";
  EXPECT_EQ(read->kernels[0].sources, (std::vector<std::string>{"model m: layers.*.up", "shape \"x\"\n"}));
  EXPECT_EQ(read->archs(), (std::vector<Arch>{{90, 'a'}, {120, 'a'}}));
}

TEST(PlanFile, TheOrderInWhichKernelsAreNamedDoesNotMatter) {
  const std::string one = write_plan(plan_of({kernel(64, {"a"}), kernel(128), kernel(64, {"b", "a"})}));
  EXPECT_EQ(write_plan(plan_of({kernel(128), kernel(64, {"b"}), kernel(64, {"a"})})), one);
}

TEST(PlanFile, SourcesAreBounded) {
  std::vector<std::string> many;
  for (int i = 0; i < 1000; ++i) many.push_back("layer " + std::to_string(i));
  many.push_back(std::string(5000, 'x'));
  many.emplace_back();
  many.emplace_back("no UTF-8: \xff");
  std::string umlauts;
  for (int i = 0; i < 200; ++i) umlauts += "\xc3\xa4";
  many.push_back("a" + umlauts);  // a cut in the middle of a letter would not be UTF-8
  const Plan plan = plan_of({kernel(64, many), kernel(128, {"a" + umlauts, "", "\xff"})});
  EXPECT_EQ(plan.kernels[1].sources.size(), kPlanSourceLimit);
  const auto read = parse_plan(write_plan(plan));
  ASSERT_TRUE(read) << read.status().message();
  EXPECT_EQ(write_plan(*read), write_plan(plan));
}

TEST(PlanFile, WhatIsNoPlanIsRefusedByName) {
  const std::string good = write_plan(plan_of({kernel(64), kernel(72)}));
  ASSERT_TRUE(parse_plan(good));
  const std::string key64 = kernel(64).id.key.text(), key72 = kernel(72).id.key.text();
  const std::pair<std::string, std::string> cases[] = {
      {"", "parse error"},
      {"[]", "object"},
      {"{}", "schema"},
      {good + "x", "parse error"},
      {std::string(10000, '['), "nested deeper"},
      {replaced(good, "\"schema\": 1", "\"schema\": 2"), "schema 2 is not known"},
      {replaced(good, "\"schema\": 1", "\"schema\": \"1\""), "schema \"1\""},
      {replaced(good, "\"schema\": 1", "\"schema\": 1.0"), "schema 1.0"},
      {replaced(good, "\"schema\": 1", "\"schema\": 1, \"schema\": 1"), "there twice"},
      {replaced(good, "\"made_by\"", "\"made\""), "made_by"},
      {replaced(good, "\"made_by\"", "\"more\": 1, \"made_by\""), "unknown field \"more\""},
      {replaced(good, "\"gemvjit 1.2.3\"", "3"), "made_by must be a string"},
      {replaced(good, "gemvjit 1.2.3", std::string(300, 'v')), "1 to 256"},
      {replaced(good, "aaaa", "AAAA"), "tuning_hash"},
      {replaced(good, "[\"sm_90a\"]", "[]"), "archs"},
      {replaced(good, "[\"sm_90a\"]", "[\"sm_80\", \"sm_90a\"]"), "archs"},
      {replaced(good, "[\"sm_90a\"]", "\"sm_90a\""), "archs must be a list"},
      {replaced(good, key64, "n64-k4096"), "keys[0].key"},
      {replaced(good, key64, "\\u001b[31m" + key64), "keys[0].key"},
      {replaced(good, key72, key64), "there twice"},
      {replaced(good, key64, replaced(key64, "n64", "n99")), "must be sorted"},
      {replaced(good, to_hex(kernel(64).id.digest), "12"), "keys[0].digest"},
      {replaced(good, "\"from\": [\"shape\"]", "\"from\": \"shape\""), "keys[0].from must be a list"},
      {replaced(good, "\"from\": [\"shape\"]", "\"from\": [7]"), "keys[0].from must be a string"},
      {replaced(good, "\"from\": [\"shape\"]", "\"from\": [\"b\", \"a\"]"), "keys[0].from must be sorted"},
      {replaced(good, "\"from\": [\"shape\"]", "\"form\": []"), "\"from\" is missing"},
      {R"({"schema": 1, "made_by": "x", "archs": [], "tuning_hash": ")" + std::string(64, 'a') + R"(", "keys": []})",
       "keys is empty"},
  };
  for (const auto& [text, message] : cases) {
    const auto read = parse_plan(text);
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.status().code(), StatusCode::invalid_argument);
    EXPECT_NE(read.status().message().find(message), std::string::npos) << message << "\n" << read.status().message();
    EXPECT_EQ(read.status().message().find('\x1b'), std::string::npos) << "fit for a terminal";
  }
}

// Any one byte changed: an answer, never a crash, and what is taken is written back the same or was white space.
TEST(PlanFile, AnyOneChangedByteHasAnAnswer) {
  const std::string good = write_plan(plan_of({kernel(64), kernel(72)}));
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (const char by : {'\0', '"', '{', '9', '\xff'}) {
      std::string changed = good;
      changed[at] = by;
      const auto read = parse_plan(changed);
      EXPECT_TRUE(!read || parse_plan(write_plan(*read))) << at;
    }
  }
}

class PlanOnDisk : public testing::Test {
 protected:
  std::string write(const std::string& text) const {
    std::ofstream(folder_.path("plan.json")) << text;
    return folder_.path("plan.json");
  }
  test::TempDir folder_;
};

TEST_F(PlanOnDisk, IsReadWithItsNameInFrontOfWhatIsWrong) {
  EXPECT_EQ(read_plan(folder_.path("absent")).status().code(), StatusCode::not_found);
  const auto wrong = read_plan(write("{}"));
  EXPECT_NE(wrong.status().message().find("plan.json"), std::string::npos);
  std::filesystem::resize_file(folder_.path("plan.json"), kPlanSizeLimit + 1);
  EXPECT_EQ(read_plan(folder_.path("plan.json")).status().code(), StatusCode::invalid_argument);
}

TEST_F(PlanOnDisk, OtherKernelSourcesAreAnErrorOrAWarning) {
  std::string warning;
  EXPECT_TRUE(read_fitting_plan(write(write_plan(plan_of({kernel(64)}))), false, warning));
  EXPECT_EQ(warning, "");
  PlannedKernel other = kernel(72);
  other.id.digest[0] ^= 1;
  const std::string path = write(write_plan(plan_of({kernel(64), other})));
  const auto refused = read_fitting_plan(path, false, warning);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.status().code(), StatusCode::invalid_argument);
  for (const std::string& part : {other.id.key.text(), std::string("1 of its 2 keys"), std::string("gemvjit 1.2.3")}) {
    EXPECT_NE(refused.status().message().find(part), std::string::npos) << refused.status().message();
  }
  EXPECT_TRUE(read_fitting_plan(path, true, warning));
  EXPECT_NE(warning.find(other.id.key.text()), std::string::npos);
}

TEST_F(PlanOnDisk, AKeyThatThisVersionDoesNotMakeIsNamed) {
  PlannedKernel foreign = kernel(64);
  foreign.id.key.flags |= std::uint64_t{1} << 63;
  std::string warning;
  for (const bool any_digest : {false, true}) {
    const auto refused = read_fitting_plan(write(write_plan(plan_of({foreign}))), any_digest, warning);
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.status().message().find("makes no kernel " + foreign.id.key.text()), std::string::npos)
        << refused.status().message();
  }
}

}  // namespace
}  // namespace gemvjit::tools
