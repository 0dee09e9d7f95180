#include "tools/measure/chain.h"

namespace gemvjit::tools {

Result<Chain> Chain::capture(const GpuHarness& gpu, const GpuStream& stream, int ops,
                             const std::function<Status(int)>& op) {
  const auto record = [&]() -> Status {
    for (int i = 0; i < ops; ++i) GEMVJIT_TRY(op(i));
    return Status::ok();
  };
  GEMVJIT_TRY_ASSIGN(GpuGraph graph, GpuGraph::capture(gpu, stream, record, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  return Chain(std::move(graph), ops);
}

Status Chain::run_once(const GpuStream& stream) const {
  GEMVJIT_TRY(graph_.launch(stream));
  return stream.synchronize();
}

Result<bool> Chain::run_once_within(const GpuStream& stream, double seconds) const {
  GEMVJIT_TRY(graph_.launch(stream));
  return stream.done_within(seconds);
}

Status Chain::sample(const GpuStream& stream, int replays, std::vector<double>& us_per_op) const {
  GEMVJIT_TRY_ASSIGN(const std::vector<double> times, graph_.times_us(stream, replays));
  for (const double us : times) us_per_op.push_back(us / ops_);
  return Status::ok();
}

}  // namespace gemvjit::tools
