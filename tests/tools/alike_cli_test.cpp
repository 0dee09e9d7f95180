// What all commands of the tools do alike: escape what they quote, take any spelling of a target, fit a terminal,
// color.
#include <sstream>

#include "tests/tools/cli_entries.h"
#include "tests/tools/cli_fixture.h"
#include "tests/tools/pseudo_terminal.h"

namespace gemvjit::test {
namespace {

using nlohmann::json;

class AlikeCli : public CliTest {
 protected:
  void put_entries(std::initializer_list<const char*> archs) {
    const auto store = make_dir_store(cache_dir_, Log::silent());
    for (const char* arch : archs) {
      Entry entry = cli_entry(64);
      if (entry.id.key.arch.text() != arch) {
        const auto recipe = specialize(*KernelKey::parse(std::string("n64-k64-nt0-f0000000000000003-") + arch));
        ASSERT_TRUE(recipe) << recipe.status().message();
        entry.id = recipe->id();
      }
      ASSERT_TRUE(store->put(entry));
    }
  }
  std::size_t collected(const std::string& arch) const {
    return document(cache({"gc", "--arch", arch, "--dry-run", "--json"}))["removed"].size();
  }
};

// A table of the user's own is text from a file like any other.
TEST_F(AlikeCli, WhatATuningTableSaysIsEscapedByExplain) {
  const std::string tables = folder_.path("tables");
  std::filesystem::create_directory(tables);
  // The built-in table with other words in one row.
  json table = json::parse(read_text(std::string(GEMVJIT_SOURCE_DIR) + "/tuning_tables/sm_90a.json"));
  json& row = table["entries"][0];
  row["alternative"] = "x\x1b]0;title\x07\nforged: line";
  write_text(tables + "/sm_90a.json", table.dump());
  environment_["GEMVJIT_TUNING_DIR"] = tables;
  const ProgramOutput output = cache({"explain", row["n"].dump(), row["k"].dump(), "1", "--arch", "hopper"});
  EXPECT_TRUE(contains(output.out, "x\\x1b]0;title\\x07\\nforged: line")) << output.out << output.err;
  EXPECT_EQ(output.out.find_first_of("\x1b\x07"), std::string::npos) << output.out;
  EXPECT_FALSE(contains(output.out, "\nforged")) << output.out;
}

// B139: one parser for all.
TEST_F(AlikeCli, GcAndExportTakeTargetsInAnySpelling) {
  put_entries({"sm_90a", "sm_100a", "sm_120a", "sm_80"});
  for (const char* name : {"hopper", "9.0a", "SM90A", "compute_90a"}) EXPECT_EQ(collected(name), 1u) << name;
  EXPECT_EQ(collected("blackwell"), 2u);
  const std::string bundle = folder_.path("b.gjb");
  const json exported = document(cache({"export", bundle, "--arch", "blackwell", "--json"}));
  EXPECT_EQ(exported["entries"], 2);
  EXPECT_EQ(cache({"export", bundle, "--arch", "ada"}).exit_code, 4);
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"gc", "--dry-run"}, {"export", bundle}, {"explain", "64", "64", "1"}}) {
    std::vector<std::string> arguments = command;
    arguments.insert(arguments.end(), {"--arch", "hoper"});
    const ProgramOutput misspelt = cache(arguments);
    EXPECT_EQ(misspelt.exit_code, 2);
    EXPECT_TRUE(contains(misspelt.err, "did you mean hopper?")) << misspelt.err;
    arguments.back() = "sm_90f";
    EXPECT_TRUE(contains(cache(arguments).err, "no NVRTC builds for sm_90f")) << command.front();
  }
}

TEST_F(AlikeCli, ATargetThatCannotBeHadIsNoted) {
  for (const auto& [arch, note] : {std::pair{"sm_90f", "no NVRTC builds for sm_90f"},
                                   std::pair{"sm_999", "no target sm_999 is known to this version"}}) {
    const ProgramOutput planned = warmup({"--shape", "64x64:dequant", "--arch", arch, "--dry-run"});
    EXPECT_EQ(planned.exit_code, 0);
    EXPECT_TRUE(contains(planned.err, note)) << planned.err;
    EXPECT_FALSE(contains(planned.err, "looks for")) << planned.err;
  }
}

// The message of a machine without NVRTC names no version that would be refused.
TEST_F(AlikeCli, NoNvrtcIsNamedThatWouldBeRefused) {
  environment_["GEMVJIT_NVRTC"] = folder_.path("none");
  const ProgramOutput output = warmup({"--shape", "64x64:dequant", "--arch", "80"});
  EXPECT_EQ(output.exit_code, 5);
  EXPECT_FALSE(contains(output.err, "NVRTC 11")) << output.err;
  EXPECT_TRUE(contains(output.err, "NVRTC 12.9 and newer build for sm_80")) << output.err;
}

