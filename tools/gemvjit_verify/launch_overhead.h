// What a launch through the library costs the host above the driver's own call: gemvjit_bf16_gemv against a bare
// cuLaunchKernelEx of the same compiled kernel with the same attributes.
#pragma once

#include <string>

#include "gemvjit/gemvjit.h"
#include "src/base/status.h"
#include "tools/verification/gpu_harness.h"

namespace gemvjit::tools {

struct LaunchOverhead {
  std::string key;        // of the kernel
  double library_ns = 0;  // one launch, median over batches
  double bare_ns = 0;
  int batches = 0, launches_per_batch = 0;
  double difference_ns() const { return library_ns - bare_ns; }
};

// Warms one small BF16 kernel in `context`, whose cache must be a directory: the bare launch loads the same cubin from
// there. Batches of the two alternate, each on an idle stream and short enough for the driver's queue.
Result<LaunchOverhead> measure_launch_overhead(const GpuHarness& gpu, const GpuStream& stream, gemvjit_context* context,
                                               bool pdl);

}  // namespace gemvjit::tools
