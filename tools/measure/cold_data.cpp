#include "tools/measure/cold_data.h"

#include <algorithm>
#include <random>

#include "tools/verification/number_formats.h"

namespace gemvjit::tools {
namespace {

constexpr std::uint64_t kColdBytes = 210u << 20;  // well past the 60 MB of L2
constexpr std::uint64_t kMinCopies = 4, kMaxCopies = 1024;

std::uint64_t round_up(std::uint64_t value, std::uint64_t to) { return (value + to - 1) / to * to; }

std::vector<std::uint16_t> random_bf16(std::size_t count, std::uint64_t seed, float scale) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal(0, scale);
  std::vector<std::uint16_t> values(count);
  for (auto& value : values) value = reference::bf16_bits(static_cast<double>(normal(random)));
  return values;
}

template <typename T>
std::span<const std::uint8_t> bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const std::uint8_t*>(values.data()), values.size() * sizeof(T)};
}

}  // namespace

// The sizes are no multiples of anything that a shape is made of, so that copies of a weight differ.
HostBlocks::HostBlocks()
    : bf16(random_bf16((4u << 20) + 2056, 7, 0.05f)),
      codes((8u << 20) + 4112),
      scales((1u << 20) + 528),
      x(random_bf16((1u << 20) + 24, 3, 1.0f)) {
  std::mt19937_64 random(11);
  for (auto& byte : codes) byte = static_cast<std::uint8_t>(random());
  for (auto& byte : scales) byte = static_cast<std::uint8_t>(0x20 + random() % 0x30);
}

int cold_copies(std::uint64_t bytes) {
  return static_cast<int>(
      std::clamp<std::uint64_t>((kColdBytes + bytes - 1) / std::max<std::uint64_t>(bytes, 1), kMinCopies, kMaxCopies));
}

Status ColdArena::ensure(std::optional<DeviceBuffer>& buffer, std::uint64_t bytes,
                         std::span<const std::uint8_t> block) {
  if (buffer && buffer->size() >= bytes) return Status::ok();
  buffer.reset();  // before the new one is asked for
  const std::uint64_t room = round_up(bytes + bytes / 4, 1u << 20);
  GEMVJIT_TRY_ASSIGN(DeviceBuffer made, DeviceBuffer::create(gpu_, room, 0, block.empty()));
  if (!block.empty()) GEMVJIT_TRY(fill_repeating(gpu_, made, block));
  buffer.emplace(std::move(made));
  return Status::ok();
}

Result<ColdBuffers> ColdArena::prepare(const Problem& problem, int max_m, int copies) {
  const bool nvfp4 = problem.family == Family::nvfp4_gemv;
  const auto m = static_cast<std::uint64_t>(max_m), n = static_cast<std::uint64_t>(problem.n);
  const auto k = static_cast<std::uint64_t>(problem.k);
  ColdBuffers b;
  b.bytes = weight_bytes(problem) + scale_bytes(problem);
  b.copies = copies > 0 ? copies : cold_copies(b.bytes);
  b.out_columns = problem.silu_mul ? problem.n / 2 : problem.n;
  b.weight_stride = round_up(weight_bytes(problem), 256);
  b.scale_stride = round_up(scale_bytes(problem), 256);
  b.out_stride = round_up(m * static_cast<std::uint64_t>(b.out_columns) * 2, 256);
  const auto count = static_cast<std::uint64_t>(b.copies);
  b.weights_size = b.weight_stride * count;
  std::optional<DeviceBuffer>& weights = nvfp4 ? codes_ : bf16_;
  GEMVJIT_TRY(ensure(weights, b.weights_size, nvfp4 ? std::span(blocks_.codes) : bytes_of(blocks_.bf16)));
  if (nvfp4) GEMVJIT_TRY(ensure(scales_, b.scale_stride * count, blocks_.scales));
  GEMVJIT_TRY(ensure(x_, m * k * 2, bytes_of(blocks_.x)));
  GEMVJIT_TRY(ensure(out_, b.out_stride * count, {}));
  if (problem.silu_mul) GEMVJIT_TRY(ensure(hidden_, m * n * 2, {}));
  if (!global_scale_) {
    GEMVJIT_TRY_ASSIGN(DeviceBuffer scale, DeviceBuffer::from(gpu_, std::span<const float>(&kGlobalScale, 1)));
    global_scale_.emplace(std::move(scale));
  }
  b.weights = weights->address();
  b.scales = nvfp4 ? scales_->address() : 0;
  b.x = x_->address();
  b.out = out_->address();
  b.hidden = problem.silu_mul ? hidden_->address() : 0;
  b.global_scale = nvfp4 ? global_scale_->address() : 0;
  return b;
}

}  // namespace gemvjit::tools
