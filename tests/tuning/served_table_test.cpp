#include "src/tuning/served_table.h"

#include <gtest/gtest.h>

#include <thread>

namespace gemvjit {
namespace {

constexpr const char* kTable = R"({
  "schema": 1, "archs": ["sm_90a"], "measurements": {}, "entries": [],
  "defaults": [{"family": "nvfp4_gemv", "tile": {}}, {"family": "bf16_gemv", "tile": {}}]
})";
constexpr const char* kWrongTable = R"({"archs": ["sm_90a"], "schema": 2})";

TEST(ListedArchs, ReadsNoFurtherThanTheList) {
  const auto of = [](const std::string& text) { return listed_archs("my.json", text); };
  const std::vector<std::string> two = {"sm_90", "sm_90a"};
  EXPECT_EQ(*of(R"({"archs": ["sm_90", "sm_90a"], "entries": nonsense)"), two);
  EXPECT_EQ(*of(R"({"x": {"archs": ["sm_80"]}, "y": [["archs"], "archs", []], "archs": ["sm_90", "sm_90a"]})"), two);
  EXPECT_TRUE(of(R"({"archs": []})")->empty());
  for (const char* none : {"", "[]", "[\"archs\", [\"sm_90\"]]", "{\"archs\": \"sm_90\"}",
                           "{\"archs\": null, \"x\": [1]}", "{\"archs\": [\"sm_90\"", "{\"x\": {\"archs\": []}}"}) {
    EXPECT_EQ(of(none).status().code(), StatusCode::invalid_argument) << none;
  }
}

TEST(ServedTable, SaysWhatIsWrongWithItsRowsWhenTheyAreAskedFor) {
  const auto table = ServedTable::parsed_later("my.json", kWrongTable);
  ASSERT_TRUE(table);
  EXPECT_TRUE((*table)->serves("sm_90a"));
  EXPECT_FALSE((*table)->serves("sm_80"));
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ((*table)->rows().status().code(), StatusCode::invalid_argument);
    EXPECT_NE((*table)->rows().status().message().find("my.json"), std::string::npos);
  }
}

TEST(ServedTable, ThreadsThatAskAtOnceGetTheSameRows) {
  const auto table = *ServedTable::parsed_later("my.json", kTable);
  std::vector<const IndexedTable*> seen(8);
  std::vector<std::thread> threads;
  for (const IndexedTable*& one : seen) threads.emplace_back([&] { one = *table->rows(); });
  for (std::thread& thread : threads) thread.join();
  for (const IndexedTable* one : seen) EXPECT_EQ(one, seen[0]);
  EXPECT_EQ(seen[0]->defaults.size(), 2u);
}

}  // namespace
}  // namespace gemvjit
