// Tensors whose byte offsets pass 2^31, 2^32 and 2^33, and sizes at 2^31 itself: weights, scales, x and out. A weight
// repeats a block of random rows whose number is no power of two, so every row's result is known from the block's, and
// an offset that lost its upper bits finds other rows.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
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

  // A GEMV of k = 16 with n rows of repeated blocks. Compared are both ends of every token's row and its middle, and
  // what lies on both sides of the element 2^31 of out.
  void check_output(std::int64_t n, std::int64_t m) {
    const std::int64_t k = 16;
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
    context.add(shell.shape, nt_of(m), true);
    ASSERT_TRUE(context.warm());
    ASSERT_EQ(device->launch(context.get(), stream(), true), GEMVJIT_OK) << gemvjit_last_error();
    synchronize();
    const std::int64_t piece_size = 2 * kBlockRows, wrap = std::int64_t{1} << 31;
    std::vector<std::int64_t> begins;
    for (std::int64_t token = 0; token < m; ++token) {
      for (const std::int64_t first : {std::int64_t{0}, n / 2, n - piece_size}) begins.push_back(token * n + first);
    }
    begins.push_back(std::min(wrap - kBlockRows, m * n - piece_size));
    std::vector<std::uint16_t> piece(static_cast<std::size_t>(piece_size));
    for (const std::int64_t begin : begins) {
      ASSERT_TRUE(device->out().download_bytes(piece.data(), piece.size() * 2, static_cast<std::size_t>(begin) * 2));
      reference::Expected part;
      part.m = 1;
      part.columns = piece_size;
      for (std::int64_t i = begin; i < begin + piece_size; ++i) {
        const std::int64_t at = i / n * kBlockRows + i % n % kBlockRows;
        part.value.push_back(expected.value[at]);
        part.bound.push_back(expected.bound[at]);
      }
      const auto comparison = reference::compare(part, piece);
      ASSERT_TRUE(comparison.within_bounds) << "n " << n << ", from element " << begin << ": " << comparison.first_bad;
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
TEST_F(LargeTest, OutputPast2To32Bytes) { check_output((1 << 26) + kBlockRows + 8, 32); }

// B137: at the wrap itself, from just below 2^31 to just above. With 16 tokens N * K and the elements of out are 2^31
// and 128 less or more; with 8 tokens bytes of codes and elements of out, 64 less or more.
TEST_F(LargeTest, SizesAround2To31) {
  for (const std::int64_t past : {-8, 0, 8}) {
    ASSERT_NO_FATAL_FAILURE(check_output((1 << 27) + past, 16));
    if (IsSkipped()) return;
    ASSERT_NO_FATAL_FAILURE(check_output((1 << 28) + past, 8));
    if (IsSkipped()) return;
  }
}

// B133, B137: x with row strides that put rows of 32 tokens past 2^33 bytes, and such that M * stride is 2^31 elements
// and 16 less or more where M is 16, and as many bytes where M is 8: rows 8 and 16 begin just there.
class LargeStrideTest : public LargeTest, public testing::WithParamInterface<gemvjit_family> {
 protected:
  void check_stride(std::int64_t stride) {
    const ProblemShape shape{GetParam(), 32, 144, 512, false};
    const auto bytes = static_cast<std::size_t>((31 * stride + shape.k) * 2);
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
    EXPECT_TRUE(comparison.within_bounds) << "stride " << stride << ": " << comparison.first_bad;
  }
};

TEST_P(LargeStrideTest, XPast2To33Bytes) {
  const std::int64_t stride = (std::int64_t{1} << 27) + (std::int64_t{1} << 23) + 88;
  ASSERT_GT(31 * stride * 2, std::int64_t{1} << 33);
  check_stride(stride);
}

TEST_P(LargeStrideTest, RowsAround2To31) {
  for (const std::int64_t past : {-1, 0, 1}) {
    ASSERT_NO_FATAL_FAILURE(check_stride((std::int64_t{1} << 27) + past));
    if (IsSkipped()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Families, LargeStrideTest, testing::Values(GEMVJIT_NVFP4_GEMV, GEMVJIT_BF16_GEMV),
                         [](const auto& p) { return p.param == GEMVJIT_NVFP4_GEMV ? "nvfp4" : "bf16"; });

class LargeDequantizeTest : public LargeTest {
 protected:
  static void check(std::int64_t n, std::int64_t k);
};

void LargeDequantizeTest::check(std::int64_t n, std::int64_t k) {
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
    for (std::int64_t near = row - 2; near <= row + 2 && near < n; ++near) rows.insert(near);
  }
  for (std::int64_t row = 0; row < n; row += std::max<std::int64_t>(n / 500 | 1, 97)) rows.insert(row);
  std::vector<std::uint16_t> got(static_cast<std::size_t>(k));
  for (const std::int64_t row : rows) {
    ASSERT_TRUE(out->download_bytes(got.data(), got.size() * 2, static_cast<std::size_t>(row * k) * 2));
    const auto want = std::span(expected).subspan(static_cast<std::size_t>(row % kBlockRows * k), got.size());
    ASSERT_TRUE(std::equal(got.begin(), got.end(), want.begin())) << "row " << row;
  }
}

TEST_F(LargeDequantizeTest, Past2To33Bytes) { check((1 << 19) + kBlockRows + 8, 8192); }

// B137: 2^31 elements, and 16 less or more.
TEST_F(LargeDequantizeTest, SizesAround2To31) {
  for (const std::int64_t past : {-1, 0, 1}) {
    ASSERT_NO_FATAL_FAILURE(check((1 << 27) + past, 16));
    if (IsSkipped()) return;
  }
}

}  // namespace
}  // namespace gemvjit::test
