#include "tools/measure/number_check.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/shared/nvfp4_layout.h"

namespace gemvjit::tools {
namespace {

constexpr std::int64_t kCheckedColumns = 32;
constexpr std::uint16_t kPoisonBits = 0xFFFF;  // two poison bytes: a NaN that no kernel makes of finite numbers

// One column of each of 32 equal stretches, at a place that differs from stretch to stretch.
std::vector<std::int64_t> sampled_columns(std::int64_t columns) {
  const std::int64_t count = std::min(columns, kCheckedColumns);
  std::vector<std::int64_t> picked;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t begin = i * columns / count, end = (i + 1) * columns / count;
    picked.push_back(i + 1 == count ? columns - 1 : begin + i * 37 % (end - begin));
  }
  return picked;
}

// `count` elements of a repeated block, from element `begin`.
template <typename T>
void copy_repeated(const std::vector<T>& block, std::size_t begin, std::size_t count, T* to) {
  std::size_t at = begin % block.size();
  for (std::size_t i = 0; i < count; ++i) {
    to[i] = block[at];
    if (++at == block.size()) at = 0;
  }
}

reference::Expected nvfp4_expected(const HostBlocks& blocks, const Problem& problem,
                                   const std::vector<std::int64_t>& rows, const reference::Activations& x) {
  const auto row_bytes = static_cast<std::size_t>(problem.k / 2), blocks_k = static_cast<std::size_t>(problem.k / 16);
  std::vector<std::uint8_t> codes(rows.size() * row_bytes), scales(rows.size() * blocks_k);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    copy_repeated(blocks.codes, static_cast<std::size_t>(rows[i]) * row_bytes, row_bytes, codes.data() + i * row_bytes);
    for (std::size_t c = 0; c < blocks_k; ++c) {
      const auto at = static_cast<std::size_t>(
          swizzled_scale_offset(rows[i], static_cast<long long>(c), padded_scale_columns(problem.k)));
      scales[i * blocks_k + c] = blocks.scales[at % blocks.scales.size()];
    }
  }
  return reference::nvfp4_gemv({static_cast<std::int64_t>(rows.size()), problem.k, codes.data(), scales.data(),
                                reference::ScaleLayout::row_major, static_cast<double>(kGlobalScale)},
                               x, problem.silu_mul);
}

}  // namespace

SampledReference make_reference(const HostBlocks& blocks, const Problem& problem, std::int64_t m) {
  SampledReference made;
  made.m = m;
  made.out_columns = problem.silu_mul ? problem.n / 2 : problem.n;
  made.columns = sampled_columns(made.out_columns);
  std::vector<std::int64_t> rows = made.columns;
  if (problem.silu_mul) {
    for (const std::int64_t column : made.columns) rows.push_back(made.out_columns + column);
  }
  const auto k = static_cast<std::size_t>(problem.k);
  std::vector<std::uint16_t> x(static_cast<std::size_t>(m) * k);
  copy_repeated(blocks.x, 0, x.size(), x.data());
  const reference::Activations activations{m, problem.k, x.data()};
  if (problem.family == Family::nvfp4_gemv) {
    made.expected = nvfp4_expected(blocks, problem, rows, activations);
    return made;
  }
  std::vector<std::uint16_t> weight(rows.size() * k);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    copy_repeated(blocks.bf16, static_cast<std::size_t>(rows[i]) * k, k, weight.data() + i * k);
  }
  made.expected = reference::bf16_gemv({static_cast<std::int64_t>(rows.size()), problem.k, weight.data()}, activations,
                                       problem.silu_mul);
  return made;
}

Status poison_out(const GpuHarness& gpu, const ColdBuffers& buffers, std::int64_t m) {
  const std::size_t bytes = static_cast<std::size_t>(m * buffers.out_columns) * 2;
  GEMVJIT_TRY(gpu.check(gpu.api().cuMemsetD8(buffers.out, DeviceBuffer::kPoison, bytes), "poisoning out"));
  return gpu.check(gpu.api().cuStreamSynchronize(nullptr), "poisoning out");
}

Result<NumberCheck> check_numbers(const GpuHarness& gpu, const ColdBuffers& buffers,
                                  const SampledReference& reference) {
  std::vector<std::uint16_t> out(static_cast<std::size_t>(reference.m * reference.out_columns));
  GEMVJIT_TRY(gpu.check(gpu.api().cuMemcpyDtoH(out.data(), buffers.out, out.size() * 2), "copying out"));
  return compare_sampled(reference, out);
}

NumberCheck compare_sampled(const SampledReference& reference, const std::vector<std::uint16_t>& out) {
  NumberCheck check;
  std::vector<std::uint16_t> got;
  const auto columns = static_cast<std::size_t>(reference.out_columns);
  for (std::size_t token = 0; token < static_cast<std::size_t>(reference.m); ++token) {
    for (const std::int64_t column : reference.columns) {
      got.push_back(out[token * columns + static_cast<std::size_t>(column)]);
    }
  }
  const reference::Comparison comparison = reference::compare(reference.expected, got);
  check.worst = comparison.worst;
  if (!comparison.within_bounds) {
    check.problem = fmt::format("{} (n counts {} sampled columns)", comparison.first_bad, reference.columns.size());
    return check;
  }
  const auto unwritten = std::find(out.begin(), out.end(), kPoisonBits);
  if (unwritten != out.end()) {
    const auto at = static_cast<std::size_t>(unwritten - out.begin());
    check.problem = fmt::format("[m {}, n {}] was not written", at / columns, at % columns);
  }
  return check;
}

}  // namespace gemvjit::tools
