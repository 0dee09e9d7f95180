// A context for tests: the recording driver, a compiler that makes up its cubins, a cache and tables in a folder of its
// own. No GPU, no NVRTC, and no dependence on the tables that are shipped.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "src/catalog/kernel_flags.h"
#include "src/runtime/context.h"
#include "src/runtime/work_plan.h"
#include "tests/support/recording_driver.h"
#include "tests/support/temp_dir.h"

namespace gemvjit::test {

// What fake compilers share: how they behave, and what was asked of them.
struct FakeCompilers {
  std::function<bool(const Arch&)> supports = [](const Arch& arch) { return arch.suffix != 'f'; };
  std::function<Status(const Recipe&)> refuse = [](const Recipe&) { return Status::ok(); };
  std::function<void()> while_compiling = [] {};
  bool waits_for_predecessor = true;  // of kernels with the pdl flag
  bool missing = false;               // NVRTC is not there
  std::string version = "Fake 1.0";
  std::string text = "cubin of ";  // a cubin is this and the key
  std::atomic<int> opened{0};

  std::vector<std::string> compiled() const {  // keys, in order
    const std::lock_guard lock(mutex);
    return keys;
  }
  mutable std::mutex mutex;
  std::vector<std::string> keys;
};

class FakeCompiler final : public Compiler {
 public:
  explicit FakeCompiler(FakeCompilers& shared) : shared_(shared) {}
  Result<Cubin> compile(const Recipe& recipe) override {
    {
      const std::lock_guard lock(shared_.mutex);
      shared_.keys.push_back(recipe.key.text());
    }
    shared_.while_compiling();
    GEMVJIT_TRY(shared_.refuse(recipe));
    Cubin cubin;
    const std::string bytes = shared_.text + recipe.key.text();
    cubin.bytes.assign(bytes.begin(), bytes.end());
    cubin.entry_name = recipe.entry_name;
    cubin.compiler_version = version();
    cubin.resources = {.registers = 64, .static_smem_bytes = 16, .spill_store_bytes = 4, .spill_load_bytes = 8};
    cubin.waits_for_predecessor = get_flag(recipe.key.flags, flag_field::pdl) != 0 && shared_.waits_for_predecessor;
    cubin.compile_ms = 7;
    return cubin;
  }
  std::string version() const override { return shared_.version; }
  std::string path() const override { return "/fake/libnvrtc.so"; }
  bool supports(const Arch& arch) const override { return shared_.supports(arch); }
  std::vector<int> supported_sms() const override { return {80, 90}; }

 private:
  FakeCompilers& shared_;
};

// Tables for the targets that the tests use, those with clusters and those without: 4096x4096 is tuned for nt 1 (where
// PDL wins) and nt 2 (where it loses), and measured to lose for nt 4; 256x8192 has a cluster of 4 or none; 512x65536 is
// predicted for nt 1; all else has a neighbour within a factor of 4, or a default.
inline std::string test_table(bool clusters) {
  const std::string archs = clusters ? R"("sm_90a", "sm_90f", "sm_90", "sm_100a", "sm_120a")" : R"("sm_80", "sm_86")";
  return R"({
  "schema": 1,
  "archs": [)" +
         archs + R"(],
  "measurements": {"m": {"gpu": "Recording GPU", "driver": "1", "compiler": "Fake 1.0", "date": "2026-01-01"}},
  "entries": [
    {"family": "nvfp4_gemv", "n": 4096, "k": 4096, "nt": 1, "silu_mul": false, "tile": {"warps_k": 8},
     "pdl": true, "time_us": 6.0, "alternative_us": 10.0, "measurement": "m"},
    {"family": "nvfp4_gemv", "n": 4096, "k": 4096, "nt": 2, "silu_mul": false, "tile": {"warps_k": 4},
     "pdl": false, "time_us": 7.0, "alternative_us": 10.0, "measurement": "m"},
    {"family": "nvfp4_gemv", "n": 4096, "k": 4096, "nt": 4, "silu_mul": false, "tile": {"warps_k": 4, "stages": 2},
     "pdl": true, "time_us": 12.0, "alternative_us": 10.0, "measurement": "m"},
    {"family": "nvfp4_gemv", "n": 256, "k": 8192, "nt": 1, "silu_mul": false, "tile": {"warps_k": 8, "cluster_k": )" +
         (clusters ? "4" : "1") + R"(},
     "pdl": true, "time_us": 5.0, "measurement": "m"},
    {"family": "nvfp4_gemv", "n": 512, "k": 65536, "nt": 1, "tile": {"warps_k": 4}, "predicted": true}
  ],
  "defaults": [
    {"family": "nvfp4_gemv", "tile": {"warps_k": 8, "stages": 2}},
    {"family": "bf16_gemv", "tile": {"warps_k": 8, "stages": 2}}
  ]
})";
}

