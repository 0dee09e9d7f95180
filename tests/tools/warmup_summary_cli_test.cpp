// The summary of gemvjit-warmup --json: counters of what is unusual are there where they are not 0, and only then.
#include "tests/tools/cli_fixture.h"

namespace gemvjit::test {
namespace {

using nlohmann::json;

using WarmupSummary = CliTest;

TEST_F(WarmupSummary, NamesWhatIsUnusualAndNothingElse) {
  const std::vector<std::string> usual{"cached", "compiled", "failed", "left", "seconds", "total"};
  const auto names = [](const json& object) {
    std::vector<std::string> found;
    for (const auto& [name, value] : object.items()) found.push_back(name);
    return found;
  };
  EXPECT_EQ(names(document(warm_one_kernel({"--json"}))["summary"]), usual);
  EXPECT_EQ(names(document(warm_one_kernel({"--json"}))["summary"]), usual);
  ASSERT_EQ(entry_files(cache_dir_).size(), 1u);
  damage(entry_files(cache_dir_).front());
  const json summary = document(warm_one_kernel({"--json"}))["summary"];
  EXPECT_EQ(summary["cache_damaged"], 1);
  EXPECT_EQ(summary["cache_quarantined"], 1);
  EXPECT_EQ(summary.size(), usual.size() + 2) << summary;
}

}  // namespace
}  // namespace gemvjit::test
