// A compiler that crashes, aborts, hangs or wants all memory costs one kernel, and no process outlives the run.
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <thread>

#include "tests/tools/cli_fixture.h"
#include "tools/gemvjit_warmup/worker_reply.h"

namespace gemvjit::test {
namespace {

using nlohmann::json;
using Arguments = std::vector<std::string>;

class IsolatedWarmup : public CliTest {
 protected:
  IsolatedWarmup() { environment_["GEMVJIT_NVRTC"] = FIXTURE_MISBEHAVING_NVRTC; }

  // Six kernels: nt 1, 2, 4 of two shapes.
  static Arguments arguments(const Arguments& more = {}) {
    Arguments all{"--shape", "64x4096:bf16", "--shape", "128x4096:bf16", "--arch", "sm_90a", "--isolate", "--json"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  static std::map<std::string, int> statuses(const json& document) {
    std::map<std::string, int> count;
    for (const json& result : document["results"]) ++count[result["status"]];
    return count;
  }
  static std::string error_of(const json& document, const std::string& part_of_key) {
    for (const json& result : document["results"]) {
      if (contains(result["key"], part_of_key)) return result["error"];
    }
    return "no such kernel";
  }
  std::size_t temporaries() const {
    std::size_t count = 0;
    for (const auto& item : std::filesystem::recursive_directory_iterator(cache_dir_)) {
      count += item.path().filename().string().starts_with(".tmp-") ? 1u : 0u;
    }
    return count;
  }
  // A bounded wait for what another process does; false if it never came.
  template <typename Condition>
  static bool comes(const Condition& condition) {
    for (int i = 0; i < 3000; ++i) {
      if (condition()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }
  // A worker that hangs says which process it is.
  pid_t hanging_worker(const std::string& file) const {
    std::string text;
    (void)comes([&] {
      text = std::filesystem::exists(file) ? read_text(file) : "";
      return !text.empty();
    });
    return text.empty() ? -1 : static_cast<pid_t>(std::stoi(text));
  }
  static bool is_gone(pid_t pid) { return ::kill(pid, 0) != 0; }
};

TEST_F(IsolatedWarmup, GivesWhatAnOrdinaryOneGives) {
  const ProgramOutput cold = warmup(arguments({"-j", "2"}));
  EXPECT_EQ(cold.exit_code, 0) << cold.err;
  EXPECT_EQ(statuses(document(cold)), (std::map<std::string, int>{{"compiled", 6}}));
  const json warm = document(warmup(arguments()));
  EXPECT_EQ(statuses(warm), (std::map<std::string, int>{{"cached", 6}}));
  for (const json& result : warm["results"]) EXPECT_EQ(result["digest"].get<std::string>().size(), 64u);
  EXPECT_EQ(warmup({"--shape", "64x4096:bf16", "--shape", "128x4096:bf16", "--arch", "sm_90a", "--check"}).exit_code,
            0);
}

TEST_F(IsolatedWarmup, ACompilerThatEndsFailsItsKernelOnly) {
  // Where the tool is built with a sanitizer: it leaves the ends of processes as they are.
  environment_["ASAN_OPTIONS"] = "handle_segv=0:handle_abort=0:detect_leaks=0:verify_asan_link_order=0";
  const std::pair<const char*, const char*> cases[] = {
      {"crash", "signal 11"}, {"abort", "signal 6"}, {"kill", "want of memory"}, {"exit", "exit code 0"}};
  for (const auto& [what, message] : cases) {
    std::filesystem::remove_all(cache_dir_);
    environment_["GEMVJIT_TEST_NVRTC"] = std::string("n64-k4096-nt2=") + what;
    const ProgramOutput output = warmup(arguments({"-j", "2"}));
    EXPECT_EQ(output.exit_code, 3) << what << output.err;
    const json result = document(output);
    EXPECT_EQ(statuses(result), (std::map<std::string, int>{{"compiled", 5}, {"failed", 1}})) << what;
    EXPECT_TRUE(contains(error_of(result, "n64-k4096-nt2"), message)) << error_of(result, "n64-k4096-nt2");
    EXPECT_TRUE(contains(error_of(result, "n64-k4096-nt2"), "n64-k4096-nt2")) << "the error names the kernel";
    EXPECT_EQ(temporaries(), 0u);
  }
}

TEST_F(IsolatedWarmup, EveryKernelMayCrash) {
  environment_["GEMVJIT_TEST_NVRTC"] = "sm_90a=crash";
  const ProgramOutput output = warmup(arguments({"-j", "2"}));
  EXPECT_EQ(output.exit_code, 3) << output.err;
  EXPECT_EQ(statuses(document(output)), (std::map<std::string, int>{{"failed", 6}}));
}

TEST_F(IsolatedWarmup, OneThatHangsIsKilledWhenItsTimeIsOver) {
  environment_["GEMVJIT_TEST_NVRTC"] = "n64-k4096-nt2=hang:" + folder_.path("pid");
  const ProgramOutput output = warmup(arguments({"-j", "2", "--isolate-timeout", "2"}));
  EXPECT_EQ(output.exit_code, 3) << output.err;
  EXPECT_EQ(statuses(document(output)), (std::map<std::string, int>{{"compiled", 5}, {"failed", 1}}));
  EXPECT_TRUE(contains(error_of(document(output), "n64-k4096-nt2"), "not done after 2 seconds")) << output.out;
  EXPECT_TRUE(is_gone(hanging_worker(folder_.path("pid"))));
}

TEST_F(IsolatedWarmup, AMemoryLimitIsTheWorkersOwn) {
#ifdef GEMVJIT_BUILT_WITH_SANITIZER
  GTEST_SKIP() << "the sanitizer's own maps are beyond any limit";
#endif
  environment_["GEMVJIT_TEST_NVRTC"] = "n64-k4096-nt2=oom";
  const ProgramOutput output = warmup(arguments({"--isolate-memory", "512"}));
  EXPECT_EQ(output.exit_code, 3) << output.err;
  EXPECT_EQ(statuses(document(output)), (std::map<std::string, int>{{"compiled", 5}, {"failed", 1}})) << output.out;
}

TEST_F(IsolatedWarmup, TheSecondRunGoesOnWhereACrashWas) {
  environment_["GEMVJIT_TEST_NVRTC"] = "n64-k4096-nt2=crash";
  EXPECT_EQ(warmup(arguments()).exit_code, 3);
  environment_["GEMVJIT_TEST_NVRTC"] = "";
  EXPECT_EQ(statuses(document(warmup(arguments()))), (std::map<std::string, int>{{"compiled", 1}, {"cached", 5}}));
}

TEST_F(IsolatedWarmup, WithoutACompilerIsExitFive) {
  environment_["GEMVJIT_NVRTC"] = folder_.path("no-nvrtc");
  const ProgramOutput output = warmup(arguments());
  EXPECT_EQ(output.exit_code, 5) << output.err;
  EXPECT_EQ(statuses(document(output)), (std::map<std::string, int>{{"failed", 6}}));
}

TEST_F(IsolatedWarmup, MaxSecondsLeavesTheRest) {
  const ProgramOutput output = warmup(arguments({"-j", "1", "--max-seconds", "0.001"}));
  EXPECT_EQ(output.exit_code, 9) << output.err;
  EXPECT_EQ(document(output)["summary"]["left"], 5);
}

// The kernels before the one that hangs are kept; the worker, which the first signal does not end, ends with its
// parent.
TEST_F(IsolatedWarmup, ASecondSignalLeavesNoProcess) {
  environment_["GEMVJIT_TEST_NVRTC"] = "n64-k4096-nt1=hang:" + folder_.path("pid");
  for (const int signal : {SIGINT, SIGTERM}) {
    std::filesystem::remove(folder_.path("pid"));
    Arguments all = arguments({"-j", "1"});
    all.insert(all.begin(), GEMVJIT_WARMUP_BINARY);
    Program program(all, environment_);
    const pid_t worker = hanging_worker(folder_.path("pid"));
    ASSERT_GT(worker, 0);
    const std::size_t finished = entry_files(cache_dir_).size();
    program.send(signal);
    program.send(signal);
    program.send(SIGKILL);  // in case both came as one
    EXPECT_NE(program.wait().exit_code, 0);
    EXPECT_TRUE(comes([&] { return is_gone(worker); }));
    EXPECT_GE(entry_files(cache_dir_).size(), finished);
  }
}

// The one under way is waited for, here until its time is over; nothing more begins.
TEST_F(IsolatedWarmup, ASignalKeepsWhatIsFinished) {
  environment_["GEMVJIT_TEST_NVRTC"] = "n64-k4096-nt1=hang:" + folder_.path("pid");
  Arguments all = arguments({"-j", "1", "--isolate-timeout", "3"});
  all.insert(all.begin(), GEMVJIT_WARMUP_BINARY);
  Program program(all, environment_);
  const pid_t worker = hanging_worker(folder_.path("pid"));
  ASSERT_GT(worker, 0);
  ::kill(worker, SIGINT);  // as from a terminal, which tells all of its processes
  program.send(SIGTERM);
  const ProgramOutput output = program.wait();
  EXPECT_EQ(output.exit_code, 130) << output.err;
  EXPECT_TRUE(is_gone(worker));
  EXPECT_EQ(temporaries(), 0u);
  const auto count = statuses(document(output));
  EXPECT_EQ(count.at("failed"), 1);
  EXPECT_EQ(entry_files(cache_dir_).size(), document(output)["results"].size() - 1);
  environment_["GEMVJIT_TEST_NVRTC"] = "";
  EXPECT_EQ(warmup(arguments()).exit_code, 0) << "a run after it goes on";
  EXPECT_EQ(entry_files(cache_dir_).size(), 6u);
}

TEST(WorkerReplies, AreReadAsTheyWereWritten) {
  tools::WorkerReply reply;
  reply.error = "line\nline \"\xff\"";
  reply.outcome = GEMVJIT_OUTCOME_COMPILED;
  reply.status = GEMVJIT_OK;
  reply.cubin_bytes = 1ull << 40;
  const std::string line = tools::write_reply(reply);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  tools::WorkerReply read;
  ASSERT_TRUE(tools::read_reply(line, read));
  EXPECT_EQ(read.cubin_bytes, reply.cubin_bytes);
  EXPECT_EQ(read.outcome, GEMVJIT_OUTCOME_COMPILED);
  for (const char* wrong : {"", "{", "{}", "[1]", "7", "{\"log\": 3}", "{\"outcome\": \"x\"}"}) {
    EXPECT_FALSE(tools::read_reply(wrong, read)) << wrong;
  }
}

}  // namespace
}  // namespace gemvjit::test
