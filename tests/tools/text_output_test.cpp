#include <gtest/gtest.h>

#include "tools/common/human_units.h"
#include "tools/common/table.h"

namespace gemvjit::tools {
namespace {

TEST(Table, AlignsColumnsAndEndsNoLineWithASpace) {
  Table table({{"KEY"}, {"MS", Table::Align::right}, {"NOTE"}});
  EXPECT_TRUE(table.empty());
  table.add_row({"long-key", "7", "x"});
  table.add_row({"k", "1234", ""});
  EXPECT_EQ(table.text(),
            "KEY         MS  NOTE\n"
            "long-key     7  x\n"
            "k         1234\n");
}

TEST(HumanUnits, Bytes) {
  EXPECT_EQ(human_bytes(0), "0 B");
  EXPECT_EQ(human_bytes(1023), "1023 B");
  EXPECT_EQ(human_bytes(1536), "1.5 KiB");
  EXPECT_EQ(human_bytes(5u << 20), "5.0 MiB");
}

TEST(HumanUnits, Times) {
  EXPECT_EQ(human_seconds(0.24), "240 ms");
  EXPECT_EQ(human_seconds(4.2), "4.2 s");
  EXPECT_EQ(human_seconds(185), "3:05 min");
  EXPECT_EQ(human_age(-5), "0 s");
  EXPECT_EQ(human_age(59), "59 s");
  EXPECT_EQ(human_age(3 * 3600), "3 h");
  EXPECT_EQ(human_age(8 * 86400), "8 days");
}

}  // namespace
}  // namespace gemvjit::tools