TEST_F(AlikeCli, TablesOfTheCacheToolFitATerminal) {
  put_entries({"sm_90a", "sm_100a"});
  environment_["TERM"] = "xterm";
  environment_["NO_COLOR"] = "1";
  for (const char* command : {"ls", "stats", "config"}) {
    const TerminalOutput shown = run_on_terminal({GEMVJIT_CACHE_BINARY, command}, environment_, 60);
    if (shown.exit_code < 0) GTEST_SKIP() << "no pseudo-terminal here";
    std::istringstream lines(shown.screen);
    for (std::string line; std::getline(lines, line);) {
      // Of the lines that are tables; others name folders.
      if (contains(line, "/")) continue;
      EXPECT_LE(line.size(), 61u) << command << ": " << line;  // with the terminal's \r
    }
  }
  EXPECT_TRUE(contains(cache({"ls"}).out, cli_entry_key)) << "a pipe has keys whole";
}

TEST_F(AlikeCli, ThePreviewFitsATerminal) {
  environment_["TERM"] = "xterm";
  environment_["GEMVJIT_NVRTC"] = folder_.path("none");
  const TerminalOutput shown = run_on_terminal(
      {GEMVJIT_WARMUP_BINARY, "--shape", "64x64:dequant", "--arch", "sm_90a", "--color=never"}, environment_, 60);
  if (shown.exit_code < 0) GTEST_SKIP() << "no pseudo-terminal here";
  std::istringstream lines(shown.screen.substr(0, shown.screen.find("gemvjit-warmup:")));
  bool has_table = false;
  for (std::string line; std::getline(lines, line);) {
    if (contains(line, "\x1b") || contains(line, "/")) continue;
    EXPECT_LE(line.size(), 61u) << line;
    has_table = has_table || contains(line, "COMPILE");
  }
  EXPECT_TRUE(has_table) << shown.screen;
}

TEST_F(AlikeCli, ColorAlwaysColorsWordsOfStateOfTheCacheTool) {
  put_entries({"sm_90a"});
  EXPECT_EQ(cache({"verify"}).out.find('\x1b'), std::string::npos);
  damage(entry_files(cache_dir_).at(0));
  EXPECT_TRUE(contains(cache({"verify", "--color=always"}).out, "\x1b[31mDAMAGED\x1b[0m "));
  EXPECT_TRUE(contains(cache({"--color=always", "ls"}).out, "\x1b[31mDAMAGED\x1b[0m "));
  EXPECT_FALSE(contains(cache({"verify", "--color=never"}).out, "\x1b"));
  EXPECT_TRUE(contains(cache({"explain", cli_entry_key, "--color=always"}).out, "\x1b[31mdamaged\x1b[0m"));
}

TEST_F(AlikeCli, AMessageNamesItsPathOnce) {
  const auto count = [](const std::string& text, const std::string& part) {
    std::size_t found = 0;
    for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++found;
    return found;
  };
  const std::string absent = folder_.path("absent");
  const ProgramOutput plan = warmup({"--plan", absent, "--dry-run"});
  EXPECT_EQ(plan.exit_code, 2);
  EXPECT_TRUE(contains(plan.err, "plan " + absent + ": ")) << plan.err;
  const std::string broken = folder_.write("broken.json", "{\n\"schema\": ");
  const ProgramOutput unparsed = warmup({"--plan", broken, "--dry-run"});
  EXPECT_FALSE(contains(unparsed.err, "json.exception")) << unparsed.err;
  EXPECT_TRUE(contains(unparsed.err, "line 2")) << unparsed.err;
  put_entries({"sm_90a"});
  environment_["GEMVJIT_CACHE_RO"] = broken;
  const std::string deep = cache({"verify", "--deep"}).out;
  EXPECT_EQ(count(deep, broken), 1u) << deep;
}

TEST_F(AlikeCli, ADashIsNoFileToWrite) {
  put_entries({"sm_90a"});
  for (const ProgramOutput& output : {warmup({"--shape", "64x64", "--arch", "90a", "--dry-run", "--plan-out", "-"}),
                                      cache({"export", "-"}), cache({"disasm", cli_entry_key, "--cubin", "-"})}) {
    EXPECT_EQ(output.exit_code, 2);
    EXPECT_TRUE(contains(output.err, "no name for stdout")) << output.err;
  }
  EXPECT_FALSE(std::filesystem::exists("-"));
}

TEST_F(AlikeCli, ExplainSaysWhatIsWrongWithAShapeAndWhyNothingServesIt) {
  const ProgramOutput large = cache({"explain", "99999999999999999999", "1", "1", "--arch", "sm_90a"});
  EXPECT_EQ(large.exit_code, 2);
  EXPECT_TRUE(contains(large.err, "99999999999999999999 is too large a number")) << large.err;
  EXPECT_TRUE(contains(cache({"explain", "64", "x", "1", "--arch", "sm_90a"}).err, "x is no number"));
  const ProgramOutput none = cache({"explain", "4096", "4096", "1", "--tuned-only", "--arch", "ada"});
  EXPECT_EQ(none.exit_code, 4);
  EXPECT_FALSE(contains(none.out, "none, none")) << none.out;
  EXPECT_TRUE(contains(none.out, "choice: none: no kernel serves it")) << none.out;
}

}  // namespace
}  // namespace gemvjit::test
