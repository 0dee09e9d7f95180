// Tensors whose byte offsets pass 2^31, 2^32 and 2^33: weights, scales, x and out. A weight repeats a block of random
// rows whose number is no power of two, so every row's result is known from the block's, and an offset that lost its
// upper bits finds other rows.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/support/gpu_fixture.h"
#include "tools/verification/number_formats.h"

namespace gemvjit::test {
namespace {

// A multiple of the scale layout's 128 rows, with the odd factor 39.
constexpr std::int64_t kBlockRows = 128 * 39;

class LargeTest : public GpuTest {
 protected:
  // Whether the device has room now; if not, `reason` says what is missing.
  static bool has_room(std::uint64_t bytes, std::string& reason) {
    const std::uint64_t free = gpu().free_bytes();
    reason = fmt::format("needs {:.1f} GB of free device memory, {:.1f} GB are free", static_cast<double>(bytes) / 1e9,
                         static_cast<double>(free) / 1e9);
    return free > bytes + (1u << 30);
  }

  // The result of the block, spread over all n rows.
  static reference::Expected repeat(const reference::Expected& block, std::int64_t n) {
    reference::Expected all;
    all.m = block.m;
    all.columns = n;
    all.value.resize(static_cast<std::size_t>(block.m * n));
    all.bound.resize(all.value.size());
    for (std::int64_t m = 0; m < block.m; ++m) {
      for (std::int64_t row = 0; row < n; ++row) {
        all.value[m * n + row] = block.value[m * block.columns + row % kBlockRows];
        all.bound[m * n + row] = block.bound[m * block.columns + row % kBlockRows];
      }
    }
    return all;
  }

