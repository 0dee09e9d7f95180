// One row of the benchmark: a shape, a family and a number of tokens, timed cold in a CUDA graph chain.
#pragma once

#include <cstdint>
#include <string>

#include "gemvjit/gemvjit.h"
#include "src/base/status.h"
#include "tools/gemvjit_bench/ceilings.h"
#include "tools/verification/gpu_harness.h"

namespace gemvjit::tools {

struct BenchCase {
  gemvjit_family family = GEMVJIT_NVFP4_GEMV;
  std::int64_t n = 0, k = 0, m = 1;
  bool silu_mul = false;
  bool pdl = true;
  bool warm = false;   // one copy of the weights, resident in L2 where it fits
  bool chain = false;  // each op's x is the previous op's out (needs K <= columns of out)
};

struct BenchResult {
  BenchCase bench;
  std::uint64_t bytes = 0;  // weight and scales
  int copies = 0;
  double us = 0;                                      // median of an op
  double plain_us = 0, pdl_us = 0, pdl_x_out_us = 0;  // ceilings
  double worst = 0;                                   // largest error over its bound, sampled rows
  std::string problem;                                // "" if the numbers are right
};

// The kernel must be warm in `context`. Replays each graph `replays` times; ceilings may be null: then they are not
// timed.
Result<BenchResult> run_bench_case(const GpuHarness& gpu, const GpuStream& stream, gemvjit_context* context,
                                   const CeilingKernels* ceilings, const BenchCase& bench, int replays);

}  // namespace gemvjit::tools
