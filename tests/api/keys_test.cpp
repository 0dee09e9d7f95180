// Kernels by key: just these, whatever the tables say, with the same answers as by problem.
#include <algorithm>

#include "tests/api/api_fixture.h"

namespace gemvjit::test {
namespace {

struct Told {
  std::string key, match, error;
  int outcome, status;
  std::size_t index;
};

int keep(void* user, const gemvjit_kernel_info* info) {
  static_cast<std::vector<Told>*>(user)->push_back(
      {info->key, info->match, info->error, info->outcome, info->status, info->problem_index});
  return 0;
}

class KeysTest : public ApiTest {
 protected:
  // The kernels of a problem, by key.
  static std::vector<std::string> keys_of(gemvjit_context* context, const gemvjit_problem& problem) {
    std::vector<Told> told;
    EXPECT_EQ(gemvjit_plan(context, &problem, 1, keep, &told), GEMVJIT_OK) << gemvjit_last_error();
    std::vector<std::string> keys;
    for (const Told& one : told) keys.push_back(one.key);
    return keys;
  }
  static std::vector<const char*> pointers(const std::vector<std::string>& keys) {
    std::vector<const char*> all;
    for (const std::string& key : keys) all.push_back(key.c_str());
    return all;
  }
};

TEST_F(KeysTest, AreWarmedCheckedAndPlanned) {
  gemvjit_context* context = open();
  gemvjit_problem one = problem(GEMVJIT_BF16_GEMV, 1024, 2048);
  one.arch = "sm_120a";
  const std::vector<std::string> keys = keys_of(context, one);
  ASSERT_EQ(keys.size(), 3u);
  const auto texts = pointers(keys);
  std::vector<Told> told;
  EXPECT_EQ(gemvjit_plan_keys(context, texts.data(), 3, keep, &told), GEMVJIT_OK);
  ASSERT_EQ(told.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(told[i].key, keys[i]);
    EXPECT_EQ(told[i].match, "named");
    EXPECT_EQ(told[i].outcome, GEMVJIT_OUTCOME_MISSING);
    EXPECT_EQ(told[i].index, i);
  }
  EXPECT_EQ(gemvjit_check_keys(context, texts.data(), 3, nullptr, nullptr), GEMVJIT_NOT_READY);
  EXPECT_EQ(gemvjit_warmup_keys(context, texts.data(), 2, nullptr), GEMVJIT_OK) << gemvjit_last_error();
  told.clear();
  EXPECT_EQ(gemvjit_check_keys(context, texts.data(), 3, keep, &told), GEMVJIT_NOT_READY);
  EXPECT_EQ(std::count_if(told.begin(), told.end(), [](const Told& t) { return t.outcome == GEMVJIT_OUTCOME_CACHED; }),
            2);
  EXPECT_EQ(gemvjit_check(context, &one, 1, nullptr, nullptr), GEMVJIT_NOT_READY);
  EXPECT_EQ(gemvjit_warmup_keys(context, texts.data(), 3, nullptr), GEMVJIT_OK);
  EXPECT_EQ(gemvjit_check(context, &one, 1, nullptr, nullptr), GEMVJIT_OK) << "the same kernels";
}

TEST_F(KeysTest, OneThatIsNoneFailsAlone) {
  gemvjit_context* context = open();
  gemvjit_problem one = problem(GEMVJIT_BF16_GEMV, 1024, 2048);
  one.arch = "sm_120a";
  std::string foreign = keys_of(context, one).front();
  const std::string good = foreign;
  foreign.replace(foreign.find("-f") + 2, 1, "f");  // flags that no version makes
  const char* keys[] = {"nonsense", foreign.c_str(), nullptr, good.c_str(), good.c_str()};
  gemvjit_status statuses[5];
  gemvjit_warmup_options run{};
  run.struct_size = sizeof run;
  run.problem_status = statuses;
  EXPECT_EQ(gemvjit_warmup_keys(context, keys, 5, &run), GEMVJIT_INVALID_ARGUMENT);
  EXPECT_NE(std::string(gemvjit_last_error()).find("nonsense"), std::string::npos) << gemvjit_last_error();
  EXPECT_EQ(statuses[0], GEMVJIT_INVALID_ARGUMENT);
  EXPECT_NE(statuses[1], GEMVJIT_OK);
  EXPECT_EQ(statuses[2], GEMVJIT_INVALID_ARGUMENT);
  EXPECT_EQ(statuses[3], GEMVJIT_OK);
  EXPECT_EQ(statuses[4], GEMVJIT_OK);
  EXPECT_EQ(compilers.compiled(), std::vector<std::string>{good}) << "once";
}

TEST_F(KeysTest, ArgumentsAreChecked) {
  gemvjit_context* context = open();
  const char* key = "n64-k64-nt1-f0-sm_90a";
  EXPECT_EQ(gemvjit_warmup_keys(nullptr, &key, 1, nullptr), GEMVJIT_INVALID_ARGUMENT);
  EXPECT_EQ(gemvjit_check_keys(context, nullptr, 1, nullptr, nullptr), GEMVJIT_INVALID_ARGUMENT);
  EXPECT_EQ(gemvjit_plan_keys(context, &key, 1'000'001, nullptr, nullptr), GEMVJIT_INVALID_ARGUMENT);
  EXPECT_EQ(gemvjit_plan_keys(context, nullptr, 0, nullptr, nullptr), GEMVJIT_OK);
}

}  // namespace
}  // namespace gemvjit::test
