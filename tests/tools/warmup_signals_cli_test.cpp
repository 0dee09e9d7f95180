// gemvjit-warmup where nobody reads on, where the terminal goes away, and what an interrupted run says is left.
#include <csignal>

#include "tests/tools/cli_fixture.h"

namespace gemvjit::test {
namespace {

using nlohmann::json;

class WarmupSignals : public CliTest {
 protected:
  static constexpr int kernels = 60;
  std::vector<std::string> command(const std::string& cache) const {
    std::vector<std::string> all{GEMVJIT_WARMUP_BINARY, "--arch", "sm_90a", "-j", "1", "--cache-dir", cache};
    for (int n = 1; n <= kernels; ++n) all.insert(all.end(), {"--shape", std::to_string(64 * n) + "x64:dequant"});
    return all;
  }
  // Interrupted when it has kept something.
  ProgramOutput interrupt(const std::string& cache, int signal, const std::vector<std::string>& more) const {
    std::vector<std::string> all = command(cache);
    all.insert(all.end(), more.begin(), more.end());
    Program program(all, environment_);
    for (int i = 0; i < 30000 && entry_files(cache).empty(); ++i) ::usleep(1000);
    program.send(signal);
    return program.wait();
  }
};

TEST_F(WarmupSignals, AnInterruptedRunSaysWhatIsLeft) {
  for (const std::vector<std::string>& more : {std::vector<std::string>{}, {"--isolate"}, {"--progress=none"}}) {
    const std::string cache = folder_.path("json" + (more.empty() ? "" : more[0]));
    std::vector<std::string> with_json = more;
    with_json.emplace_back("--json");
    const ProgramOutput output = interrupt(cache, SIGTERM, with_json);
    EXPECT_EQ(output.exit_code, 130) << output.err;
    const json whole = document(output);
    EXPECT_EQ(whole["summary"]["total"], kernels) << whole["summary"];
    EXPECT_EQ(whole["summary"]["left"], kernels - static_cast<int>(whole["results"].size()));
    EXPECT_GT(whole["summary"]["left"], 0);
  }
  const ProgramOutput text = interrupt(folder_.path("text"), SIGHUP, {});
  EXPECT_EQ(text.exit_code, 130) << "a terminal that goes away is an interrupt";
  EXPECT_TRUE(contains(text.out, std::to_string(kernels) + " kernels: ") && contains(text.out, " left, in "))
      << text.out;
  EXPECT_TRUE(contains(text.err, " kernels are left: run again to go on")) << text.err;
}

TEST_F(WarmupSignals, WhoReadsNoMoreOfStderrEndsNothing) {
  for (const std::string more : {"", " --isolate"}) {
    const std::string cache = folder_.path("cache" + more.substr(0, more.empty() ? 0 : 3));
    const std::string line = std::string("(") + GEMVJIT_WARMUP_BINARY + " --arch sm_90a --shape 64x64:dequant" +
                             " --shape 128x64:dequant --shape 192x64:dequant -v --cache-dir '" + cache + "'" + more +
                             " 2>&1 >'" + folder_.path("out") + "'; echo $? >'" + folder_.path("rc") + "') | head -1";
    const ProgramOutput output = run_program({"/bin/sh", "-c", line}, environment_);
    EXPECT_EQ(read_text(folder_.path("rc")), "0\n") << output.err;
    EXPECT_EQ(entry_files(cache).size(), 3u);
    EXPECT_TRUE(contains(read_text(folder_.path("out")), "3 kernels: 3 compiled"));
  }
}

TEST_F(WarmupSignals, UnderNohupAHangupIsIgnored) {
  const std::string line = std::string("trap '' HUP; exec ") + GEMVJIT_WARMUP_BINARY +
                           " --arch sm_90a --shape 64x64:dequant --shape 128x64:dequant --shape 192x64:dequant -j 1";
  Program program({"/bin/sh", "-c", line}, environment_);
  for (int i = 0; i < 30000 && entry_files(cache_dir_).empty(); ++i) ::usleep(1000);
  program.send(SIGHUP);
  EXPECT_EQ(program.wait().exit_code, 0);
  EXPECT_EQ(entry_files(cache_dir_).size(), 3u);
}

}  // namespace
}  // namespace gemvjit::test
