// A path that would steer a terminal: what the tools print for people has it escaped, on stdout as on stderr; what
// programs read has it as it is.
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/tools/cli_entries.h"
#include "tests/tools/cli_fixture.h"

namespace gemvjit::test {
namespace {

class TerminalOutput : public CliTest {
 protected:
  TerminalOutput() {
    environment_["GEMVJIT_CACHE_DIR"] = root_;
    environment_["XDG_RUNTIME_DIR"] = "";
    const auto store = make_dir_store(root_, Log::silent());
    for (const std::int64_t n : {64, 128, 256}) EXPECT_TRUE(store->put(cli_entry(n)));
    std::filesystem::resize_file(store->path_of(cli_entry(256).id), 60);
  }
  // The first is at least where the folder's name was.
  static void expect_escaped(const std::string& text, bool names_the_folder) {
    EXPECT_EQ(text.find('\x1b'), std::string::npos) << text;
    EXPECT_EQ(contains(text, "odd\\x1b[31mname"), names_the_folder) << text;
  }

  const std::string root_ = folder_.path("odd\x1b[31mname");
  const std::string bundle_ = root_ + ".gjb";
};

TEST_F(TerminalOutput, WhatPeopleReadIsEscaped) {
  environment_["GEMVJIT_CACHE_RO"] = root_;
  const struct {
    std::vector<std::string> command;
    bool names_the_folder;
  } commands[] = {
      {{"ls"}, true},
      {{"show", cli_entry_key}, true},
      {{"verify", "--deep"}, true},
      {{"explain", cli_entry_key}, true},
      {{"stats"}, true},
      {{"doctor"}, true},
      {{"config", "--origin"}, true},
      {{"export", bundle_}, true},
      {{"import", bundle_}, true},
      {{"gc", "--max-age", "365d", "--dry-run"}, false},  // nothing is that old
      {{"rm", "--damaged"}, true},
      {{"gc", "--arch", "sm_90a"}, true},
  };
  for (const auto& one : commands) {
    SCOPED_TRACE(one.command.front());
    const ProgramOutput output = cache(one.command);
    expect_escaped(output.out, one.names_the_folder);
    EXPECT_EQ(output.err.find('\x1b'), std::string::npos) << output.err;
  }
  const ProgramOutput checked = warm_one_kernel({"--check"});
  EXPECT_EQ(checked.exit_code, 9);
  expect_escaped(checked.out, true);
}

TEST_F(TerminalOutput, WhatProgramsReadIsAsItIs) {
  EXPECT_EQ(cache({"path"}).out, root_ + "\n");
  EXPECT_EQ(document(cache({"path", "--json"}))["cache_dir"], root_);
  EXPECT_EQ(document(cache({"ls", "--json"}))["cache_dir"], root_);
}

}  // namespace
}  // namespace gemvjit::test
