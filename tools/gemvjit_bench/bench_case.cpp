#include "tools/gemvjit_bench/bench_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <vector>

#include "kernels/shared/nvfp4_layout.h"
#include "tools/verification/device_memory.h"
#include "tools/verification/number_formats.h"
#include "tools/verification/reference.h"

namespace gemvjit::tools {
namespace {

constexpr std::uint64_t kColdBytes = 210u << 20;  // well past the 60 MB of L2
constexpr int kMinCopies = 4, kMaxCopies = 256;
constexpr std::int64_t kCheckedRows = 48;

std::uint64_t round_up(std::uint64_t value, std::uint64_t to) { return (value + to - 1) / to * to; }

// Host side of one copy's weights. Only the first copy is checked, so the others repeat a random block.
struct HostWeights {
  std::vector<std::uint8_t> weight, scales;
};

std::vector<std::uint16_t> random_bf16(std::size_t count, std::uint64_t seed, double scale) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal(0, scale);
  std::vector<std::uint16_t> values(count);
  for (auto& value : values) value = reference::bf16_bits(normal(random));
  return values;
}

// A block of random weight bytes, repeated over buffers at an odd period.
std::vector<std::uint8_t> random_block(gemvjit_family family, std::size_t bytes) {
  if (family == GEMVJIT_BF16_GEMV) {
    const auto values = random_bf16(bytes / 2, 7, 0.05);
    const auto* begin = reinterpret_cast<const std::uint8_t*>(values.data());
    return {begin, begin + values.size() * 2};
  }
  std::vector<std::uint8_t> block(bytes);
  std::mt19937_64 random(7);
  for (auto& byte : block) byte = static_cast<std::uint8_t>(random());
  return block;
}

// E4M3 scales between 2^-3 and 2^3, all mantissas.
std::vector<std::uint8_t> random_scales(std::size_t bytes) {
  std::vector<std::uint8_t> block(bytes);
  std::mt19937_64 random(11);
  for (auto& byte : block) byte = static_cast<std::uint8_t>(0x20 + random() % 0x30);
  return block;
}

struct Buffers {
  DeviceBuffer weights, scales, x, out, global_scale;
  std::uint64_t weight_stride, scale_stride, out_stride;
  int copies;
};

Result<Buffers> make_buffers(const GpuHarness& gpu, const BenchCase& bench, std::uint64_t& bytes) {
  const bool nvfp4 = bench.family == GEMVJIT_NVFP4_GEMV;
  const auto elements = static_cast<std::uint64_t>(bench.n) * static_cast<std::uint64_t>(bench.k);
  const std::uint64_t weight_bytes = nvfp4 ? elements / 2 : elements * 2;
  const std::uint64_t scale_bytes = nvfp4 ? static_cast<std::uint64_t>(swizzled_scale_bytes(bench.n, bench.k)) : 0;
  bytes = weight_bytes + scale_bytes;
  const int copies =
      bench.warm
          ? 1
          : static_cast<int>(std::clamp<std::uint64_t>((kColdBytes + bytes - 1) / bytes, kMinCopies, kMaxCopies));
  const std::uint64_t weight_stride = round_up(weight_bytes, 256), scale_stride = round_up(scale_bytes, 256);
  const std::int64_t out_columns = bench.silu_mul ? bench.n / 2 : bench.n;
  const std::uint64_t out_stride = round_up(static_cast<std::uint64_t>(bench.m * out_columns) * 2, 256);
  const auto count = static_cast<std::uint64_t>(copies);
  GEMVJIT_TRY_ASSIGN(DeviceBuffer weights, DeviceBuffer::create(gpu, weight_stride * count, 0, false));
  GEMVJIT_TRY(fill_repeating(gpu, weights, random_block(bench.family, (8u << 20) + 4112)));
  GEMVJIT_TRY_ASSIGN(DeviceBuffer scales,
                     DeviceBuffer::create(gpu, std::max<std::uint64_t>(scale_stride * count, 256), 0, false));
  GEMVJIT_TRY(fill_repeating(gpu, scales, random_scales((1u << 20) + 528)));
  const auto host_x = random_bf16(static_cast<std::size_t>(bench.m * std::max(bench.k, out_columns)), 3, 1.0);
  GEMVJIT_TRY_ASSIGN(DeviceBuffer x, DeviceBuffer::from(gpu, std::span<const std::uint16_t>(host_x)));
  GEMVJIT_TRY_ASSIGN(DeviceBuffer out, DeviceBuffer::create(gpu, out_stride * count));
  const std::vector<float> one{0.01f};
  GEMVJIT_TRY_ASSIGN(DeviceBuffer global_scale, DeviceBuffer::from(gpu, std::span<const float>(one)));
  return Buffers{std::move(weights), std::move(scales), std::move(x), std::move(out), std::move(global_scale),
                 weight_stride,      scale_stride,      out_stride,   copies};
}

Status launch(gemvjit_context* context, const BenchCase& bench, const Buffers& b, int copy, CUstream stream) {
  const auto index = static_cast<std::uint64_t>(copy);
  const bool from_previous = bench.chain && copy > 0;
  void* x = reinterpret_cast<void*>(from_previous ? b.out.address() + (index - 1) * b.out_stride : b.x.address());
  void* weight = reinterpret_cast<void*>(b.weights.address() + index * b.weight_stride);
  void* out = reinterpret_cast<void*>(b.out.address() + index * b.out_stride);
  gemvjit_status status = GEMVJIT_OK;
  if (bench.family == GEMVJIT_BF16_GEMV) {
    gemvjit_bf16_gemv_args args{};
    args.struct_size = sizeof args;
    args.m = bench.m, args.n = bench.n, args.k = bench.k, args.x_row_stride = bench.k;
    args.x = x, args.weight = weight, args.out = out;
    args.silu_mul = bench.silu_mul, args.pdl = bench.pdl;
    status = gemvjit_bf16_gemv(context, &args, stream);
  } else {
    gemvjit_nvfp4_gemv_args args{};
    args.struct_size = sizeof args;
    args.m = bench.m, args.n = bench.n, args.k = bench.k, args.x_row_stride = bench.k;
    args.x = x, args.weight = weight, args.out = out;
    args.weight_scale = reinterpret_cast<void*>(b.scales.address() + index * b.scale_stride);
    args.global_scale = b.global_scale.as<float>();
    args.scale_layout = GEMVJIT_SCALE_128X4_SWIZZLED;
    args.global_scale_kind = GEMVJIT_GLOBAL_SCALE_MULTIPLIER;
    args.silu_mul = bench.silu_mul, args.pdl = bench.pdl;
    status = gemvjit_nvfp4_gemv(context, &args, stream);
  }
  if (status != GEMVJIT_OK) return {static_cast<StatusCode>(status), gemvjit_last_error()};
  return Status::ok();
}

// Rows spread over the weight, always the last; with silu_mul pairs of gate and up.
std::vector<std::int64_t> checked_columns(std::int64_t columns) {
  std::vector<std::int64_t> picked;
  const std::int64_t count = std::min(columns, kCheckedRows);
  for (std::int64_t i = 0; i < count; ++i) picked.push_back(columns - 1 - i * columns / count);
  return picked;
}

// Compares sampled columns of the first copy's out with the float64 reference of just those weight rows.
Status check_numbers(const BenchCase& bench, const Buffers& b, BenchResult& result) {
  const std::int64_t columns = bench.silu_mul ? bench.n / 2 : bench.n;
  const auto picked = checked_columns(columns);
  std::vector<std::int64_t> rows = picked;
  if (bench.silu_mul) {
    for (const std::int64_t column : picked) rows.push_back(columns + column);
  }
  const bool nvfp4 = bench.family == GEMVJIT_NVFP4_GEMV;
  const auto row_bytes = static_cast<std::size_t>(nvfp4 ? bench.k / 2 : bench.k * 2);
  const auto scale_columns_count = static_cast<std::size_t>(bench.k / 16);
  std::vector<std::uint8_t> weight(rows.size() * row_bytes), all_scales, scales;
  if (nvfp4) {
    all_scales.resize(static_cast<std::size_t>(swizzled_scale_bytes(bench.n, bench.k)));
    GEMVJIT_TRY(b.scales.download_bytes(all_scales.data(), all_scales.size(), 0));
    scales.resize(rows.size() * scale_columns_count);
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    GEMVJIT_TRY(b.weights.download_bytes(weight.data() + i * row_bytes, row_bytes,
                                         static_cast<std::size_t>(rows[i]) * row_bytes));
    for (std::size_t c = 0; nvfp4 && c < scale_columns_count; ++c) {
      scales[i * scale_columns_count + c] = all_scales[static_cast<std::size_t>(
          swizzled_scale_offset(rows[i], static_cast<long long>(c), padded_scale_columns(bench.k)))];
    }
  }
  GEMVJIT_TRY_ASSIGN(const auto x, b.x.download<std::uint16_t>());
  const reference::Activations activations{bench.m, bench.k, x.data()};
  const auto row_count = static_cast<std::int64_t>(rows.size());
  const reference::Expected expected =
      nvfp4 ? reference::nvfp4_gemv(
                  {row_count, bench.k, weight.data(), scales.data(), reference::ScaleLayout::row_major, 0.01f},
                  activations, bench.silu_mul)
            : reference::bf16_gemv({row_count, bench.k, reinterpret_cast<const std::uint16_t*>(weight.data())},
                                   activations, bench.silu_mul);
  std::vector<std::uint16_t> out(static_cast<std::size_t>(bench.m * columns)), got;
  GEMVJIT_TRY(b.out.download_bytes(out.data(), out.size() * 2, 0));
  for (std::int64_t token = 0; token < bench.m; ++token) {
    for (const std::int64_t column : picked) got.push_back(out[static_cast<std::size_t>(token * columns + column)]);
  }
  const reference::Comparison comparison = reference::compare(expected, got);
  result.worst = comparison.worst;
  if (!comparison.within_bounds) result.problem = comparison.first_bad;
  return Status::ok();
}

}  // namespace

