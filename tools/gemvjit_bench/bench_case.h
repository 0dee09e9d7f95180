// One row of the benchmark: a shape, a family and a number of tokens, timed cold in a CUDA graph chain.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>

#include "gemvjit/gemvjit.h"
#include "src/base/status.h"
#include "tools/measure/alternative.h"
#include "tools/measure/ceilings.h"
#include "tools/measure/cold_data.h"
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
  double spread_us = 0;                               // half the distance between the quartiles
  double plain_us = 0, pdl_us = 0, pdl_x_out_us = 0;  // ceilings
  double cublaslt_us = 0;                             // the same shape on BF16 weights; 0 if not timed
  double worst = 0;                                   // largest error over its bound, sampled rows
  std::string problem;                                // "" if the numbers are right
};

// Runs rows of the benchmark on one device, whose context must be current. Ceilings and alternative may be null: then
// they are not timed. All of these must outlive it.
class BenchRunner {
 public:
  BenchRunner(const GpuHarness& gpu, const GpuStream& stream, gemvjit_context* context, const CeilingKernels* ceilings,
              const Alternative* alternative, int replays)
      : gpu_(gpu),
        stream_(stream),
        context_(context),
        ceilings_(ceilings),
        alternative_(alternative),
        replays_(replays),
        arena_(gpu, blocks_) {}

  // The kernel must be warm in the context.
  Result<BenchResult> run(const BenchCase& bench);

 private:
  Status time_ceilings(const BenchCase& bench, const ColdBuffers& buffers, BenchResult& result);
  Result<double> time_alternative(const BenchCase& bench);

  const GpuHarness& gpu_;
  const GpuStream& stream_;
  gemvjit_context* context_;
  const CeilingKernels* ceilings_;
  const Alternative* alternative_;
  const int replays_;
  const HostBlocks blocks_;
  ColdArena arena_;
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t, bool>, double> alternative_us_;  // n, k, m, silu_mul
};

}  // namespace gemvjit::tools
