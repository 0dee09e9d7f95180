// Chain: the CUDA graph that every timing here is made with, one node (or a few) for each op, one op after another.
#pragma once

#include <functional>
#include <vector>

#include "src/base/status.h"
#include "tools/verification/gpu_harness.h"

namespace gemvjit::tools {

// Threads: that in which the device is current. Other threads may use the driver meanwhile.
class Chain {
 public:
  // `op(i)` puts op i of `ops` into the stream.
  static Result<Chain> capture(const GpuHarness& gpu, const GpuStream& stream, int ops,
                               const std::function<Status(int)>& op);
  // One replay, waited for: the first loads what is loaded lazily.
  Status run_once(const GpuStream& stream) const;
  // The same for ops that may never end: false if it was not done within `seconds`; then the device is lost.
  Result<bool> run_once_within(const GpuStream& stream, double seconds) const;
  // Appends the microseconds of an op, one number for each of `replays`.
  Status sample(const GpuStream& stream, int replays, std::vector<double>& us_per_op) const;

 private:
  Chain(GpuGraph graph, int ops) : graph_(std::move(graph)), ops_(ops) {}
  GpuGraph graph_;
  int ops_;
};

}  // namespace gemvjit::tools
