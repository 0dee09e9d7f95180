#include "tools/common/printable.h"

#include <gtest/gtest.h>

namespace gemvjit::tools {
namespace {

TEST(Printable, KeepsWhatCanBeRead) {
  EXPECT_EQ(printable(""), "");
  EXPECT_EQ(printable("model.layers.0.weight"), "model.layers.0.weight");
  EXPECT_EQ(printable("Gr\u00f6\u00dfe \u6a21"), "Gr\u00f6\u00dfe \u6a21");
}

TEST(Printable, EscapesWhatATerminalWouldObey) {
  using namespace std::literals;
  EXPECT_EQ(printable("a\nb\tc\\d"), "a\\nb\\tc\\\\d");
  EXPECT_EQ(printable("\x1b[2J\0\x7f"sv), "\\x1b[2J\\x00\\x7f");
  EXPECT_EQ(printable("\u009b"), "\\x9b") << "the one-character form of ESC [";
  EXPECT_EQ(printable("\u202e"), "\\u202e");
  EXPECT_EQ(printable("\xff\xc3"), "\\xff\\xc3") << "no UTF-8";
  EXPECT_EQ(printable("\xc0\x8a"), "\\xc0\\x8a") << "a line feed in two bytes is no UTF-8";
}

TEST(Printable, CutsWhatIsLong) {
  EXPECT_EQ(printable(std::string(120, 'x')), std::string(120, 'x'));
  EXPECT_EQ(printable(std::string(121, 'x')), std::string(120, 'x') + "...");
  const std::string cut = printable(std::string(119, 'x') + "\u00e4\u00e4");
  EXPECT_EQ(cut, std::string(119, 'x') + "...") << "not inside a character";
}

TEST(Printable, AMessageKeepsItsLinesAndItsLength) {
  EXPECT_EQ(printable_message("a\n  b\tc\\d"), "a\n  b\tc\\d");
  EXPECT_EQ(printable_message("\x1b[31m \xff \xe2\x80\xae \r"), "\\x1b[31m \\xff \\u202e \\x0d");
  EXPECT_EQ(printable_message(std::string(1000, 'x')), std::string(1000, 'x'));
}

TEST(Printable, OnlyWhatIsNoUtf8IsReplaced) {
  EXPECT_EQ(valid_utf8("a\x1b\n\xc3\xa9"), "a\x1b\n\xc3\xa9");
  EXPECT_EQ(valid_utf8("a\xff\xc3"), "a\\xff\\xc3");
}

}  // namespace
}  // namespace gemvjit::tools
