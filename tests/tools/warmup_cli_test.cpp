// gemvjit-warmup as an operator runs it: usage, exit codes, JSON, check, interruption.
#include <csignal>
#include <set>
#include <thread>

#include "tests/tools/cli_fixture.h"
#include "tests/tools/model_files.h"

namespace gemvjit::test {
namespace {

using nlohmann::json;
using WarmupCli = CliTest;

std::set<std::string> names_of(const json& object) {
  std::set<std::string> names;
  for (const auto& [name, value] : object.items()) names.insert(name);
  return names;
}

TEST_F(WarmupCli, BadUsageIsTwoAndSaysWhatIsAccepted) {
  struct Case {
    std::vector<std::string> arguments;
    const char* said;
  };
  const Case cases[] = {
      {{}, "--shape NxK"},
      {{"--shape", "64y64"}, "NxK[:nvfp4|:bf16|:dequant|:swizzle][:silu][:segments]"},
      {{"--shape", "64x64:fp8"}, "NxK[:nvfp4|:bf16|:dequant|:swizzle][:silu][:segments]"},
      {{"--shape", "99999999999999999999x64"}, "64 bits"},
      {{"--shape"}, "--shape"},
      {{"--shape", "64x64", "--arch", "sm9"}, "sm_90a"},
      {{"--shape", "64x64", "--arch", "sm_90b"}, "sm_90a"},
      {{"--shape", "64x64", "--arch", "sm_75"}, "sm_80"},
      {{"--shape", "64x64", "--arch", "sm_90a", "--nt", "3"}, "1, 2 and 4"},
      {{"--shape", "64x64", "--arch", "sm_90a", "--nt", "x"}, "--nt x: accepted: 1, 2 and 4"},
      {{"--shape", "64x64", "--arch", "sm_90a", "--nt", ""}, "--nt is empty"},
      {{"--shape", "64x64", "--arch", "sm_90a", "--nt", "1,,2"}, "--nt: a value is empty"},
      {{"--shape", "64x64", "--arch", ""}, "--arch is empty"},
      {{"--shape", "64x64", "--arch", ",", "--dry-run"}, "--arch: a target is empty"},
      {{"--shape", "64x64", "--arch", "sm_90a,"}, "--arch: a target is empty"},
      {{"--shape", "64x64", "--arch", "sm_90a", "-j", "x"}, "1 to 256"},
      {{"--model", ""}, "--model is empty"},
      {{"--shape", "64x64", "--arch", "sm_90a", "--pdl", "maybe"}, "accepted: on, off, both"},
      {{"--shape", "64x64", "--arch", "sm_90a", "-j", "0"}, "1"},
      {{"--shape", "64x64", "--arch", "sm_90a", "--check", "--dry-run"}, "--dry-run"},
      {{"--shape", "64x64", "--arch", "sm_90a", "-q", "-v"}, "--quiet"},
      {{"--shape", "64x64", "--arch", "sm_90a", "--cache-dir", ""}, "--cache-dir"},
      {{"--shape", "64x64", "--arch", "sm_90a", "--colour"}, "--colour"},
      {{"64x64"}, "64x64"},
  };
  for (const Case& c : cases) {
    const ProgramOutput output = warmup(c.arguments);
    std::string command;
    for (const std::string& argument : c.arguments) command += " " + argument;
    EXPECT_EQ(output.exit_code, 2) << command << "\n" << output.err;
    EXPECT_TRUE(contains(output.err, c.said)) << command << "\n" << output.err;
    EXPECT_EQ(output.out, "") << command;
  }
  EXPECT_FALSE(std::filesystem::exists(cache_dir_));
}

TEST_F(WarmupCli, ShapesThatNoKernelServesNameTheRule) {
  struct Case {
    const char* shape;
    const char* said;
  };
  const Case cases[] = {
      {"0x64", "N"},   {"64x0:bf16", "K"},  {"--shape=-8x64", "N"}, {"12x64", "8"},
      {"64x24", "16"}, {"64x12:bf16", "8"}, {"24x64:silu", "16"},   {"9223372036854775800x9223372036854775792", "N"}};
  for (const Case& c : cases) {
    std::vector<std::string> arguments{"--arch", "sm_90a"};
    if (c.shape[0] != '-') arguments.push_back("--shape");
    arguments.push_back(c.shape);
    // A good shape beside it is not built either: nothing is done before all is understood.
    arguments.insert(arguments.end(), {"--shape", "64x64:dequant"});
    const ProgramOutput output = warmup(arguments);
    EXPECT_EQ(output.exit_code, 2) << c.shape << "\n" << output.err;
    EXPECT_TRUE(contains(output.err, "--shape")) << c.shape << "\n" << output.err;
    EXPECT_TRUE(contains(output.err, c.said)) << c.shape << "\n" << output.err;
  }
  EXPECT_FALSE(std::filesystem::exists(cache_dir_));
}

TEST_F(WarmupCli, HelpAndVersionSucceed) {
  const ProgramOutput help = warmup({"--help"});
  EXPECT_EQ(help.exit_code, 0);
  for (const char* option : {"--shape", "--model", "--arch", "--nt", "--pdl", "--cache-dir", "--jobs", "--dry-run",
                             "--check", "--json", "--quiet", "--verbose", "130"}) {
    EXPECT_TRUE(contains(help.out, option)) << option;
  }
  const ProgramOutput version = warmup({"--version"});
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_EQ(std::count(version.out.begin(), version.out.end(), '.'), 2) << version.out;
}

TEST_F(WarmupCli, WithoutAGpuTheTargetMustBeNamed) {
  environment_["GEMVJIT_LIBCUDA"] = folder_.path("no-libcuda.so");
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"--shape", "64x64"}, {"--shape", "64x64", "--arch", "sm_90a,native"}}) {
    const ProgramOutput output = warmup(arguments);
    EXPECT_EQ(output.exit_code, 5);
    EXPECT_TRUE(contains(output.err, "--arch sm_90a")) << output.err;
  }
}

