// The nesting of JSON text, counted before a parser sees it.
#include "src/base/json_depth.h"

#include <gtest/gtest.h>

#include <string>

namespace gemvjit {
namespace {

TEST(JsonDepth, CountsObjectsAndLists) {
  EXPECT_FALSE(json_nests_deeper_than("", 0));
  EXPECT_FALSE(json_nests_deeper_than("12", 0));
  EXPECT_TRUE(json_nests_deeper_than("[]", 0));
  EXPECT_FALSE(json_nests_deeper_than("[]", 1));
  EXPECT_FALSE(json_nests_deeper_than(R"([{"a": [1]}, [[2]], {"b": {}}])", 3));
  EXPECT_TRUE(json_nests_deeper_than(R"([{"a": [1]}, [[2]], {"b": {}}])", 2));
  const std::string open(kMaxJsonLevels, '['), shut(kMaxJsonLevels, ']');
  EXPECT_FALSE(json_nests_deeper_than(open + shut, kMaxJsonLevels));
  EXPECT_TRUE(json_nests_deeper_than("[" + open + shut + "]", kMaxJsonLevels));
}

TEST(JsonDepth, BracketsOfStringsDoNotCount) {
  EXPECT_FALSE(json_nests_deeper_than(R"(["[[{{", "]"])", 1));
  EXPECT_FALSE(json_nests_deeper_than(R"(["\"[[", "\\"])", 1));
  EXPECT_TRUE(json_nests_deeper_than(R"(["\\", [1]])", 1));  // the escaped backslash ends no escape of the quote
  EXPECT_TRUE(json_nests_deeper_than(R"(["]", [1]])", 1));   // and a bracket of a string closes nothing
  EXPECT_FALSE(json_nests_deeper_than(R"(["cut short [[)", 1));
}

TEST(JsonDepth, TakesMillionsOfLevels) {
  EXPECT_TRUE(json_nests_deeper_than(std::string(5'000'000, '['), 4'999'999));
  EXPECT_FALSE(json_nests_deeper_than(std::string(5'000'000, '['), 5'000'000));
  EXPECT_FALSE(json_nests_deeper_than(std::string(5'000'000, ']'), 0));
}

}  // namespace
}  // namespace gemvjit
