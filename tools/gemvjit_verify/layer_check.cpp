#include "tools/gemvjit_verify/layer_check.h"

#include <random>
#include <span>

#include "tools/common/library_status.h"
#include "tools/common/printable.h"
#include "tools/verification/device_memory.h"
#include "tools/verification/number_formats.h"
#include "tools/verification/reference.h"

namespace gemvjit::tools {
namespace {

constexpr int kReplays = 15;

// Activations of unit variance, as after a norm layer.
std::vector<std::uint16_t> random_activations(std::int64_t m, std::int64_t k, std::uint64_t seed) {
  std::mt19937_64 generator(seed);
  std::normal_distribution<double> normal;
  std::vector<std::uint16_t> x(static_cast<std::size_t>(m * k));
  for (auto& value : x) value = reference::bf16_bits(normal(generator));
  return x;
}

struct DeviceLayer {
  DeviceBuffer weight, scales, global_scale;
};

Result<DeviceLayer> upload(const GpuHarness& gpu, const LayerWeights& weights) {
  const auto& [layer, weight, row_scales, global_scale] = weights;
  std::vector<std::uint8_t> swizzled;
  if (layer.type == WeightType::nvfp4) {
    swizzled.resize(gemvjit_swizzled_scale_bytes(layer.n, layer.k));
    GEMVJIT_TRY(
        from_library(gemvjit_swizzle_blockscale(row_scales.data(), layer.n, layer.k, swizzled.data(), swizzled.size()),
                     "swizzling the scales of " + printable(layer.name)));
  }
  GEMVJIT_TRY_ASSIGN(DeviceBuffer device_weight, DeviceBuffer::from(gpu, std::span(weight)));
  GEMVJIT_TRY_ASSIGN(DeviceBuffer device_scales, DeviceBuffer::from(gpu, std::span<const std::uint8_t>(swizzled)));
  GEMVJIT_TRY_ASSIGN(DeviceBuffer device_global, DeviceBuffer::from(gpu, std::span(&global_scale, 1)));
  return DeviceLayer{std::move(device_weight), std::move(device_scales), std::move(device_global)};
}

Status launch(gemvjit_context* context, const LinearLayer& layer, const DeviceLayer& device, const DeviceBuffer& x,
              const DeviceBuffer& out, std::int64_t m, CUstream stream) {
  if (layer.type == WeightType::bf16) {
    gemvjit_bf16_gemv_args args{};
    args.struct_size = sizeof(args);
    args.m = m;
    args.n = layer.n;
    args.k = layer.k;
    args.x_row_stride = layer.k;
    args.x = x.as<void>();
    args.weight = device.weight.as<void>();
    args.out = out.as<void>();
    args.pdl = 1;
    return from_library(gemvjit_bf16_gemv(context, &args, stream), "launching " + printable(layer.name));
  }
  gemvjit_nvfp4_gemv_args args{};
  args.struct_size = sizeof(args);
  args.m = m;
  args.n = layer.n;
  args.k = layer.k;
  args.x_row_stride = layer.k;
  args.x = x.as<void>();
  args.weight = device.weight.as<void>();
  args.weight_scale = device.scales.as<void>();
  args.global_scale = device.global_scale.as<float>();
  args.out = out.as<void>();
  args.scale_layout = GEMVJIT_SCALE_128X4_SWIZZLED;
  args.global_scale_kind = GEMVJIT_GLOBAL_SCALE_MULTIPLIER;
  args.pdl = 1;
  return from_library(gemvjit_nvfp4_gemv(context, &args, stream), "launching " + printable(layer.name));
}

// The reference reads the file's row-major scales, so that the library's swizzle is checked with the rest.
reference::Expected expected_of(const LayerWeights& weights, const std::vector<std::uint16_t>& x, std::int64_t m) {
  const LinearLayer& layer = weights.layer;
  const reference::Activations activations{m, layer.k, x.data()};
  if (layer.type == WeightType::bf16) {
    const auto* values = reinterpret_cast<const std::uint16_t*>(weights.weight.data());
    return reference::bf16_gemv({layer.n, layer.k, values}, activations, false);
  }
  return reference::nvfp4_gemv({layer.n, layer.k, weights.weight.data(), weights.row_scales.data(),
                                reference::ScaleLayout::row_major, weights.global_scale},
                               activations, false);
}

}  // namespace

Result<std::vector<LayerReport>> check_layer(const GpuHarness& gpu, const GpuStream& stream, gemvjit_context* context,
                                             const LayerWeights& weights, const std::vector<std::int64_t>& tokens,
                                             std::uint64_t seed) {
  const LinearLayer& layer = weights.layer;
  GEMVJIT_TRY_ASSIGN(const DeviceLayer device, upload(gpu, weights));
  std::vector<LayerReport> reports;
  for (const std::int64_t m : tokens) {
    const std::vector<std::uint16_t> host_x = random_activations(m, layer.k, seed + static_cast<std::uint64_t>(m));
    GEMVJIT_TRY_ASSIGN(const DeviceBuffer x, DeviceBuffer::from(gpu, std::span(host_x)));
    GEMVJIT_TRY_ASSIGN(const DeviceBuffer out, DeviceBuffer::create(gpu, static_cast<std::size_t>(m * layer.n) * 2));
    GEMVJIT_TRY(launch(context, layer, device, x, out, m, stream.get()));
    GEMVJIT_TRY(stream.synchronize());
    GEMVJIT_TRY(out.check_guards());
    GEMVJIT_TRY_ASSIGN(const std::vector<std::uint16_t> got, out.download<std::uint16_t>());
    const reference::Comparison comparison = reference::compare(expected_of(weights, host_x, m), got);

    LayerReport report;
    report.layer = layer;
    report.m = m;
    report.worst = comparison.worst;
    report.within_bounds = comparison.within_bounds;
    report.first_bad = comparison.first_bad;
    GEMVJIT_TRY_ASSIGN(const GpuGraph graph, GpuGraph::capture(gpu, stream, [&]() -> Status {
                         for (int i = 0; i < kTimedLaunches; ++i) {
                           GEMVJIT_TRY(launch(context, layer, device, x, out, m, stream.get()));
                         }
                         return Status::ok();
                       }));
    GEMVJIT_TRY_ASSIGN(const double graph_us, graph.median_us(stream, kReplays));
    report.microseconds = graph_us / kTimedLaunches;
    reports.push_back(report);
  }
  return reports;
}

}  // namespace gemvjit::tools
