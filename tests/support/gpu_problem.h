// Problems for tests on a device: random weights and activations (never zeros), on the host with their float64 result
// and on the device between guard zones, launched through the public C API.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gemvjit/gemvjit.h"
#include "src/base/status.h"
#include "tests/support/golden.h"
#include "tools/verification/device_memory.h"
#include "tools/verification/gpu_harness.h"
#include "tools/verification/reference.h"

namespace gemvjit::test {

// SplitMix64 (Steele, Lea, Flood 2014): small, fast, and the same everywhere.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next();
  // A BF16 of random sign and mantissa with an exponent in [low, low + 3].
  std::uint16_t bf16(int low_exponent);
  void fill(std::vector<std::uint8_t>& bytes);

 private:
  std::uint64_t state_;
};

// Scale bytes as checkpoints have them: mostly normal numbers of moderate size, one in 16 zero or subnormal; no NaN and
// no sign.
std::uint8_t random_scale(Random& random);

struct ProblemShape {
  gemvjit_family family = GEMVJIT_NVFP4_GEMV;  // or GEMVJIT_BF16_GEMV
  std::int64_t m = 1, n = 0, k = 0;
  bool silu_mul = false;
  std::int64_t x_stride = 0;  // 0: k

  std::string text() const;
};

struct HostProblem {
  ProblemShape shape;                    // x_stride set
  float global_scale = 1;                // nvfp4
  std::vector<std::uint16_t> x;          // [m, x_stride]; elements between the rows are NaN
  std::vector<std::uint8_t> weight;      // nvfp4: codes; bf16: the values' bytes
  std::vector<std::uint8_t> row_scales;  // nvfp4: row-major
  std::vector<std::uint8_t> scales;      // nvfp4: swizzled

  std::int64_t columns() const { return shape.silu_mul ? shape.n / 2 : shape.n; }
  reference::Nvfp4Weight nvfp4_weight() const;
  reference::Expected expected() const;
};

// `padding` is what the swizzled scales' padding holds.
HostProblem random_problem(ProblemShape shape, std::uint64_t seed, std::uint8_t padding = 0);
HostProblem problem_of(const GoldenCase& golden);
// The problem, or its result, of the first m tokens.
HostProblem first_tokens(const HostProblem& problem, std::int64_t m);
reference::Expected first_tokens(const reference::Expected& expected, std::int64_t m);

struct Placement {
  std::size_t x_offset = 0, out_offset = 0;  // bytes past an aligned address; even
};

// A problem's buffers on the device. The output begins poisoned.
class DeviceProblem {
 public:
  static Result<DeviceProblem> create(const GpuHarness& gpu, const HostProblem& host, Placement placement = {});

  // Launches `m` tokens (default: all) into the stream.
  gemvjit_status launch(gemvjit_context* context, CUstream stream, bool pdl) const;
  gemvjit_status launch_m(gemvjit_context* context, CUstream stream, bool pdl, std::int64_t m) const;
  // From now on launches name these in place of the global scale.
  void use_segments(std::vector<gemvjit_scale_segment> segments) { segments_ = std::move(segments); }
  // Reads another problem's output as x: for chains. Its row stride is `stride`.
  void take_x_from(const DeviceBuffer& buffer, std::int64_t stride);
  // From now on launches write here, with room for [m, columns]: for outputs side by side.
  void write_to(void* out) { out_address_ = out; }
  Status poison_output() { return out_.fill(DeviceBuffer::kPoison); }
  Result<std::vector<std::uint16_t>> output() const { return out_.download<std::uint16_t>(); }
  // That nothing but the output was written: guards, and inputs against the host's.
  Status check_untouched(const HostProblem& host) const;

  // dequantize_rows of an NVFP4 weight into `out`, BF16 [n, k].
  gemvjit_status launch_dequantize(gemvjit_context* context, CUstream stream, bool pdl, const DeviceBuffer& out) const;

  DeviceBuffer& out() { return out_; }
  DeviceBuffer& weight() { return weight_; }
  DeviceBuffer& scales() { return scales_; }

 private:
  DeviceProblem(DeviceBuffer x, DeviceBuffer weight, DeviceBuffer scales, DeviceBuffer global_scale, DeviceBuffer out)
      : x_(std::move(x)),
        weight_(std::move(weight)),
        scales_(std::move(scales)),
        global_scale_(std::move(global_scale)),
        out_(std::move(out)) {}

  ProblemShape shape_;
  const void* x_address_ = nullptr;
  std::int64_t x_stride_ = 0;
  void* out_address_ = nullptr;
  DeviceBuffer x_, weight_, scales_, global_scale_, out_;
  std::vector<gemvjit_scale_segment> segments_;
};

}  // namespace gemvjit::test
