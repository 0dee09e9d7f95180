// What a stream may be given: colors, redrawing, widths; and what is perhaps meant by a mistyped word.
#include "tools/common/terminal.h"

#include <gtest/gtest.h>

#include "src/base/suggestion.h"
#include "tools/common/table.h"

namespace gemvjit::tools {
namespace {

StreamFacts terminal_facts() {
  return {.is_terminal = true, .terminal_columns = 120, .no_color = "", .term = "xterm", .columns = ""};
}

TEST(Terminal, IsColoredUnlessSomethingSaysNo) {
  StreamFacts facts = terminal_facts();
  EXPECT_TRUE(stream_style(facts, ColorChoice::automatic).color);
  EXPECT_FALSE(stream_style(facts, ColorChoice::never).color);
  facts.no_color = "0";  // whatever it is set to
  EXPECT_FALSE(stream_style(facts, ColorChoice::automatic).color);
  EXPECT_TRUE(stream_style(facts, ColorChoice::always).color) << "the option decides before the variable";
  facts = terminal_facts();
  for (const char* term : {"dumb", ""}) {
    facts.term = term;
    EXPECT_FALSE(stream_style(facts, ColorChoice::automatic).color) << term;
    EXPECT_FALSE(stream_style(facts, ColorChoice::always).can_redraw) << term;
  }
  facts = terminal_facts();
  facts.is_terminal = false;
  EXPECT_FALSE(stream_style(facts, ColorChoice::automatic).color);
  EXPECT_FALSE(stream_style(facts, ColorChoice::automatic).can_redraw);
  EXPECT_TRUE(stream_style(facts, ColorChoice::always).color);
}

TEST(Terminal, WidthIsTheKernelsThenColumnsThen80) {
  StreamFacts facts = terminal_facts();
  facts.columns = "60";
  EXPECT_EQ(stream_style(facts, ColorChoice::never).columns, 120u);
  facts.terminal_columns = 0;
  EXPECT_EQ(stream_style(facts, ColorChoice::never).columns, 60u);
  for (const char* odd : {"", "0", "-5", "60x", "99999999999999999999", "1000000"}) {
    facts.columns = odd;
    EXPECT_EQ(stream_style(facts, ColorChoice::never).columns, 80u) << odd;
  }
  facts.is_terminal = false;
  facts.columns = "60";
  EXPECT_EQ(stream_style(facts, ColorChoice::never).columns, 0u) << "what reads a pipe wants whole lines";
}

TEST(Terminal, PaintsWordsAndPrefixes) {
  EXPECT_EQ(paint("ok", Paint::good, true), "\x1b[32mok\x1b[0m");
  EXPECT_EQ(paint("ok", Paint::good, false), "ok");
  EXPECT_EQ(paint("ok", Paint::none, true), "ok");
  EXPECT_EQ(paint_prefix("warning: x", true), "\x1b[33mwarning:\x1b[0m x");
  EXPECT_EQ(paint_prefix("gemvjit error: x", true), "gemvjit \x1b[31merror:\x1b[0m x");
  EXPECT_EQ(paint_prefix("no warning: x", true), "no warning: x");
  EXPECT_EQ(paint_prefix("warning: x", false), "warning: x");
}

TEST(Terminal, LongTextLosesItsMiddle) {
  EXPECT_EQ(shorten_middle("abcdefghij", 10), "abcdefghij");
  EXPECT_EQ(shorten_middle("abcdefghij", 9), "abc...hij");
  EXPECT_EQ(shorten_middle("abcdefghij", 0), "abcdefghij");
  EXPECT_EQ(shorten_middle("abcdefghij", 4), "abcd");
  for (std::size_t columns = 1; columns < 12; ++columns) {
    EXPECT_LE(shorten_middle("abcdefghij", columns).size(), columns);
  }
}

TEST(Terminal, ATableIsPaintedAndNarrowedForATerminalOnly) {
  Table table({Table::Column{.title = "KEY", .can_shorten = true},
               Table::Column{.title = "STATUS", .paint = [](std::string_view) { return Paint::bad; }},
               {"MS", Table::Align::right}});
  const std::string key = "n4096-k14336-nt1-f0000410208848021-sm_90a";
  table.add_row({key, "failed", "7"});
  EXPECT_NE(table.text().find(key), std::string::npos);
  const std::string plain = table.text({.is_terminal = true, .columns = 40});
  for (std::size_t begin = 0; begin < plain.size();) {
    const std::size_t end = plain.find('\n', begin);
    EXPECT_LE(end - begin, 40u) << plain;
    begin = end + 1;
  }
  EXPECT_NE(plain.find("..."), std::string::npos);
  const std::string colored = table.text({.is_terminal = true, .color = true, .columns = 40});
  EXPECT_NE(colored.find("\x1b[31mfailed\x1b[0m"), std::string::npos) << colored;
  EXPECT_EQ(colored.find("\x1b[31mSTATUS"), std::string::npos);
  std::string stripped = colored;
  for (const std::string escape : {"\x1b[31m", "\x1b[0m"}) stripped.erase(stripped.find(escape), escape.size());
  EXPECT_EQ(stripped, plain) << "colors take no room";
}

TEST(Terminal, ATableThatStillDoesNotFitLosesItsLastSpareColumns) {
  Table table({Table::Column{.title = "KEY", .can_shorten = true},
               Table::Column{.title = "SPARE", .can_drop = true},
               {"KEPT"},
               Table::Column{.title = "LAST", .can_drop = true}});
  table.add_row({"n4096-k14336-nt1-f0000410208848021-sm_90a", "spare", "kept", "last"});
  const auto titles = [&](std::size_t columns) {
    const std::string text = table.text({.is_terminal = true, .columns = columns});
    return text.substr(0, text.find('\n'));
  };
  EXPECT_EQ(titles(0).size(), 41u + 2 + 5 + 2 + 4 + 2 + 4);
  EXPECT_EQ(titles(35).size(), 35u) << "the key alone makes room";
  EXPECT_EQ(titles(34), "KEY               SPARE  KEPT");
  EXPECT_EQ(titles(28), "KEY               KEPT");
}

TEST(Terminal, CellsEscapeWhatWouldSteerIt) {
  Table table({{"A"}, {"B"}});
  table.add_row({"x\x1b[31m\ny\t", "back\\slash"});
  EXPECT_EQ(table.text(), "A               B\nx\\x1b[31m\\ny\\t  back\\slash\n");
}

TEST(Terminal, WordsAreWrapped) {
  EXPECT_EQ(wrap_words("one two three four\n", 0), "one two three four\n");
  EXPECT_EQ(wrap_words("one two three four\n", 9), "one two\n  three\n  four\n");
  EXPECT_EQ(wrap_words("averylongword a\nb", 5), "averylongword\n  a\nb");
  EXPECT_EQ(wrap_words("", 5), "");
}

TEST(Terminal, NoCharacterIsCutInTwo) {
  const std::string text = "\u00e4\u00f6\u00fc\u00e4\u00f6\u00fc\u00e4\u00f6\u00fc";
  for (std::size_t columns = 5; columns < text.size(); ++columns) {
    const std::string cut = shorten_middle(text, columns);
    EXPECT_LE(cut.size(), columns);
    const std::size_t dots = cut.find("...");
    ASSERT_NE(dots, std::string::npos);
    EXPECT_EQ(dots % 2, 0u) << cut;
    EXPECT_EQ((cut.size() - dots - 3) % 2, 0u) << cut;
  }
}

TEST(Suggestion, CountsEdits) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("abc", ""), 3u);
  EXPECT_EQ(edit_distance("abc", "abc"), 0u);
  EXPECT_EQ(edit_distance("abc", "acb"), 1u) << "a swap";
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("--modle", "--model"), 1u);
  EXPECT_EQ(edit_distance("abcd", "dcba"), 3u) << "two letters replaced, two swapped";
}

TEST(Suggestion, NamesTheNearestWordIfOneIsNear) {
  const std::vector<std::string> words{"vllm", "sglang", "trtllm", "none"};
  EXPECT_EQ(nearest_word("vlm", words), "vllm");
  EXPECT_EQ(nearest_word("SGLang", words), "sglang");
  EXPECT_EQ(nearest_word("sglnag", words), "sglang");
  EXPECT_EQ(nearest_word("tensorrt", words), "");
  EXPECT_EQ(nearest_word("", words), "");
  EXPECT_EQ(nearest_word(std::string(1000, 'x'), words), "");
  EXPECT_EQ(nearest_word("z", {"y"}), "") << "of one letter nothing would be left";
  EXPECT_EQ(did_you_mean("vlm", words), " (did you mean vllm?)");
  EXPECT_EQ(did_you_mean("qqqqqq", words), "");
}

}  // namespace
}  // namespace gemvjit::tools
