// Manual pages and completions: as the build makes them, for the tools as they are.
#include <algorithm>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "tests/tools/cli_fixture.h"
#include "tools/common/cli_page.h"

namespace gemvjit::test {
namespace {

const std::string kShare = std::string(GEMVJIT_BINARY_DIR) + "/share/";
const std::vector<std::string> kTools{"gemvjit-bench", "gemvjit-cache", "gemvjit-tune", "gemvjit-verify",
                                      "gemvjit-warmup"};

ProgramOutput shell(const std::string& command, const Environment& environment = {}) {
  return run_program({"/bin/sh", "-c", command}, environment);
}
bool is_installed(const std::string& program) { return shell("command -v " + program).exit_code == 0; }
std::string tool_path(const std::string& tool) { return std::string(GEMVJIT_BINARY_DIR) + "/bin/" + tool; }
std::string man_path(const std::string& tool) { return kShare + "man/man1/" + tool + ".1"; }

// "  -q,--quiet Excludes: --verbose", "  --no-ceilings{false}".
std::set<std::string> options_of(const std::string& help) {
  std::set<std::string> options;
  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("  -")) continue;
    std::istringstream names(line.substr(2, line.find_first_of(" {", 2) - 2));
    for (std::string name; std::getline(names, name, ',');) options.insert(name);
  }
  return options;
}

std::string without_roff_minus(std::string text) {
  for (std::size_t at = 0; (at = text.find("\\-", at)) != std::string::npos;) text.erase(at, 1);
  return text;
}

// The replies of a completion in a bash of its own. `words`: the command line, the last of it being typed.
std::vector<std::string> completed_by_bash(const std::string& tool, const std::vector<std::string>& words) {
  std::string array;
  for (const std::string& word : words) array += " '" + word + "'";
  const std::string function = "_" + std::regex_replace(tool, std::regex("-"), "_");
  const std::string script = ". '" + kShare + "bash-completion/completions/" + tool + "'; complete -p " + tool +
                             " >&2 || exit 1; COMP_WORDS=(" + array + "); COMP_CWORD=$((${#COMP_WORDS[@]}-1)); " +
                             function + "; printf '%s\\n' \"${COMPREPLY[@]}\"";
  const ProgramOutput output = run_program({"/bin/bash", "-c", script});
  EXPECT_EQ(output.exit_code, 0) << output.err;
  EXPECT_TRUE(contains(output.err, function)) << "complete -p: " << output.err;
  std::vector<std::string> replies;
  std::istringstream lines(output.out);
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty()) replies.push_back(line);
  }
  return replies;
}

