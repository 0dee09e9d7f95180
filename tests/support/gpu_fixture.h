// What every test on a device starts from: the device (or a skip that says why there is none), a cache folder that all
// tests of the process share, and contexts that use one tile configuration of the test's choice.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "src/catalog/catalog.h"
#include "tests/support/gpu_problem.h"
#include "tests/support/temp_dir.h"
#include "tools/verification/gpu_harness.h"

namespace gemvjit::test {

// A gemvjit context on the test's device.
class GpuContext {
 public:
  // `tile`: for every GEMV of both families, through a tuning folder of its own; nullptr: the built-in tables.
  // `cache_dir` "": the process's shared one. `device`: an ordinal or GEMVJIT_DEVICE_NONE. Failures are test failures.
  explicit GpuContext(const TileConfig* tile = nullptr, const std::string& cache_dir = "", int device = 0);
  ~GpuContext();
  GpuContext(const GpuContext&) = delete;
  GpuContext& operator=(const GpuContext&) = delete;

  gemvjit_context* get() const { return context_; }

  // Adds a kernel to warm; nt 0 is every nt.
  void add(const ProblemShape& shape, int nt, bool pdl, bool scale_segments = false);
  void add_dequantize(std::int64_t n, std::int64_t k, bool pdl);
  void add_swizzle(std::int64_t n, std::int64_t k);
  // Warms what was added, on many threads; false, with a test failure, if something failed.
  bool warm();
  gemvjit_stats_data stats() const;

 private:
  gemvjit_context* context_ = nullptr;
  std::unique_ptr<TempDir> tuning_;
  std::vector<gemvjit_problem> problems_;
};

// nt of the smallest kernel that serves M.
int nt_of(std::int64_t m);
std::string tile_text(const TileConfig& tile);

struct RunOptions {
  bool pdl = true;
  Placement placement;
};

class GpuTest : public testing::Test {
 protected:
  void SetUp() override;  // skips with the reason where there is no device
  static const GpuHarness& gpu();
  static CUstream stream();

  static constexpr RunOptions kPlain{false, {}}, kPdl{true, {}};
  // Launches on a poisoned output, and checks status, guards, that no input changed, and bounds. The output's bits;
  // empty after a failure. `what` goes into every message.
  static std::vector<std::uint16_t> run_checked(const GpuContext& context, const HostProblem& problem,
                                                const reference::Expected& expected, const RunOptions& options,
                                                const std::string& what);
  // As above without the comparison: for inputs that are wrong on purpose.
  static std::vector<std::uint16_t> run(const GpuContext& context, const HostProblem& problem,
                                        const RunOptions& options, const std::string& what);
  // dequantize_rows of the problem's weight, with a context of its own, checked like run(): BF16 [n, k].
  static std::vector<std::uint16_t> dequantize(const HostProblem& problem, bool pdl);
  static void synchronize();
  // What a C function returned, for functions that return a Status (GpuGraph::capture asks for one).
  static Status as_status(gemvjit_status status);
};

}  // namespace gemvjit::test