TEST_F(WarmupCli, DryRunNamesTheKernelsAndTouchesNothing) {
  environment_["GEMVJIT_NVRTC"] = folder_.path("nowhere");
  const ProgramOutput output =
      warmup({"--shape", "64x64", "--shape", "64x64:nvfp4", "--shape", "64x64:dequant", "--arch", "sm_90a", "--arch",
              "sm_120a,sm_90a", "--pdl", "both", "--dry-run", "--json"});
  EXPECT_EQ(output.exit_code, 0) << output.err;
  const json results = document(output)["results"];
  // For each of two targets and pdl on and off: nt 1, 2, 4 and one dequantize_rows, however often the shape is named.
  EXPECT_EQ(results.size(), 16u) << output.out;
  std::set<std::string> keys;
  std::size_t dequantize = 0;
  for (const json& result : results) {
    EXPECT_EQ(result["status"], "planned");
    keys.insert(result["key"]);
    if (result["family"] != "dequantize_rows") continue;
    ++dequantize;
    EXPECT_EQ(result["nt"], 0);
  }
  EXPECT_EQ(keys.size(), 16u);
  EXPECT_EQ(dequantize, 4u);
  EXPECT_FALSE(std::filesystem::exists(cache_dir_));
}

TEST_F(WarmupCli, NtAndFamilyNarrowThePlan) {
  const ProgramOutput output =
      warmup({"--shape", "64x64:bf16:silu", "--arch", "sm_90a", "--nt", "1,4", "--dry-run", "--json"});
  EXPECT_EQ(output.exit_code, 0) << output.err;
  const json results = document(output)["results"];
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[0]["nt"], 1);
  EXPECT_EQ(results[1]["nt"], 4);
  EXPECT_EQ(results[0]["family"], "bf16_gemv");
}

