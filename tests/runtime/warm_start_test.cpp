// B73: what a start with a full cache costs: every kernel of a model opened, verified and loaded. The entries are made
// up and have the size of real ones; the driver is a recording one, so that its own time is not in the figure.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <ctime>

#include "src/runtime/warmup.h"
#include "tests/runtime/runtime_fixture.h"

namespace gemvjit::test {
namespace {

class WarmStart : public RuntimeTest {
 protected:
  // The linear layers of a transformer of 8 billion parameters, with every nt and the kernel for prefill.
  static std::vector<ProblemRequest> model() {
    std::vector<ProblemRequest> requests;
    constexpr std::int64_t shapes[][2] = {{6144, 4096}, {4096, 4096}, {28672, 4096}, {4096, 14336}, {128256, 4096}};
    for (const auto& [n, k] : shapes) {
      requests.push_back(nvfp4(n, k));
      requests.push_back(bf16(n, k));
      requests.push_back(nvfp4(n, k));
      requests.back().problem.family = Family::dequantize_rows;
    }
    return requests;
  }
};

// Processor time, so that a loaded machine does not matter. The bounds are about ten times what was measured, with
// and without optimization (docs/reliability.md).
TEST_F(WarmStart, AFullModelIsReadyQuickly) {
  constexpr std::size_t cubin_bytes = 48 * 1024;  // those for sm_90a are of 15 to 60 KiB
  options.compile_threads = 1;
  compilers.text = std::string(cubin_bytes, 'c');
  const std::vector<ProblemRequest> requests = model();
  std::size_t kernels = 0;
  {
    const auto context = make();
    WarmupOptions fill;
    fill.load = std::nullopt;
    ASSERT_TRUE(warm_up(*context, requests, fill).overall);
    kernels = compilers.compiled().size();
    ASSERT_EQ(kernels, 5u * (3 + 3 + 1));
  }
#ifdef __OPTIMIZE__
  constexpr double bound_ms = 1'000;
#else
  constexpr double bound_ms = 6'000;
#endif
  const auto milliseconds = [] { return 1e3 * static_cast<double>(std::clock()) / CLOCKS_PER_SEC; };
  double create = 1e9, load = 1e9;  // the best of three
  for (int round = 0; round < 3; ++round) {
    recording.forget_calls();
    const double begin = milliseconds();
    const auto context = make();
    const double made = milliseconds();
    ASSERT_TRUE(warm_up(*context, requests, {}).overall);
    load = std::min(load, milliseconds() - made);
    create = std::min(create, made - begin);
    EXPECT_EQ(recording.count("cuLibraryLoadData"), kernels);
    EXPECT_EQ(context->counters().cache_hits, kernels);
  }
  EXPECT_EQ(compilers.compiled().size(), kernels) << "nothing was compiled again";
  std::printf("warm start: context %.1f ms, then %zu kernels of %zu KiB in %.1f ms of processor time\n", create,
              kernels, cubin_bytes / 1024, load);
  EXPECT_LT(create + load, bound_ms);
}

}  // namespace
}  // namespace gemvjit::test
