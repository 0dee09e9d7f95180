// B121: merged weights whose parts have global scales of their own; B119: block scales as checkpoints have them,
// swizzled on the device.
#include <gtest/gtest.h>

#include <utility>

#include "tests/support/gpu_fixture.h"

namespace gemvjit::test {
namespace {

using Bits = std::vector<std::uint16_t>;

// Rows [first, end) of a problem as a weight of their own.
HostProblem rows_of(const HostProblem& from, std::int64_t first, std::int64_t end, float global_scale) {
  HostProblem part = from;
  part.shape.n = end - first;
  part.global_scale = global_scale;
  const auto cut = [&](const std::vector<std::uint8_t>& bytes, std::int64_t row_bytes) {
    return std::vector<std::uint8_t>(bytes.begin() + first * row_bytes, bytes.begin() + end * row_bytes);
  };
  part.weight = cut(from.weight, from.shape.k / 2);
  part.row_scales = cut(from.row_scales, from.shape.k / 16);
  part.scales.assign(gemvjit_swizzled_scale_bytes(part.shape.n, part.shape.k), 0);
  EXPECT_EQ(gemvjit_swizzle_blockscale(part.row_scales.data(), part.shape.n, part.shape.k, part.scales.data(),
                                       part.scales.size()),
            GEMVJIT_OK);
  return part;
}

class ScaleSegments : public GpuTest {
 protected:
  struct Segment {
    std::int64_t row_end;
    float scale;
  };

  static Bits run_segments(const GpuContext& context, const HostProblem& problem, const std::vector<Segment>& segments,
                           bool pdl) {
    auto device = DeviceProblem::create(gpu(), problem);
    EXPECT_TRUE(device) << device.status().message();
    std::vector<float> values;
    for (const Segment& segment : segments) values.push_back(segment.scale);
    auto scales = DeviceBuffer::from(gpu(), std::span<const float>(values));
    EXPECT_TRUE(scales);
    if (!device || !scales) return {};
    std::vector<gemvjit_scale_segment> named;
    for (std::size_t i = 0; i < segments.size(); ++i) named.push_back({segments[i].row_end, scales->as<float>() + i});
    device->use_segments(named);
    EXPECT_EQ(device->launch(context.get(), stream(), pdl), GEMVJIT_OK) << gemvjit_last_error();
    synchronize();
    const Status untouched = device->check_untouched(problem);
    EXPECT_TRUE(untouched) << untouched.message();
    const auto out = device->output();
    EXPECT_TRUE(out);
    return out ? *out : Bits{};
  }