TEST_F(WarmupCli, BuildsOnceThenFindsAll) {
  const ProgramOutput cold = warm_one_kernel({"--json"});
  ASSERT_EQ(cold.exit_code, 0) << cold.err;
  const json first = document(cold);
  EXPECT_EQ(names_of(first), (std::set<std::string>{"results", "summary", "archs"}));
  EXPECT_EQ(names_of(first["summary"]),
            (std::set<std::string>{"total", "compiled", "cached", "failed", "left", "seconds"}));
  ASSERT_EQ(first["results"].size(), 1u);
  const json result = first["results"][0];
  EXPECT_EQ(names_of(result), (std::set<std::string>{"key", "digest", "family", "n", "k", "nt", "flags", "arch",
                                                     "status", "reason", "ms", "error"}));
  EXPECT_EQ(result["reason"], "family_default");
  EXPECT_EQ(result["status"], "compiled");
  EXPECT_EQ(result["family"], "dequantize_rows");
  EXPECT_EQ(result["n"], 64);
  EXPECT_EQ(result["k"], 64);
  EXPECT_EQ(result["nt"], 0);
  EXPECT_EQ(result["arch"], "sm_90a");
  EXPECT_EQ(result["error"], "");
  EXPECT_EQ(result["digest"].get<std::string>().size(), 64u);
  EXPECT_GT(result["ms"].get<double>(), 0);
  const std::string key = result["key"], flags = result["flags"];
  EXPECT_EQ(key, "n64-k64-nt0-f" + flags + "-sm_90a");
  EXPECT_EQ(first["summary"]["compiled"], 1);
  EXPECT_EQ(entry_files(cache_dir_).size(), 1u);

  // Everything is there: no compiler is needed any more.
  environment_["GEMVJIT_NVRTC"] = folder_.path("nowhere");
  const ProgramOutput warm = warm_one_kernel({"--json"});
  ASSERT_EQ(warm.exit_code, 0) << warm.err;
  const json second = document(warm);
  EXPECT_EQ(second["results"][0]["status"], "cached");
  EXPECT_EQ(second["results"][0]["digest"], result["digest"]);
  EXPECT_EQ(second["summary"]["cached"], 1);
  EXPECT_EQ(second["summary"]["compiled"], 0);

  const ProgramOutput text = warm_one_kernel();
  EXPECT_EQ(text.exit_code, 0);
  EXPECT_TRUE(contains(text.out, key) && contains(text.out, "cached")) << text.out;
}

TEST_F(WarmupCli, CheckIsNineWhenColdZeroWhenWarmSevenWhenDamaged) {
  environment_["GEMVJIT_NVRTC"] = folder_.path("nowhere");
  const ProgramOutput cold = warm_one_kernel({"--check", "--json"});
  EXPECT_EQ(cold.exit_code, 9) << cold.err;
  EXPECT_EQ(document(cold)["results"][0]["status"], "missing");
  EXPECT_FALSE(std::filesystem::exists(cache_dir_)) << "a check makes no folder";

  environment_.erase("GEMVJIT_NVRTC");
  ASSERT_EQ(warm_one_kernel().exit_code, 0);
  environment_["GEMVJIT_NVRTC"] = folder_.path("nowhere");
  const ProgramOutput warm = warm_one_kernel({"--check", "--json"});
  EXPECT_EQ(warm.exit_code, 0) << warm.err;
  EXPECT_EQ(document(warm)["results"][0]["status"], "cached");

  // Half of the kernels are there.
  EXPECT_EQ(warmup({"--shape", "64x64:dequant", "--shape", "128x64:dequant", "--arch", "sm_90a", "--check"}).exit_code,
            9);

  damage(entry_files(cache_dir_).at(0));
  const ProgramOutput damaged = warm_one_kernel({"--check", "--json"});
  EXPECT_EQ(damaged.exit_code, 7) << damaged.err;
  EXPECT_EQ(document(damaged)["results"][0]["status"], "damaged");
  EXPECT_TRUE(contains(damaged.err, entry_files(cache_dir_).at(0).string())) << damaged.err;

  // A warmup mends it.
  environment_.erase("GEMVJIT_NVRTC");
  const ProgramOutput mended = warm_one_kernel({"--json"});
  EXPECT_EQ(mended.exit_code, 0) << mended.err;
  EXPECT_EQ(document(mended)["results"][0]["status"], "compiled");
  EXPECT_EQ(warm_one_kernel({"--check"}).exit_code, 0);
}

