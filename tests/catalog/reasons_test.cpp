// The list of reasons in docs/tools.md is the one of reasons.inc.
#include "src/catalog/reasons.h"

#include <gtest/gtest.h>

#include <regex>
#include <set>

#include "src/base/files.h"

namespace gemvjit {
namespace {

// First cells of the table under the heading, without their backticks.
std::set<std::string> documented(const std::string& text) {
  const std::size_t begin = text.find("## Reasons\n"), end = text.find("\n## ", begin + 1);
  const std::string section = begin == std::string::npos ? "" : text.substr(begin, end - begin);
  const std::regex row("\n\\| `([a-z0-9_]+)` \\|");
  std::set<std::string> tokens;
  for (std::sregex_iterator i(section.begin(), section.end(), row), last; i != last; ++i) tokens.insert((*i)[1]);
  return tokens;
}

TEST(Reasons, ThePageListsEachAndNoOther) {
  const auto page = read_file(std::string(GEMVJIT_SOURCE_DIR) + "/docs/tools.md", 1 << 20);
  ASSERT_TRUE(page) << page.status().message();
  std::set<std::string> tokens;
  for (const Reason reason : all_reasons()) {
    EXPECT_TRUE(tokens.insert(std::string(reason_token(reason))).second);
    EXPECT_TRUE(std::regex_match(std::string(reason_token(reason)), std::regex("[a-z][a-z0-9_]*")));
    EXPECT_FALSE(reason_text(reason).empty());
  }
  EXPECT_EQ(documented(std::string(page->begin(), page->end())), tokens);
}

TEST(Reasons, AMissingRowWouldBeSeen) {
  EXPECT_TRUE(documented("## Other\n\n| `exact` | x |\n").empty());
  EXPECT_EQ(documented("## Reasons\n\n| `exact` | x |\n| `none` | x |\n\n## More\n| `named` | x |\n").size(), 2u);
}

}  // namespace
}  // namespace gemvjit
