// Whether a kernel computed the right numbers: sampled columns of the first copy's `out` against float64, and every
// element of it for having been written at all.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "src/catalog/catalog.h"
#include "tools/measure/cold_data.h"
#include "tools/verification/reference.h"

namespace gemvjit::tools {

// What is expected of one shape and number of tokens, made once and used for every candidate.
struct SampledReference {
  std::int64_t m = 0, out_columns = 0;
  std::vector<std::int64_t> columns;  // at most 32, spread unevenly (a fault may hit one place of every tile), the last
                                      // always among them
  reference::Expected expected;       // [m, columns]
};

// For weights and x as a ColdArena's first copy has them. Pure; any thread; itself uses threads for large shapes.
SampledReference make_reference(const HostBlocks& blocks, const Problem& problem, std::int64_t m);

struct NumberCheck {
  double worst = 0;     // largest error over its bound
  std::string problem;  // "" if all is right
};

// 0xFF into the first copy's `out`, before the kernel runs. Waits until it is there.
Status poison_out(const GpuHarness& gpu, const ColdBuffers& buffers, std::int64_t m);
// The stream that the kernel ran on must have been waited for.
Result<NumberCheck> check_numbers(const GpuHarness& gpu, const ColdBuffers& buffers, const SampledReference& reference);
// The part without a device: `out` is [m, out_columns].
NumberCheck compare_sampled(const SampledReference& reference, const std::vector<std::uint16_t>& out);

}  // namespace gemvjit::tools