bool has(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

TEST(CliPages, ManPagesHaveNoWarnings) {
  if (!is_installed("groff")) GTEST_SKIP() << "groff is not installed";
  for (const std::string& tool : kTools) {
    const ProgramOutput output = shell("groff -man -ww -z -Tutf8 '" + man_path(tool) + "'");
    EXPECT_EQ(output.exit_code, 0);
    EXPECT_EQ(output.err, "") << tool;
    EXPECT_GT(read_text(man_path(tool)).size(), 500u);
  }
  const ProgramOutput config = shell("groff -man -ww -z -Tutf8 '" + kShare + "man/man5/gemvjit-config.5'");
  EXPECT_EQ(config.err, "");
  // The check can fail.
  TempDir folder;
  EXPECT_NE(shell("groff -man -ww -z -Tutf8 '" + folder.write("bad.1", ".TH X 1\n.nosuchrequest\n") + "'").err, "");
}

TEST(CliPages, EveryOptionOfTheHelpIsInTheManPage) {
  for (const std::string& tool : kTools) {
    const std::string page = without_roff_minus(read_text(man_path(tool)));
    std::vector<std::string> helps{run_program({tool_path(tool), "--help"}).out};
    if (tool == "gemvjit-cache") {
      for (const char* command : {"gc", "verify", "rm", "export", "config"}) {
        EXPECT_TRUE(contains(page, std::string("\n.SS ") + command + "\n")) << command;
        helps.push_back(run_program({tool_path(tool), command, "--help"}).out);
      }
    }
    for (const std::string& help : helps) {
      const std::set<std::string> options = options_of(help);
      EXPECT_GE(options.size(), 1u) << help;
      for (const std::string& option : options) {
        EXPECT_TRUE(std::regex_search(page, std::regex("\\\\fB(?:[^\\\\\n]*, )?" + option + "[,\\\\]")))
            << tool << " " << option;
      }
    }
    EXPECT_TRUE(contains(page, ".SH EXIT STATUS")) << tool;
    EXPECT_TRUE(contains(page, ".SH EXAMPLES")) << tool;
  }
  const std::string config = read_text(kShare + "man/man5/gemvjit-config.5");
  EXPECT_TRUE(contains(config, "GEMVJIT_CACHE_DIR"));
  EXPECT_TRUE(contains(config, "cache_signatures"));
}

// Cells of the table under "Exit codes", without what markdown needs: code -> tool -> words.
std::map<std::string, std::map<std::string, std::string>> documented_exit_codes() {
  std::istringstream lines(read_text(std::string(GEMVJIT_SOURCE_DIR) + "/docs/tools.md"));
  std::map<std::string, std::map<std::string, std::string>> rows;
  std::vector<std::string> titles;
  bool is_there = false;
  for (std::string line; std::getline(lines, line);) {
    is_there = (is_there || line == "## Exit codes") && (titles.empty() || line.starts_with('|'));
    if (!is_there || !line.starts_with("| ")) continue;
    std::vector<std::string> cells;
    std::string cell;
    for (std::size_t i = 1; i < line.size(); ++i) {
      if (line[i] == '|' && line[i - 1] != '\\') {
        const std::size_t begin = cell.find_first_not_of(' '), end = cell.find_last_not_of(' ');
        cells.push_back(begin == std::string::npos ? "" : cell.substr(begin, end - begin + 1));
        cell.clear();
      } else if (line[i] != '`' && !(line[i] == '\\' && line[i + 1] == '|')) {
        cell += line[i];
      }
    }
    if (titles.empty()) {
      titles = cells;
      continue;
    }
    for (std::size_t i = 1; i < cells.size(); ++i) {
      if (!cells[i].empty()) rows[cells[0]][titles[i]] = cells[i];
    }
  }
  return rows;
}

std::string one_line(const std::string& text) { return std::regex_replace(text, std::regex("\\s+"), " "); }

TEST(CliPages, ExitCodesAreTheSameInHelpPageAndDocument) {
  const auto documented = documented_exit_codes();
  ASSERT_GE(documented.size(), 11u);
  for (const std::string tool : {"gemvjit-warmup", "gemvjit-cache", "gemvjit-verify"}) {
    const std::string help = run_program({tool_path(tool), "--help"}).out;
    std::string expected = "Exit codes:";
    const std::string page = one_line(without_roff_minus(read_text(man_path(tool))));
    for (const int code : {0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 130}) {
      const auto row = documented.find(std::to_string(code));
      ASSERT_NE(row, documented.end()) << code;
      if (!row->second.contains(tool)) continue;
      expected += " " + row->first + " " + row->second.at(tool);
      EXPECT_TRUE(contains(page, ".TP .B " + row->first + " " + row->second.at(tool).substr(0, 12))) << tool << code;
    }
    EXPECT_TRUE(contains(one_line(help), expected + " Examples:")) << tool << "\n" << help << "\n" << expected;
  }
}

TEST(CliPages, HelpShowsNoInternals) {
  for (const std::string& tool : kTools) {
    const std::string help = run_program({tool_path(tool), "--help"}).out;
    for (const char* internal : {"{", "}", "(default:"}) EXPECT_FALSE(contains(help, internal)) << tool << internal;
    const ProgramOutput dumped = run_program({tool_path(tool), "--dump-cli", "nonsense"});
    EXPECT_EQ(dumped.exit_code, 2);
    EXPECT_TRUE(contains(dumped.err, "accepted: man, bash, zsh, fish")) << dumped.err;
  }
}

TEST(CliPages, BashCompletesOptionsValuesAndCommands) {
  if (!is_installed("bash")) GTEST_SKIP() << "bash is not installed";
  for (const std::string& tool : kTools) {
    const std::vector<std::string> replies = completed_by_bash(tool, {tool, "--"});
    for (const std::string& option : options_of(run_program({tool_path(tool), "--help"}).out)) {
      if (option.starts_with("--")) {
        EXPECT_TRUE(has(replies, option)) << tool << " " << option;
      }
    }
    EXPECT_FALSE(has(replies, "--dump-cli")) << "for the build alone";
  }
  using Words = std::vector<std::string>;
  EXPECT_EQ(completed_by_bash("gemvjit-warmup", {"gemvjit-warmup", "--max"}), Words({"--max-seconds"}));
  EXPECT_EQ(completed_by_bash("gemvjit-warmup", {"gemvjit-warmup", "--engine", "v"}), Words({"vllm"}));
  EXPECT_EQ(completed_by_bash("gemvjit-warmup", {"gemvjit-warmup", "--progress", "=", "js"}), Words({"json"}));
  EXPECT_EQ(completed_by_bash("gemvjit-warmup", {"gemvjit-warmup", "--color", "="}),
            Words({"auto", "always", "never"}));
  EXPECT_EQ(completed_by_bash("gemvjit-cache", {"gemvjit-cache", "ver"}), Words({"verify"}));
  EXPECT_EQ(completed_by_bash("gemvjit-cache", {"gemvjit-cache", "verify", "--re"}), Words({"--repair"}));
  EXPECT_EQ(completed_by_bash("gemvjit-cache", {"gemvjit-cache", "ls", "--re"}), Words()) << "another command's";
  TempDir folder;
  const std::string file = folder.write("bundle.gjb", "");
  const std::string begin = file.substr(0, file.size() - 4);
  EXPECT_EQ(completed_by_bash("gemvjit-cache", {"gemvjit-cache", "import", begin}), Words({file}));
  EXPECT_EQ(completed_by_bash("gemvjit-warmup", {"gemvjit-warmup", "--plan", begin}), Words({file}));
  EXPECT_EQ(completed_by_bash("gemvjit-warmup", {"gemvjit-warmup", "--model", begin}), Words()) << "folders only";
}

TEST(CliPages, CompletionsAreSyntaxOfTheirShells) {
  const std::vector<std::pair<std::string, std::string>> shells{{"bash", "bash-completion/completions/"},
                                                                {"zsh", "zsh/site-functions/_"},
                                                                {"fish", "fish/vendor_completions.d/"}};
  std::string missing;
  for (const auto& [program, prefix] : shells) {
    if (!is_installed(program)) {
      missing += " " + program;
      continue;
    }
    for (const std::string& tool : kTools) {
      const std::string file = kShare + prefix + tool + (program == "fish" ? ".fish" : "");
      EXPECT_GT(read_text(file).size(), 100u) << file;
      const ProgramOutput output = shell(program + " -n '" + file + "'");
      EXPECT_EQ(output.exit_code, 0) << file << output.err;
      EXPECT_EQ(output.err, "") << file;
    }
    TempDir folder;
    EXPECT_NE(shell(program + " -n '" + folder.write("bad", "if true; (\n") + "'").exit_code, 0) << "it can fail";
  }
  if (!missing.empty()) GTEST_SKIP() << "not installed, not checked:" << missing;
}

TEST(CliPages, FishCompletes) {
  if (!is_installed("fish")) GTEST_SKIP() << "fish is not installed";
  TempDir home;
  const auto completed = [&](const std::string& tool, const std::string& line) {
    const ProgramOutput output = shell("fish --no-config -c \"source '" + kShare + "fish/vendor_completions.d/" + tool +
                                           ".fish'; complete -C '" + line + "'\"",
                                       {{"HOME", home.path("")}});
    EXPECT_EQ(output.exit_code, 0) << output.err;
    return output.out;
  };
  EXPECT_TRUE(contains(completed("gemvjit-warmup", "gemvjit-warmup --engine "), "vllm"));
  EXPECT_TRUE(contains(completed("gemvjit-warmup", "gemvjit-warmup --max"), "--max-seconds"));
  EXPECT_TRUE(contains(completed("gemvjit-cache", "gemvjit-cache ver"), "verify"));
  EXPECT_TRUE(contains(completed("gemvjit-cache", "gemvjit-cache verify --re"), "--repair"));
  EXPECT_FALSE(contains(completed("gemvjit-cache", "gemvjit-cache ls --re"), "--repair"));
}

TEST(CliPages, TextCannotBecomeARequestOrAnEscape) {
  EXPECT_EQ(tools::roff_text(".SH x"), "\\&.SH x");
  EXPECT_EQ(tools::roff_text("a\n'b"), "a\n\\&\\(aqb");
  EXPECT_EQ(tools::roff_text("a\\fB --x"), "a\\efB \\-\\-x");
}

TEST(CliPages, InstallPutsThemWhereManAndShellsLook) {
  TempDir prefix;
  const ProgramOutput output = run_program(
      {GEMVJIT_CMAKE_COMMAND, "--install", GEMVJIT_BINARY_DIR, "--prefix", prefix.path("x"), "--component", "tools"});
  if (output.exit_code != 0 && contains(output.err, "cannot find")) GTEST_SKIP() << "not all tools are built";
  ASSERT_EQ(output.exit_code, 0) << output.err;
  for (const std::string& tool : kTools) {
    for (const std::string& file :
         {"bin/" + tool, "share/man/man1/" + tool + ".1", "share/bash-completion/completions/" + tool,
          "share/zsh/site-functions/_" + tool, "share/fish/vendor_completions.d/" + tool + ".fish"}) {
      EXPECT_TRUE(std::filesystem::is_regular_file(prefix.path("x/" + file))) << file;
    }
  }
  EXPECT_TRUE(std::filesystem::is_regular_file(prefix.path("x/share/man/man5/gemvjit-config.5")));
  EXPECT_EQ(run_program({prefix.path("x/bin/gemvjit-warmup"), "--version"}).exit_code, 0);
}

TEST(CliPages, AnUnknownFormatIsWrongUse) {
  EXPECT_EQ(run_program({tool_path("gemvjit-warmup"), "--dump-cli", "pdf"}).exit_code, 2);
}

}  // namespace
}  // namespace gemvjit::test