TEST_F(WarmupCli, WithoutNvrtcItSaysWhatWasTried) {
  environment_["GEMVJIT_NVRTC"] = folder_.path("nowhere");
  const ProgramOutput output = warm_one_kernel({"--json"});
  EXPECT_EQ(output.exit_code, 5);
  EXPECT_TRUE(contains(output.err, environment_["GEMVJIT_NVRTC"])) << output.err;
  const json result = document(output)["results"].at(0);
  EXPECT_EQ(result["status"], "failed");
  EXPECT_TRUE(contains(result["error"], "NVRTC")) << result["error"];
  EXPECT_EQ(document(output)["summary"]["failed"], 1);
}

TEST_F(WarmupCli, ATargetThatNvrtcDoesNotKnowListsThoseItKnows) {
  const ProgramOutput output = warmup({"--shape", "64x64:dequant", "--arch", "sm_999a"});
  EXPECT_EQ(output.exit_code, 5);
  EXPECT_TRUE(contains(output.err, "sm_999")) << output.err;
  EXPECT_TRUE(contains(output.err, "sm_90")) << output.err;
  // One that is too old as well.
  const ProgramOutput old = warmup({"--shape", "64x64:dequant", "--arch", "7.0"});
  EXPECT_EQ(old.exit_code, 2);
  EXPECT_TRUE(contains(old.err, "sm_100")) << old.err;
  EXPECT_FALSE(contains(old.err, "sm_75")) << "NVRTC lists it, but it is not served: " << old.err;
  EXPECT_TRUE(contains(old.err, "suffix a or f")) << old.err;
  // A misspelt one is told the names.
  const ProgramOutput misspelt = warmup({"--shape", "64x64:dequant", "--arch", "hoper"});
  EXPECT_EQ(misspelt.exit_code, 2);
  EXPECT_TRUE(contains(misspelt.err, "did you mean hopper?); known are native")) << misspelt.err;
}

TEST_F(WarmupCli, ACacheThatCannotBeWrittenIsSix) {
  const std::string file = folder_.write("file", "not a folder");
  for (const std::string& path : {file, file + "/below", std::string("/proc/gemvjit-cache")}) {
    const ProgramOutput output = warm_one_kernel({"--cache-dir", path});
    EXPECT_EQ(output.exit_code, 6) << path << "\n" << output.err;
    EXPECT_TRUE(contains(output.err, path)) << output.err;
    EXPECT_EQ(output.out, "");
  }
  // Nowhere to keep anything.
  environment_["GEMVJIT_CACHE_DIR"] = environment_["XDG_CACHE_HOME"] = environment_["HOME"] = "";
  const ProgramOutput output = warm_one_kernel();
  EXPECT_EQ(output.exit_code, 6);
  EXPECT_TRUE(contains(output.err, "--cache-dir")) << output.err;
}

TEST_F(WarmupCli, WhereEntriesGoIsTriedAndWhatIsWarmNeedsNoWriting) {
  ASSERT_EQ(warm_one_kernel().exit_code, 0);
  // Everything that the run left in the folder is an entry, the ledger of its size, or the records of builds.
  for (const auto& item : std::filesystem::recursive_directory_iterator(cache_dir_)) {
    const std::string path = item.path();
    EXPECT_TRUE(item.is_directory() || path.ends_with(".entry") || path == cache_dir_ + "/v1/usage" ||
                path == cache_dir_ + "/v1/builds")
        << path;
  }
  // The other target's folder cannot be made: of no matter to the warm one, but to whoever needs it.
  std::ofstream(cache_dir_ + "/v1/sm_120a") << "in the way";
  EXPECT_EQ(warm_one_kernel().exit_code, 0);
  const ProgramOutput blocked = warmup({"--shape", "64x64:dequant", "--arch", "sm_90a,sm_120a", "--json"});
  EXPECT_EQ(blocked.exit_code, 6) << blocked.err;
  EXPECT_TRUE(contains(error_message(blocked), "v1/sm_120a")) << blocked.out;
  std::filesystem::remove(cache_dir_ + "/v1/sm_120a");

  // A file where the folder of all entries should be.
  const std::string other = folder_.path("other");
  std::filesystem::create_directory(other);
  std::ofstream(other + "/v1") << "in the way";
  EXPECT_EQ(warm_one_kernel({"--cache-dir", other}).exit_code, 6);
}

