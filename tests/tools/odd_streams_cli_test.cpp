// Options that are given nothing, streams that are closed or full, and files that are no place to write to.
#include <sys/stat.h>

#include "tests/tools/cli_fixture.h"

namespace gemvjit::test {
namespace {

using nlohmann::json;

class OddStreams : public CliTest {
 protected:
  // By a shell, for its redirections.
  ProgramOutput shell(const std::string& command) const {
    return run_program({"/bin/sh", "-c", std::string("exec ") + GEMVJIT_CACHE_BINARY + " " + command}, environment_);
  }
};

TEST_F(OddStreams, AnOptionThatIsGivenNothingIsWrongUse) {
  ASSERT_EQ(warm_one_kernel().exit_code, 0);
  const std::vector<std::vector<std::string>> commands{{"gc", "--max-bytes", "", "--arch", "sm_90a"},
                                                       {"gc", "--arch", "", "--max-age", "0s"},
                                                       {"gc", "--max-age", "", "--other-versions"},
                                                       {"export", folder_.path("a.gjb"), "--sign-key", ""},
                                                       {"export", folder_.path("a.gjb"), "--arch="},
                                                       {"export", ""},
                                                       {"ls", "--cache-dir", ""},
                                                       {"disasm", "n64", "--cubin", ""}};
  for (const auto& command : commands) {
    const ProgramOutput output = cache(command);
    EXPECT_EQ(output.exit_code, 2) << command[0] << " " << command[1] << "\n" << output.out << output.err;
    EXPECT_TRUE(contains(output.err, "empty") || contains(output.err, "missing")) << output.err;
  }
  EXPECT_EQ(entry_files(cache_dir_).size(), 1u) << "nothing was removed";
  EXPECT_FALSE(std::filesystem::exists(folder_.path("a.gjb")));
  EXPECT_EQ(warm_one_kernel({"--cache-dir", ""}).exit_code, 2);
}

TEST_F(OddStreams, WhereNobodyHearsTheErrorTheExitCodeIsTheSame) {
  for (const char* streams : {"2>/dev/full", "2>&-", ">&- 2>&-"}) {
    EXPECT_EQ(shell(std::string("ls --cache-dir /nowhere/at/all ") + streams).exit_code, 5) << streams;
    EXPECT_EQ(shell(std::string("gc ") + streams).exit_code, 2) << streams;
  }
  const ProgramOutput document = shell("ls --cache-dir /nowhere/at/all --json 2>/dev/full");
  EXPECT_EQ(json::parse(document.out)["error"]["exit_code"], 5);
}

TEST_F(OddStreams, NoFileBecomesAClosedStream) {
  ASSERT_EQ(warm_one_kernel().exit_code, 0);
  EXPECT_EQ(shell("export " + folder_.path("a.gjb") + " --json >&- 2>&-").exit_code, 5) << "the document is lost";
  EXPECT_EQ(cache({"import", folder_.path("a.gjb"), "--cache-dir", folder_.path("other")}).exit_code, 0);
  EXPECT_EQ(shell("verify >&- 2>&-").exit_code, 5);
  EXPECT_EQ(cache({"verify"}).exit_code, 0) << "nothing was written into an entry";
}

TEST_F(OddStreams, LinksAndDevicesAreNotReplaced) {
  ASSERT_EQ(warm_one_kernel().exit_code, 0);
  const std::string link = folder_.path("link.gjb"), pipe = folder_.path("pipe");
  std::filesystem::create_symlink(folder_.path("elsewhere"), link);
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const json entry = document(cache({"ls", "--json"}))["entries"][0];
  for (const std::string& path : {link, pipe, folder_.path("")}) {
    EXPECT_EQ(cache({"export", path}).exit_code, 6) << path;
    EXPECT_EQ(cache({"disasm", entry["key"], "--cubin", path}).exit_code == 0, false) << path;
  }
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
  EXPECT_FALSE(std::filesystem::exists(folder_.path("elsewhere")));
}

TEST_F(OddStreams, GcOfAFolderThatIsNotThere) {
  EXPECT_EQ(cache({"gc", "--cache-dir", folder_.path("none"), "--max-bytes", "1M"}).exit_code, 5);
}

}  // namespace
}  // namespace gemvjit::test