  // The parts one by one, side by side.
  static Bits run_parts(const GpuContext& context, const HostProblem& problem, const std::vector<Segment>& segments,
                        bool pdl) {
    Bits merged(static_cast<std::size_t>(problem.shape.m * problem.shape.n));
    std::int64_t first = 0;
    for (const Segment& segment : segments) {
      const HostProblem part = rows_of(problem, first, segment.row_end, segment.scale);
      const Bits out = run_checked(context, part, part.expected(), {pdl, {}}, "rows from " + std::to_string(first));
      EXPECT_EQ(out.size(), static_cast<std::size_t>(part.shape.m * part.shape.n));
      if (out.empty()) return {};
      for (std::int64_t m = 0; m < problem.shape.m; ++m) {
        std::copy_n(out.begin() + m * part.shape.n, part.shape.n, merged.begin() + m * problem.shape.n + first);
      }
      first = segment.row_end;
    }
    return merged;
  }
};

TEST_F(ScaleSegments, AreBitForBitThePartsOneByOne) {
  const std::vector<Segment> qkv{{256, 0.011f}, {320, 0.0236f}, {384, 0.0051f}};  // in whole bands of rows, or not
  const std::vector<Segment> odd{{8, 3.0f},   {88, 0.5f},  {96, 7.25f}, {200, -0.3f},
                                 {208, 1.0f}, {216, 0.1f}, {224, 9.0f}, {232, 0.77f}};
  const std::vector<Segment> one{{128, 0.25f}};
  const TileConfig tiles[] = {
      {.warps_k = 8},
      {.warps_k = 4, .cluster_k = 4, .stages = 2},
      {.variant = 1, .warps_k = 4, .warps_n = 2, .row_tiles = 1, .stages = 4, .x_path = 2, .rounds = 2}};
  for (const TileConfig& tile : tiles) {
    for (const std::int64_t m : {1, 8, 11, 32}) {
      for (const auto& segments : {qkv, odd, one}) {
        const ProblemShape shape{GEMVJIT_NVFP4_GEMV, m, segments.back().row_end, 1024, false};
        const HostProblem problem = random_problem(shape, 17 + static_cast<std::uint64_t>(m));
        GpuContext context(&tile);
        for (const bool pdl : {false, true}) context.add(shape, nt_of(m), pdl, true);
        std::int64_t first = 0;
        for (const Segment& segment : segments) {
          ProblemShape part = shape;
          part.n = segment.row_end - std::exchange(first, segment.row_end);
          context.add(part, nt_of(m), true);
        }
        ASSERT_TRUE(context.warm());
        const Bits merged = run_segments(context, problem, segments, true);
        ASSERT_FALSE(merged.empty());
        EXPECT_EQ(merged, run_parts(context, problem, segments, true)) << tile_text(tile) << " " << shape.text();
        EXPECT_EQ(merged, run_segments(context, problem, segments, false));
        if (segments.size() < 2) continue;
        // Controls: the largest scale for all, as some engines take it, is something else; so is a shifted boundary.
        std::vector<Segment> wrong = segments;
        for (Segment& segment : wrong) segment.scale = 9.0f;
        EXPECT_NE(merged, run_segments(context, problem, wrong, true));
        wrong = segments;
        wrong[0].row_end += wrong.size() == 3 ? 8 : 16;
        EXPECT_NE(merged, run_segments(context, problem, wrong, true));
      }
    }
  }
}

// A scale twice as large is the same, bit for bit, as block scales twice as large.
TEST_F(ScaleSegments, WithSiluMulGateAndUpHaveTheirOwn) {
  for (const std::int64_t n : {96, 512}) {
    for (const std::int64_t m : {2, 16, 25}) {
      const ProblemShape shape{GEMVJIT_NVFP4_GEMV, m, n, 512, true};
      HostProblem problem = random_problem(shape, 23);
      problem.global_scale = 0.03125f;
      HostProblem doubled = problem;
      for (std::int64_t i = n / 2 * (shape.k / 16); i < n * (shape.k / 16); ++i) {
        std::uint8_t& scale = doubled.row_scales[static_cast<std::size_t>(i)];
        scale = static_cast<std::uint8_t>((scale & 0x78) != 0 ? scale + 8 : 2 * scale);
        ASSERT_LT(scale, 0x7F);
      }
      ASSERT_EQ(gemvjit_swizzle_blockscale(doubled.row_scales.data(), n, shape.k, doubled.scales.data(),
                                           doubled.scales.size()),
                GEMVJIT_OK);
      GpuContext context;
      context.add(shape, nt_of(m), true, false);
      context.add(shape, nt_of(m), true, true);
      ASSERT_TRUE(context.warm());
      const Bits expected = run_checked(context, doubled, doubled.expected(), kPdl, "doubled block scales");
      EXPECT_EQ(run_segments(context, problem, {{n / 2, 0.03125f}, {n, 0.0625f}}, true), expected);
      EXPECT_NE(run_segments(context, problem, {{n / 2, 0.0625f}, {n, 0.03125f}}, true), expected)
          << "control: swapped";
      EXPECT_EQ(run_segments(context, problem, {{n, 0.03125f}}, true),
                run_checked(context, problem, problem.expected(), kPdl, "one scale"));
    }
  }
}

TEST_F(ScaleSegments, NeedAKernelOfTheirOwn) {
  const ProblemShape shape{GEMVJIT_NVFP4_GEMV, 4, 64, 256, false};
  const HostProblem problem = random_problem(shape, 3);
  GpuContext context;
  context.add(shape, 1, true);
  ASSERT_TRUE(context.warm());
  auto device = DeviceProblem::create(gpu(), problem);
  ASSERT_TRUE(device);
  device->use_segments({{64, device->scales().as<float>()}});
  EXPECT_EQ(device->launch(context.get(), stream(), true), GEMVJIT_NOT_READY);
}

class SwizzleOnDevice : public GpuTest {};

TEST_F(SwizzleOnDevice, IsTheHostsSwizzle) {
  for (const auto& [n, k] : {std::pair<std::int64_t, std::int64_t>{128, 64},
                             {1, 16},
                             {72, 80},
                             {200, 1504},
                             {4096, 4096},
                             {12448, 272},
                             {50000, 64}}) {
    GpuContext context;
    context.add_swizzle(n, k);
    ASSERT_TRUE(context.warm());
    Random random(static_cast<std::uint64_t>(n + k));
    std::vector<std::uint8_t> rows(static_cast<std::size_t>(n * (k / 16))), wanted(gemvjit_swizzled_scale_bytes(n, k));
    random.fill(rows);
    ASSERT_EQ(gemvjit_swizzle_blockscale(rows.data(), n, k, wanted.data(), wanted.size()), GEMVJIT_OK);
    for (const std::size_t offset : {0, 1, 6}) {
      auto from = DeviceBuffer::from(gpu(), std::span<const std::uint8_t>(rows), offset);
      auto to = DeviceBuffer::create(gpu(), wanted.size());
      ASSERT_TRUE(from && to);
      gemvjit_swizzle_blockscale_args args{};
      args.struct_size = sizeof args;
      args.n = n, args.k = k, args.row_major = from->as<void>(), args.swizzled = to->as<void>();
      ASSERT_EQ(gemvjit_swizzle_blockscale_device(context.get(), &args, stream()), GEMVJIT_OK) << gemvjit_last_error();
      synchronize();
      const auto made = to->download<std::uint8_t>();
      ASSERT_TRUE(made);
      EXPECT_TRUE(*made == wanted) << n << "x" << k << " + " << offset;
      EXPECT_TRUE(to->check_guards());
      if (rows.size() > 4) {
        EXPECT_FALSE(*made == rows) << "control: the layouts differ";
      }
    }
  }
}

}  // namespace
}  // namespace gemvjit::test