TEST_F(WarmupCli, AStaleProbeOfTheSameProcessIdIsNoObstacle) {
  // As containers have it, where every first process is number 1.
  std::filesystem::create_directories(cache_dir_ + "/v1/sm_90a");
  for (int pid = 1; pid < 70000; pid += 997) {
    std::ofstream(cache_dir_ + "/v1/sm_90a/.writable-" + std::to_string(pid));
    std::ofstream(cache_dir_ + "/v1/sm_90a/.tmp-" + std::to_string(pid) + "-0123456789abcdef");
  }
  EXPECT_EQ(warm_one_kernel().exit_code, 0);
}

TEST_F(WarmupCli, AFailingDriverIsFive) {
  environment_["GEMVJIT_LIBCUDA"] = FIXTURE_DEVICE_LIBCUDA;
  environment_["FAKE_COUNT_RESULT"] = "999";
  const ProgramOutput output = warmup({"--shape", "64x64", "--arch", "native", "--json"});
  EXPECT_EQ(output.exit_code, 5) << output.err;
  EXPECT_TRUE(contains(error_message(output), "cuDeviceGetCount")) << output.out;
  // A bad variable is wrong use.
  environment_["GEMVJIT_LOG"] = "loud";
  EXPECT_EQ(warm_one_kernel().exit_code, 2);
}

TEST_F(WarmupCli, ATuningTableThatIsRefusedIsWrongUse) {
  // It names no configuration for NVFP4.
  folder_.write("tuning/only.json", R"({"schema": 1, "archs": ["sm_90a"], "measurements": {}, "entries": [],
                 "defaults": [{"family": "bf16_gemv", "tile": {"warps_k": 8}}]})");
  for (const std::string& folder : {folder_.path("tuning"), folder_.path("absent")}) {
    environment_["GEMVJIT_TUNING_DIR"] = folder;
    const ProgramOutput output = warmup({"--shape", "64x128:bf16", "--arch", "sm_90a", "--dry-run"});
    EXPECT_EQ(output.exit_code, 2) << output.err;
    EXPECT_TRUE(contains(output.err, folder)) << output.err;
  }
}

TEST_F(WarmupCli, WithJsonAnErrorIsADocumentToo) {
  struct Case {
    std::vector<std::string> arguments;
    int exit_code;
    const char* said;
  };
  environment_["GEMVJIT_LIBCUDA"] = folder_.path("no-libcuda.so");
  const Case cases[] = {{{"--json"}, 2, "nothing to warm"},
                        {{"--json", "--colour"}, 2, "--colour"},
                        {{"--shape", "1y1", "--json"}, 2, "1y1"},
                        {{"--shape", "12x64", "--arch", "sm_90a", "--json"}, 2, "12x64"},
                        {{"--model", folder_.path("absent"), "--arch", "sm_90a", "--json"}, 4, "absent"},
                        {{"--shape", "64x64", "--json"}, 5, "GPU"}};
  for (const Case& c : cases) {
    const ProgramOutput output = warmup(c.arguments);
    EXPECT_EQ(output.exit_code, c.exit_code) << c.said;
    EXPECT_TRUE(contains(error_message(output), c.said)) << output.out;
    EXPECT_TRUE(contains(output.err, c.said)) << output.err;
  }
}

