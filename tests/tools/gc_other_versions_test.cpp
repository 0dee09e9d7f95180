// B52: gemvjit-cache gc and entries of other format versions.
#include <gtest/gtest.h>

#include "tests/tools/cli_fixture.h"

namespace gemvjit::test {
namespace {

class GcOtherVersions : public CliTest {
 protected:
  bool is_there() const { return std::filesystem::exists(foreign_); }
  const std::string foreign_ = folder_.write("cache/v2/sm_90a/ab/kernel.entry", "of another version");
};

TEST_F(GcOtherVersions, TheyStayUntilAsked) {
  for (const auto& arguments : std::vector<std::vector<std::string>>{{"gc", "--max-bytes", "0"},
                                                                     {"gc", "--max-age", "0s"},
                                                                     {"gc", "--arch", "sm_90a"},
                                                                     {"gc", "--other-versions", "--max-age", "30d"},
                                                                     {"gc", "--other-versions", "--max-bytes", "0"},
                                                                     {"rm", "--all"}}) {
    EXPECT_EQ(cache(arguments).exit_code, 0) << arguments.back();
    EXPECT_TRUE(is_there()) << arguments.back();
  }
  const auto dry = document(cache({"gc", "--other-versions", "--dry-run", "--json"}));
  ASSERT_EQ(dry["removed"].size(), 1u);
  EXPECT_EQ(dry["removed"][0]["path"], foreign_);
  EXPECT_TRUE(is_there());
  EXPECT_EQ(cache({"gc", "--other-versions"}).exit_code, 0);
  EXPECT_FALSE(is_there());
}

}  // namespace
}  // namespace gemvjit::test
