// Alternative: the best other way to compute an op, timed in the same cold chain: cuBLASLt on BF16 weights, with
// silu_mul followed by a kernel of its own for the activation.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "src/base/status.h"
#include "tools/measure/cold_data.h"
#include "tools/measure/cublaslt.h"
#include "tools/measure/helper_kernel.h"
#include "tools/measure/samples.h"

namespace gemvjit::tools {

struct AlternativeTime {
  Spread us;            // of an op, the best algorithm's
  int algorithms = 0;   // that were timed
  std::string problem;  // not empty: its numbers are wrong and its time means nothing
};

class Alternative {
 public:
  // not_found if there is no libcublasLt; `path` (may be empty) is then the only file tried.
  static Result<std::unique_ptr<Alternative>> open(const GpuHarness& gpu, const std::string& path);

  const CublasLt& cublaslt() const { return *cublaslt_; }
  // `problem` counts by n, k and silu_mul; weights are BF16 whatever its family. `arena` is prepared for it anew, so
  // earlier buffers of it are not to be used after this. Every algorithm is timed with a few replays, the best two with
  // `replays`. unsupported if cuBLASLt has no algorithm.
  Result<AlternativeTime> time(const GpuStream& stream, ColdArena& arena, const HostBlocks& blocks, Problem problem,
                               std::int64_t m, int replays, bool warm) const;

 private:
  explicit Alternative(const GpuHarness& gpu) : gpu_(gpu) {}
  const GpuHarness& gpu_;
  std::unique_ptr<CublasLt> cublaslt_;
  std::unique_ptr<HelperKernel> silu_;
};

}  // namespace gemvjit::tools
