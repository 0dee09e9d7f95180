// The edges of N, K and M, with the built-in configurations and with K split over warps and a cluster.
#include <gtest/gtest.h>

#include "tests/support/gpu_fixture.h"

namespace gemvjit::test {
namespace {

struct EdgeCase {
  gemvjit_family family;
  std::int64_t k;
};

class EdgesTest : public GpuTest, public testing::WithParamInterface<EdgeCase> {
 protected:
  // Each nt alone, so that a small M also runs in a large kernel, for M = 1, just below and at the limit.
  void check_shapes(const std::vector<HostProblem>& problems, const std::vector<reference::Expected>& expected,
                    const TileConfig* tile, bool every_nt) {
    compile_all(problems, tile, every_nt);
    for (const int nt : {1, 2, 4}) {
      GpuContext context(tile);
      for (std::size_t i = 0; i < problems.size(); ++i) {
        if (every_nt || wanted_nt(i) == nt) context.add(problems[i].shape, nt, true);
      }
      ASSERT_TRUE(context.warm());
      for (std::size_t i = 0; i < problems.size(); ++i) {
        if (!every_nt && wanted_nt(i) != nt) continue;
        for (const int m : {1, 8 * nt - 1, 8 * nt}) {
          (void)run_checked(context, first_tokens(problems[i], m), first_tokens(expected[i], m), {},
                            (tile != nullptr ? tile_text(*tile) : "built-in") + " nt " + std::to_string(nt));
        }
      }
    }
  }
  // At once and on many threads; the contexts of one nt then find it in the cache.
  static void compile_all(const std::vector<HostProblem>& problems, const TileConfig* tile, bool every_nt) {
    GpuContext context(tile);
    for (std::size_t i = 0; i < problems.size(); ++i) {
      context.add(problems[i].shape, every_nt ? 0 : wanted_nt(i), true);
    }
    EXPECT_TRUE(context.warm());
  }
  static int wanted_nt(std::size_t i) { return i % 3 == 0 ? 1 : i % 3 == 1 ? 2 : 4; }
};

// B115, B127, B128: N and K as shards leave them, no multiples of 32, 64 or 128: 464, 1960, 2880.
TEST_P(EdgesTest, EveryN) {
  const auto [family, k] = GetParam();
  std::vector<HostProblem> problems;
  std::vector<reference::Expected> expected;
  for (const std::int64_t n : {8, 24, 144, 1960, 2880}) {
    problems.push_back(random_problem({family, 32, n, k, false}, static_cast<std::uint64_t>(n + k), 0xFF));
    expected.push_back(problems.back().expected());
  }
  for (const std::int64_t n : {16, 48, 144, 2880}) {
    problems.push_back(random_problem({family, 32, n, k, true}, static_cast<std::uint64_t>(n + k + 1), 0xFF));
    expected.push_back(problems.back().expected());
  }
  check_shapes(problems, expected, nullptr, true);
  TileConfig split;
  split.warps_k = 4;
  split.cluster_k = 4;
  split.stages = 2;
  check_shapes(problems, expected, &split, false);
}

std::string edge_name(const testing::TestParamInfo<EdgeCase>& info) {
  return (info.param.family == GEMVJIT_NVFP4_GEMV ? "nvfp4_k" : "bf16_k") + std::to_string(info.param.k);
}

std::vector<EdgeCase> edge_cases() {
  std::vector<EdgeCase> cases;
  for (const std::int64_t k : {16, 48, 464, 1504, 2880, 5376}) cases.push_back({GEMVJIT_NVFP4_GEMV, k});
  for (const std::int64_t k : {8, 16, 24, 48, 136, 200, 464, 1504, 2880, 5376}) {
    cases.push_back({GEMVJIT_BF16_GEMV, k});
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(K, EdgesTest, testing::ValuesIn(edge_cases()), edge_name);

// B130: what an engine does, M = 0 included: all nt warmed, each M takes the smallest kernel. Rows of `out` past M stay
// as they were.
class TokensTest : public GpuTest, public testing::WithParamInterface<gemvjit_family> {};

TEST_P(TokensTest, EveryMFrom0To32) {
  for (const bool silu_mul : {false, true}) {
    const ProblemShape shape{GetParam(), 32, 96, GetParam() == GEMVJIT_NVFP4_GEMV ? 464 : 200, silu_mul};
    const HostProblem full = random_problem(shape, 77, 0xFF);
    const reference::Expected expected = full.expected();
    GpuContext context;
    context.add(shape, 0, true);
    context.add(shape, 0, false);
    ASSERT_TRUE(context.warm());
    auto device = DeviceProblem::create(gpu(), full);
    ASSERT_TRUE(device) << device.status().text();
    for (int m = 0; m <= 32; ++m) {
      for (const bool pdl : {false, true}) {
        ASSERT_TRUE(device->poison_output());
        ASSERT_EQ(device->launch_m(context.get(), stream(), pdl, m), GEMVJIT_OK) << gemvjit_last_error();
        synchronize();
        auto output = device->output();
        ASSERT_TRUE(output);
        const auto written = static_cast<std::size_t>(m * full.columns());
        for (std::size_t i = written; i < output->size(); ++i) {
          ASSERT_EQ((*output)[i], 0xFFFF) << "M=" << m << ": element " << i << " past M was written";
        }
        output->resize(written);
        const auto comparison = reference::compare(first_tokens(expected, m), *output);
        ASSERT_TRUE(comparison.within_bounds) << "M=" << m << (pdl ? " pdl" : "") << ": " << comparison.first_bad;
      }
    }
    EXPECT_EQ(device->launch_m(context.get(), stream(), true, 33), GEMVJIT_M_NOT_COVERED);
    const Status untouched = device->check_untouched(full);
    EXPECT_TRUE(untouched) << untouched.text();
  }
}

INSTANTIATE_TEST_SUITE_P(Families, TokensTest, testing::Values(GEMVJIT_NVFP4_GEMV, GEMVJIT_BF16_GEMV),
                         [](const auto& p) { return p.param == GEMVJIT_NVFP4_GEMV ? "nvfp4" : "bf16"; });

}  // namespace
}  // namespace gemvjit::test