Result<BenchResult> run_bench_case(const GpuHarness& gpu, const GpuStream& stream, gemvjit_context* context,
                                   const CeilingKernels* ceilings, const BenchCase& bench, int replays) {
  BenchResult result;
  result.bench = bench;
  GEMVJIT_TRY_ASSIGN(const Buffers buffers, make_buffers(gpu, bench, result.bytes));
  result.copies = buffers.copies;
  // A warm run repeats its one copy, so that there are enough nodes to time.
  const int nodes = bench.warm ? 64 : buffers.copies;
  const auto time = [&](const std::function<Status(int)>& op) -> Result<double> {
    GEMVJIT_TRY_ASSIGN(const GpuGraph graph, GpuGraph::capture(gpu, stream, [&]() -> Status {
                         for (int i = 0; i < nodes; ++i) GEMVJIT_TRY(op(i % buffers.copies));
                         return Status::ok();
                       }));
    GEMVJIT_TRY_ASSIGN(const double us, graph.median_us(stream, replays));
    return us / nodes;
  };
  GEMVJIT_TRY_ASSIGN(result.us, time([&](int copy) { return launch(context, bench, buffers, copy, stream.get()); }));
  GEMVJIT_TRY(stream.synchronize());
  GEMVJIT_TRY(check_numbers(bench, buffers, result));
  if (ceilings == nullptr) return result;
  const auto ceiling = [&](Ceiling which) {
    return time([&, which](int copy) {
      const auto index = static_cast<std::uint64_t>(copy);
      // The weights' bytes stand for the scales' as well: as many bytes, from the same buffer, wrapping at its end.
      const std::uint64_t bytes = std::min<std::uint64_t>(result.bytes / 16 * 16, buffers.weights.size());
      const std::uint64_t last = buffers.weights.size() - bytes;
      const std::uint64_t step =
          buffers.copies > 1 ? last / static_cast<std::uint64_t>(buffers.copies - 1) / 16 * 16 : 0;
      return ceilings->launch(which, stream.get(), buffers.weights.address() + index * step, bytes, buffers.x.address(),
                              static_cast<std::uint64_t>(bench.m * bench.k) * 2,
                              buffers.out.address() + index * buffers.out_stride, buffers.out_stride);
    });
  };
  GEMVJIT_TRY_ASSIGN(result.plain_us, ceiling(Ceiling::plain));
  GEMVJIT_TRY_ASSIGN(result.pdl_us, ceiling(Ceiling::pdl));
  GEMVJIT_TRY_ASSIGN(result.pdl_x_out_us, ceiling(Ceiling::pdl_x_out));
  return result;
}

}  // namespace gemvjit::tools