  // Every row of an [n, k] weight of repeated blocks, for the built-in tile and one with a cluster.
  void check_weights(gemvjit_family family, std::int64_t n, std::int64_t k) {
    const HostProblem block = random_problem({family, 3, kBlockRows, k, false}, 60, 0);
    const reference::Expected expected = repeat(block.expected(), n);
    HostProblem shell = block;  // the shape of all, and buffers that are replaced below
    shell.shape.n = n;
    auto device = DeviceProblem::create(gpu(), shell);
    ASSERT_TRUE(device) << device.status().text();
    const auto rows = static_cast<std::size_t>(n);
    const std::size_t row_bytes = block.weight.size() / kBlockRows;
    auto weight = DeviceBuffer::create(gpu(), rows * row_bytes, 0, false);
    ASSERT_TRUE(weight) << weight.status().text();
    ASSERT_TRUE(fill_repeating(gpu(), *weight, block.weight));
    device->weight() = std::move(weight).value();
    if (family == GEMVJIT_NVFP4_GEMV) {
      auto scales = DeviceBuffer::create(gpu(), static_cast<std::size_t>(reference::scale_bytes(n, k)), 0, false);
      ASSERT_TRUE(scales) << scales.status().text();
      ASSERT_TRUE(fill_repeating(gpu(), *scales, block.scales));
      device->scales() = std::move(scales).value();
    }
    TileConfig cluster;
    cluster.warps_k = 4;
    cluster.warps_n = 2;
    cluster.cluster_k = 2;
    const TileConfig* const tiles[] = {nullptr, &cluster};
    for (const TileConfig* tile : tiles) {
      GpuContext context(tile);
      context.add(shell.shape, 1, true);
      ASSERT_TRUE(context.warm());
      ASSERT_TRUE(device->poison_output());
      ASSERT_EQ(device->launch(context.get(), stream(), true), GEMVJIT_OK) << gemvjit_last_error();
      synchronize();
      auto output = device->output();
      ASSERT_TRUE(output) << output.status().text();
      const auto comparison = reference::compare(expected, *output);
      EXPECT_TRUE(comparison.within_bounds) << comparison.bad << " bad, first " << comparison.first_bad;
    }
    EXPECT_TRUE(device->out().check_guards());
  }
};

TEST_F(LargeTest, Nvfp4WeightsPast2To33AndScalesPast2To31) {
  const std::int64_t k = 8192, n = (1 << 22) + 2 * kBlockRows + 8;
  ASSERT_GT(n * k / 2, std::int64_t{1} << 34);
  ASSERT_GT(reference::scale_bytes(n, k), std::int64_t{1} << 31);
  std::string reason;
  if (!has_room(static_cast<std::uint64_t>(n * k / 2 + reference::scale_bytes(n, k)), reason)) GTEST_SKIP() << reason;
  check_weights(GEMVJIT_NVFP4_GEMV, n, k);
}

TEST_F(LargeTest, Bf16WeightsPast2To33) {
  const std::int64_t k = 8192, n = (1 << 19) + 2 * kBlockRows + 8;
  ASSERT_GT(n * k * 2, std::int64_t{1} << 33);
  std::string reason;
  if (!has_room(static_cast<std::uint64_t>(n * k * 2), reason)) GTEST_SKIP() << reason;
  check_weights(GEMVJIT_BF16_GEMV, n, k);
}

// Few k and very many rows: out has more than 2^31 elements.
TEST_F(LargeTest, OutputPast2To32Bytes) {
  const std::int64_t k = 16, n = (1 << 26) + kBlockRows + 8, m = 32;
  std::string reason;
  if (!has_room(static_cast<std::uint64_t>(n * (k / 2 + 4) + m * n * 2), reason)) GTEST_SKIP() << reason;
  const HostProblem block = random_problem({GEMVJIT_NVFP4_GEMV, m, kBlockRows, k, false}, 61, 0);
  const reference::Expected expected = block.expected();
  HostProblem shell = block;
  shell.shape.n = n;
  auto device = DeviceProblem::create(gpu(), shell);
  ASSERT_TRUE(device) << device.status().text();
  auto weight = DeviceBuffer::create(gpu(), static_cast<std::size_t>(n * k / 2), 0, false);
  auto scales = DeviceBuffer::create(gpu(), static_cast<std::size_t>(reference::scale_bytes(n, k)), 0, false);
  ASSERT_TRUE(weight && scales) << weight.status().text() << scales.status().text();
  ASSERT_TRUE(fill_repeating(gpu(), *weight, block.weight));
  ASSERT_TRUE(fill_repeating(gpu(), *scales, block.scales));
  device->weight() = std::move(weight).value();
  device->scales() = std::move(scales).value();
  GpuContext context;
  context.add(shell.shape, 4, true);
  ASSERT_TRUE(context.warm());
  ASSERT_EQ(device->launch(context.get(), stream(), true), GEMVJIT_OK) << gemvjit_last_error();
  synchronize();
  // Both ends of every token's row, and its middle.
  std::vector<std::uint16_t> piece(2 * kBlockRows);
  for (std::int64_t token = 0; token < m; ++token) {
    for (const std::int64_t first : {std::int64_t{0}, n / 2, n - 2 * kBlockRows}) {
      ASSERT_TRUE(device->out().download_bytes(piece.data(), piece.size() * 2,
                                               static_cast<std::size_t>(token * n + first) * 2));
      reference::Expected part;
      part.m = 1;
      part.columns = 2 * kBlockRows;
      for (std::int64_t i = 0; i < part.columns; ++i) {
        const std::int64_t at = token * kBlockRows + (first + i) % kBlockRows;
        part.value.push_back(expected.value[at]);
        part.bound.push_back(expected.bound[at]);
      }
      const auto comparison = reference::compare(part, piece);
      ASSERT_TRUE(comparison.within_bounds) << "token " << token << ", row " << first << ": " << comparison.first_bad;
    }
  }
  EXPECT_TRUE(device->out().check_guards());
}

// x with a row stride that puts its last rows past 2^33 bytes.
class LargeStrideTest : public LargeTest, public testing::WithParamInterface<gemvjit_family> {};

TEST_P(LargeStrideTest, XPast2To33Bytes) {
  const std::int64_t stride = (std::int64_t{1} << 27) + (std::int64_t{1} << 23) + 88;
  const ProblemShape shape{GetParam(), 32, 144, 512, false};
  const auto bytes = static_cast<std::size_t>((31 * stride + shape.k) * 2);
  ASSERT_GT(bytes, std::size_t{1} << 33);
  std::string reason;
  if (!has_room(bytes, reason)) GTEST_SKIP() << reason;
  const HostProblem problem = random_problem(shape, 62, 0);
  auto x = DeviceBuffer::create(gpu(), bytes);
  ASSERT_TRUE(x) << x.status().text();
  for (std::int64_t row = 0; row < shape.m; ++row) {
    ASSERT_TRUE(x->upload(
        std::span(problem.x).subspan(static_cast<std::size_t>(row * shape.k), static_cast<std::size_t>(shape.k)),
        static_cast<std::size_t>(row * stride) * 2));
  }
  auto device = DeviceProblem::create(gpu(), problem);
  ASSERT_TRUE(device) << device.status().text();
  device->take_x_from(*x, stride);
  GpuContext context;
  context.add(shape, 4, true);
  ASSERT_TRUE(context.warm());
  ASSERT_EQ(device->launch(context.get(), stream(), true), GEMVJIT_OK) << gemvjit_last_error();
  synchronize();
  auto output = device->output();
  ASSERT_TRUE(output) << output.status().text();
  const auto comparison = reference::compare(problem.expected(), *output);
  EXPECT_TRUE(comparison.within_bounds) << comparison.first_bad;
}

INSTANTIATE_TEST_SUITE_P(Families, LargeStrideTest, testing::Values(GEMVJIT_NVFP4_GEMV, GEMVJIT_BF16_GEMV),
                         [](const auto& p) { return p.param == GEMVJIT_NVFP4_GEMV ? "nvfp4" : "bf16"; });

TEST_F(LargeTest, DequantizedPast2To33Bytes) {
  const std::int64_t k = 8192, n = (1 << 19) + kBlockRows + 8;
  std::string reason;
  if (!has_room(static_cast<std::uint64_t>(n * k * 2 + n * k), reason)) GTEST_SKIP() << reason;
  const HostProblem block = random_problem({GEMVJIT_NVFP4_GEMV, 0, kBlockRows, k, false}, 63, 0xFF);
  const std::vector<std::uint16_t> expected = reference::dequantize(block.nvfp4_weight());
  HostProblem shell = block;
  shell.shape.n = n;
  auto device = DeviceProblem::create(gpu(), shell);
  auto weight = DeviceBuffer::create(gpu(), static_cast<std::size_t>(n * k / 2), 0, false);
  auto scales = DeviceBuffer::create(gpu(), static_cast<std::size_t>(reference::scale_bytes(n, k)), 0, false);
  auto out = DeviceBuffer::create(gpu(), static_cast<std::size_t>(n * k * 2));
  ASSERT_TRUE(device && weight && scales && out) << weight.status().text() << out.status().text();
  ASSERT_TRUE(fill_repeating(gpu(), *weight, block.weight));
  ASSERT_TRUE(fill_repeating(gpu(), *scales, block.scales));
  device->weight() = std::move(weight).value();
  device->scales() = std::move(scales).value();
  GpuContext context;
  context.add_dequantize(n, k, true);
  ASSERT_TRUE(context.warm());
  ASSERT_EQ(device->launch_dequantize(context.get(), stream(), true, *out), GEMVJIT_OK) << gemvjit_last_error();
  synchronize();
  EXPECT_TRUE(out->check_guards());
  // The rows around each power of two, both ends, and many between.
  std::set<std::int64_t> rows = {0, n - 1};
  for (const int power : {31, 32, 33}) {
    const std::int64_t row = (std::int64_t{1} << power) / (2 * k);
    for (std::int64_t near = row - 2; near <= row + 2; ++near) rows.insert(near);
  }
  for (std::int64_t row = 0; row < n; row += 997) rows.insert(row);
  std::vector<std::uint16_t> got(static_cast<std::size_t>(k));
  for (const std::int64_t row : rows) {
    ASSERT_TRUE(out->download_bytes(got.data(), got.size() * 2, static_cast<std::size_t>(row * k) * 2));
    const auto want = std::span(expected).subspan(static_cast<std::size_t>(row % kBlockRows * k), got.size());
    ASSERT_TRUE(std::equal(got.begin(), got.end(), want.begin())) << "row " << row;
  }
}

}  // namespace
}  // namespace gemvjit::test
