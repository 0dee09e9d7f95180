// One layer of a checkpoint through its GEMV on the device, against the float64 reference from the same bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "tools/gemvjit_verify/checkpoint.h"
#include "tools/verification/gpu_harness.h"

namespace gemvjit::tools {

struct LayerReport {
  LinearLayer layer;
  std::int64_t m = 0;
  double worst = 0;  // largest error over the permitted one; 1 is the limit
  bool within_bounds = false;
  std::string first_bad;    // the first element out of bounds; empty if none
  double microseconds = 0;  // of one launch in a graph of kTimedLaunches, median over replays; weights stay in L2
};

inline constexpr int kTimedLaunches = 20;

// Runs the layer for each M with random activations from `seed`. The kernels must be warm in `context` (every nt, PDL
// allowed). A report for each M, or the first failure that is no matter of numbers (memory, launch, guard zones).
Result<std::vector<LayerReport>> check_layer(const GpuHarness& gpu, const GpuStream& stream, gemvjit_context* context,
                                             const LayerWeights& weights, const std::vector<std::int64_t>& tokens,
                                             std::uint64_t seed);

}  // namespace gemvjit::tools