inline FakeDevice device_of(int major, int minor) {
  FakeDevice device;
  device.major = major;
  device.minor = minor;
  return device;
}

class RuntimeTest : public ::testing::Test {
 protected:
  RuntimeTest() {
    options.device = 0;
    options.cache_dir = dir.path("cache");
    options.compile_threads = 4;
    dir.write("tables/clusters.json", test_table(true));
    dir.write("tables/no_clusters.json", test_table(false));
    options.tuning_dir = dir.path("tables");
    options.log_sink = [this](LogLevel level, std::string_view message) {
      const std::lock_guard lock(log_mutex);
      log.push_back((level == LogLevel::warning ? "warning: " : "") + std::string(message));
    };
  }

  Dependencies dependencies() {
    Dependencies result;
    result.driver = [this](const std::string& purpose) -> Result<std::shared_ptr<const cuda::DriverApi>> {
      ++driver_asked;
      if (no_driver) return Status(StatusCode::no_driver, "no libcuda, needed to " + purpose);
      return std::shared_ptr<const cuda::DriverApi>(driver);
    };
    result.compiler = [this](int, const std::string& purpose) -> Result<std::unique_ptr<Compiler>> {
      ++compilers.opened;
      if (compilers.missing) return Status(StatusCode::no_compiler, "no NVRTC, needed to " + purpose);
      return std::unique_ptr<Compiler>(std::make_unique<FakeCompiler>(compilers));
    };
    result.store = default_dependencies().store;
    result.remote = remote;
    result.lock_timing = timing;
    return result;
  }

  // A context that must come about.
  std::unique_ptr<Context> make() {
    Result<std::unique_ptr<Context>> context = Context::create(options, dependencies());
    EXPECT_TRUE(context) << context.status().text();
    return context ? std::move(context).value() : nullptr;
  }

  static ProblemRequest nvfp4(std::int64_t n, std::int64_t k, int nt = 0) {
    ProblemRequest request;
    request.problem = {Family::nvfp4_gemv, n, k, false, true};
    request.nt = nt;
    request.allow_untuned = true;
    return request;
  }
  static ProblemRequest bf16(std::int64_t n, std::int64_t k, int nt = 0) {
    ProblemRequest request = nvfp4(n, k, nt);
    request.problem.family = Family::bf16_gemv;
    return request;
  }
  static ProblemRequest on(ProblemRequest request, const char* arch) {
    request.arch = Arch::parse(arch).value();
    return request;
  }
  static ProblemRequest without_pdl(ProblemRequest request) {
    request.problem.pdl = false;
    return request;
  }

  // The one kernel of a request with an nt.
  static WorkItem item(const Context& context, const ProblemRequest& request) {
    Result<WorkItem> planned = plan_kernel(context, request, request.nt);
    EXPECT_TRUE(planned) << planned.status().text();
    return planned ? std::move(planned).value() : WorkItem{};
  }

  std::size_t logged(std::string_view part) {
    const std::lock_guard lock(log_mutex);
    return std::count_if(log.begin(), log.end(),
                         [&](const std::string& line) { return line.find(part) != std::string::npos; });
  }

  TempDir dir;
  ContextOptions options;
  RecordingState recording;
  std::shared_ptr<cuda::DriverApi> driver = make_recording_driver(recording);
  std::atomic<int> driver_asked{0};
  bool no_driver = false;
  FakeCompilers compilers;
  std::function<std::unique_ptr<HttpTransport>(const RemoteOptions&)> remote;  // empty: a remote cache is of no use
  LockTiming timing;                                                           // of the locks between processes
  std::mutex log_mutex;
  std::vector<std::string> log;
};

}  // namespace gemvjit::test
