#include "tests/support/gpu_problem.h"

#include <fmt/format.h>

#include <cstring>

#include "tools/verification/number_formats.h"

namespace gemvjit::test {
namespace {

constexpr std::uint16_t kNan = 0xFFFF;

template <typename T>
Status same_as(const DeviceBuffer& buffer, const std::vector<T>& host, const char* what) {
  GEMVJIT_TRY(buffer.check_guards());
  GEMVJIT_TRY_ASSIGN(const std::vector<T> now, buffer.download<T>());
  if (now == host) return Status::ok();
  return {StatusCode::internal_error, fmt::format("{} was written to", what)};
}

std::vector<std::uint8_t> bytes_of(const std::vector<std::uint16_t>& values) {
  std::vector<std::uint8_t> bytes(values.size() * 2);
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

}  // namespace

std::uint64_t Random::next() {
  state_ += 0x9E3779B97F4A7C15u;
  std::uint64_t z = state_;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

std::uint16_t Random::bf16(int low_exponent) {
  const std::uint64_t bits = next();
  const unsigned exponent = static_cast<unsigned>(127 + low_exponent) + (bits >> 8 & 3);
  return static_cast<std::uint16_t>((bits & 1) << 15 | exponent << 7 | (bits >> 16 & 0x7F));
}

void Random::fill(std::vector<std::uint8_t>& bytes) {
  for (std::size_t i = 0; i < bytes.size(); i += 8) {
    const std::uint64_t bits = next();
    std::memcpy(bytes.data() + i, &bits, std::min<std::size_t>(8, bytes.size() - i));
  }
}

std::uint8_t random_scale(Random& random) {
  const std::uint64_t bits = random.next();
  if ((bits & 15) == 0) return static_cast<std::uint8_t>(bits >> 8 & 7);  // 0 or subnormal
  return static_cast<std::uint8_t>(0x28 + (bits >> 8 & 0x1F));            // 0.25 .. 3.75
}

std::string ProblemShape::text() const {
  return fmt::format("{} M={} N={} K={}{}{}", family == GEMVJIT_NVFP4_GEMV ? "nvfp4" : "bf16", m, n, k,
                     silu_mul ? " silu_mul" : "",
                     x_stride != 0 && x_stride != k ? fmt::format(" stride={}", x_stride) : "");
}

reference::Nvfp4Weight HostProblem::nvfp4_weight() const {
  return {shape.n, shape.k, weight.data(), scales.data(), reference::ScaleLayout::swizzled, global_scale};
}

reference::Expected HostProblem::expected() const {
  const reference::Activations activations{shape.m, shape.x_stride, x.data()};
  if (shape.family == GEMVJIT_NVFP4_GEMV) {
    return reference::nvfp4_gemv(nvfp4_weight(), activations, shape.silu_mul);
  }
  const reference::Bf16Weight bf16{shape.n, shape.k, reinterpret_cast<const std::uint16_t*>(weight.data())};
  return reference::bf16_gemv(bf16, activations, shape.silu_mul);
}

HostProblem random_problem(ProblemShape shape, std::uint64_t seed, std::uint8_t padding) {
  if (shape.x_stride == 0) shape.x_stride = shape.k;
  Random random(seed * 0x100000001B3u + static_cast<std::uint64_t>(shape.n * 31 + shape.k));
  HostProblem problem;
  problem.shape = shape;
  problem.x.assign(static_cast<std::size_t>(shape.m * shape.x_stride), kNan);
  for (std::int64_t i = 0; i < shape.m; ++i) {
    for (std::int64_t j = 0; j < shape.k; ++j) problem.x[i * shape.x_stride + j] = random.bf16(-3);
  }
  if (shape.family == GEMVJIT_BF16_GEMV) {
    std::vector<std::uint16_t> values(static_cast<std::size_t>(shape.n * shape.k));
    for (auto& value : values) value = random.bf16(-7);
    problem.weight = bytes_of(values);
    return problem;
  }
  problem.global_scale = 0.0078125f * (1.0f + 0.37f * static_cast<float>(seed % 7));
  problem.weight.resize(static_cast<std::size_t>(shape.n * shape.k / 2));
  random.fill(problem.weight);
  problem.row_scales.resize(static_cast<std::size_t>(shape.n * (shape.k / 16)));
  for (auto& scale : problem.row_scales) scale = random_scale(random);
  problem.scales = reference::swizzle_scales(problem.row_scales, shape.n, shape.k, padding);
  return problem;
}

HostProblem problem_of(const GoldenCase& golden) {
  HostProblem problem;
  problem.shape = {golden.nvfp4 ? GEMVJIT_NVFP4_GEMV : GEMVJIT_BF16_GEMV,
                   golden.m,
                   golden.n,
                   golden.k,
                   golden.silu_mul,
                   golden.x_stride};
  problem.global_scale = golden.global_scale;
  problem.x = golden.x;
  problem.weight = golden.nvfp4 ? golden.codes : bytes_of(golden.weight);
  problem.row_scales = golden.row_scales;
  problem.scales = golden.scales;
  return problem;
}

HostProblem first_tokens(const HostProblem& problem, std::int64_t m) {
  HostProblem part = problem;
  part.shape.m = m;
  part.x.resize(static_cast<std::size_t>(m * problem.shape.x_stride));
  return part;
}

reference::Expected first_tokens(const reference::Expected& expected, std::int64_t m) {
  reference::Expected part = expected;
  part.m = m;
  part.value.resize(static_cast<std::size_t>(m * expected.columns));
  part.bound.resize(part.value.size());
  return part;
}

Result<DeviceProblem> DeviceProblem::create(const GpuHarness& gpu, const HostProblem& host, Placement placement) {
  const ProblemShape& shape = host.shape;
  // The buffer of x ends with the last row's K elements, so that reading on finds the guard's NaN.
  const std::size_t x_elements = shape.m == 0 ? 0 : static_cast<std::size_t>((shape.m - 1) * shape.x_stride + shape.k);
  GEMVJIT_TRY_ASSIGN(DeviceBuffer x, DeviceBuffer::from(gpu, std::span(host.x).first(x_elements), placement.x_offset));
  GEMVJIT_TRY_ASSIGN(DeviceBuffer weight, DeviceBuffer::from(gpu, std::span(host.weight)));
  GEMVJIT_TRY_ASSIGN(DeviceBuffer scales, DeviceBuffer::from(gpu, std::span(host.scales)));
  GEMVJIT_TRY_ASSIGN(DeviceBuffer global_scale, DeviceBuffer::from(gpu, std::span(&host.global_scale, 1)));
  GEMVJIT_TRY_ASSIGN(DeviceBuffer out, DeviceBuffer::create(gpu, static_cast<std::size_t>(shape.m * host.columns()) * 2,
                                                            placement.out_offset));
  DeviceProblem problem(std::move(x), std::move(weight), std::move(scales), std::move(global_scale), std::move(out));
  problem.shape_ = shape;
  problem.x_address_ = problem.x_.as<void>();
  problem.x_stride_ = shape.x_stride;
  problem.out_address_ = problem.out_.as<void>();
  return problem;
}

void DeviceProblem::take_x_from(const DeviceBuffer& buffer, std::int64_t stride) {
  x_address_ = buffer.as<void>();
  x_stride_ = stride;
}

gemvjit_status DeviceProblem::launch(gemvjit_context* context, CUstream stream, bool pdl) const {
  return launch_m(context, stream, pdl, shape_.m);
}

gemvjit_status DeviceProblem::launch_m(gemvjit_context* context, CUstream stream, bool pdl, std::int64_t m) const {
  if (shape_.family == GEMVJIT_NVFP4_GEMV) {
    gemvjit_nvfp4_gemv_args args{};
    args.struct_size = sizeof(args);
    args.m = m;
    args.n = shape_.n;
    args.k = shape_.k;
    args.x_row_stride = x_stride_;
    args.x = x_address_;
    args.weight = weight_.as<void>();
    args.weight_scale = scales_.as<void>();
    args.global_scale = global_scale_.as<float>();
    args.out = out_address_;
    args.scale_layout = GEMVJIT_SCALE_128X4_SWIZZLED;
    args.global_scale_kind = GEMVJIT_GLOBAL_SCALE_MULTIPLIER;
    args.silu_mul = shape_.silu_mul ? 1 : 0;
    args.pdl = pdl ? 1 : 0;
    if (!segments_.empty()) {
      args.global_scale = nullptr;
      args.segments = segments_.data();
      args.segment_count = static_cast<std::int64_t>(segments_.size());
    }
    return gemvjit_nvfp4_gemv(context, &args, stream);
  }
  gemvjit_bf16_gemv_args args{};
  args.struct_size = sizeof(args);
  args.m = m;
  args.n = shape_.n;
  args.k = shape_.k;
  args.x_row_stride = x_stride_;
  args.x = x_address_;
  args.weight = weight_.as<void>();
  args.out = out_address_;
  args.silu_mul = shape_.silu_mul ? 1 : 0;
  args.pdl = pdl ? 1 : 0;
  return gemvjit_bf16_gemv(context, &args, stream);
}

gemvjit_status DeviceProblem::launch_dequantize(gemvjit_context* context, CUstream stream, bool pdl,
                                                const DeviceBuffer& out) const {
  gemvjit_dequantize_rows_args args{};
  args.struct_size = sizeof(args);
  args.n = shape_.n;
  args.k = shape_.k;
  args.weight = weight_.as<void>();
  args.weight_scale = scales_.as<void>();
  args.out = out.as<void>();
  args.scale_layout = GEMVJIT_SCALE_128X4_SWIZZLED;
  args.pdl = pdl ? 1 : 0;
  return gemvjit_dequantize_rows(context, &args, stream);
}

Status DeviceProblem::check_untouched(const HostProblem& host) const {
  GEMVJIT_TRY(same_as(weight_, host.weight, "the weight"));
  GEMVJIT_TRY(same_as(scales_, host.scales, "the scales"));
  std::vector<std::uint16_t> x = host.x;
  x.resize(x_.size() / 2);
  GEMVJIT_TRY(same_as(x_, x, "x"));
  GEMVJIT_TRY(global_scale_.check_guards());
  return out_.check_guards();
}

}  // namespace gemvjit::test