TEST_F(WarmupCli, AResultThatCannotBeWrittenIsFive) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "there is no /dev/full here";
  for (const std::vector<std::string>& more : {std::vector<std::string>{}, {"--json"}, {"--help"}}) {
    std::vector<std::string> arguments = one_kernel();
    arguments.insert(arguments.begin(), GEMVJIT_WARMUP_BINARY);
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProgramOutput output = Program(arguments, environment_, "/dev/full").wait();
    EXPECT_EQ(output.exit_code, 5);
    EXPECT_TRUE(contains(output.err, "could not be written to stdout")) << output.err;
  }
}

TEST_F(WarmupCli, NamesInAModelReachTheTerminalEscapedAndCut) {
  const std::string name = "evil\x1b[2J." + std::string(500, 'x');
  std::vector<std::int64_t> shape(40, 1);
  folder_.write("model/model.safetensors",
                safetensors_file({{name, "U8", shape, 1}, {"a.weight", "BF16", {64, 64}, 2}}));
  const ProgramOutput output = warmup({"--model", folder_.path("model"), "--arch", "sm_90a", "--dry-run", "--json"});
  EXPECT_EQ(output.exit_code, 0) << output.err;
  EXPECT_TRUE(contains(output.err, "evil\\x1b[2J.xxx")) << output.err;
  EXPECT_TRUE(contains(output.err, "[1, 1, 1, 1, 1, 1, 1, 1, ... 32 more]")) << output.err;
  EXPECT_FALSE(contains(output.err, "\x1b")) << output.err;
  EXPECT_FALSE(contains(output.err, std::string(130, 'x'))) << output.err;
}

TEST_F(WarmupCli, TunedOnlyLeavesOutWhatWasNotMeasured) {
  const ProgramOutput output =
      warmup({"--shape", "72x72:bf16", "--arch", "sm_120a", "--tuned-only", "--dry-run", "--json"});
  EXPECT_EQ(output.exit_code, 4) << output.out;
  EXPECT_TRUE(contains(output.err, "--tuned-only")) << output.err;
  // dequantize_rows has one configuration and needs no tuning.
  EXPECT_EQ(warmup({"--shape", "64x64", "--arch", "sm_120a", "--tuned-only", "--dry-run"}).exit_code, 0);
}

TEST_F(WarmupCli, QuietSaysNothingOnStderrAndVerboseNamesEachKernel) {
  const ProgramOutput verbose = warm_one_kernel({"-v"});
  EXPECT_EQ(verbose.exit_code, 0);
  EXPECT_TRUE(contains(verbose.err, "compiled n64-k64-nt0-f")) << verbose.err;
  const ProgramOutput quiet = warm_one_kernel({"-q"});
  EXPECT_EQ(quiet.exit_code, 0);
  EXPECT_EQ(quiet.err, "");
  EXPECT_TRUE(contains(quiet.out, "cached")) << quiet.out;
}

TEST_F(WarmupCli, AnInterruptKeepsWhatIsFinished) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const std::string cache = folder_.path("cache" + std::to_string(signal));
    std::vector<std::string> arguments{GEMVJIT_WARMUP_BINARY, "--arch", "sm_90a", "-j", "1", "--json",
                                       "--cache-dir",         cache};
    for (int n = 1; n <= 200; ++n) {
      arguments.insert(arguments.end(), {"--shape", std::to_string(64 * n) + "x64:dequant"});
    }
    Program program(arguments, environment_);
    for (int i = 0; i < 3000 && entry_files(cache).empty(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    program.send(signal);
    const ProgramOutput output = program.wait();
    EXPECT_EQ(output.exit_code, 130) << output.err;
    const json summary = document(output)["summary"];
    const std::size_t kept = entry_files(cache).size();
    EXPECT_GE(kept, 1u);
    EXPECT_LT(kept, 200u);
    EXPECT_EQ(summary["compiled"], kept);
    EXPECT_EQ(summary["total"], 200);

    arguments.push_back("--check");
    const ProgramOutput check = run_program(arguments, environment_);
    EXPECT_EQ(check.exit_code, 9);
    EXPECT_EQ(document(check)["summary"]["cached"], kept);
  }
}

}  // namespace
}  // namespace gemvjit::test
