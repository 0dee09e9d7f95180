// Captured in CUDA graphs and replayed; and chains in which each launch reads what the one before wrote, where PDL lets
// the launches overlap: results must be bit for bit those without PDL.
#include <gtest/gtest.h>

#include "tests/support/gpu_fixture.h"

namespace gemvjit::test {
namespace {

class GraphTest : public GpuTest {
 protected:
  // The process's stream as the harness's type is not at hand here, so each test has one of its own.
  static Result<GpuStream> make_stream() { return GpuStream::create(gpu()); }
};

TEST_F(GraphTest, CapturedAndReplayedGivesTheSameBits) {
  for (const gemvjit_family family : {GEMVJIT_NVFP4_GEMV, GEMVJIT_BF16_GEMV}) {
    for (const bool silu_mul : {false, true}) {
      const ProblemShape shape{family, 12, 272, 1040, silu_mul};
      const HostProblem problem = random_problem(shape, 31, 0xFF);
      GpuContext context;
      context.add(shape, 2, true);
      ASSERT_TRUE(context.warm());
      ASSERT_EQ(gemvjit_seal(context.get()), GEMVJIT_OK);
      const auto eager = run_checked(context, problem, problem.expected(), {}, "eager");

      auto own_stream = make_stream();
      ASSERT_TRUE(own_stream) << own_stream.status().text();
      auto device = DeviceProblem::create(gpu(), problem);
      ASSERT_TRUE(device) << device.status().text();
      auto graph = GpuGraph::capture(gpu(), *own_stream,
                                     [&] { return as_status(device->launch(context.get(), own_stream->get(), true)); });
      ASSERT_TRUE(graph) << graph.status().text();
      EXPECT_EQ(graph->nodes(), 1u);
      for (int replay = 0; replay < 3; ++replay) {
        ASSERT_TRUE(device->poison_output());
        ASSERT_TRUE(graph->launch(*own_stream));
        ASSERT_TRUE(own_stream->synchronize());
        auto output = device->output();
        ASSERT_TRUE(output) << output.status().text();
        EXPECT_EQ(*output, eager) << "replay " << replay;
      }
      const Status untouched = device->check_untouched(problem);
      EXPECT_TRUE(untouched) << untouched.text();
    }
  }
}

// B103. A -> B -> C -> A -> ...: x of B is out of A, x of C is out of B. A writes its output again while C of the round
// before may still run, and B may still read it: a launch that does not wait for its predecessor before reading x, or
// before writing out, breaks the result.
class PdlChainTest : public GraphTest, public testing::WithParamInterface<gemvjit_family> {
 protected:
  static constexpr int kRounds = 8;

  void SetUp() override {
    GraphTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    const std::vector<ProblemShape> shapes = {
        {GetParam(), 8, 2048, 1024, false}, {GetParam(), 8, 1536, 2048, false}, {GetParam(), 8, 1024, 1536, true}};
    for (const ProblemShape& shape : shapes) {
      host_.push_back(random_problem(shape, 40 + host_.size(), 0));
      auto device = DeviceProblem::create(gpu(), host_.back());
      ASSERT_TRUE(device) << device.status().text();
      device_.push_back(std::move(device).value());
    }
    device_[1].take_x_from(device_[0].out(), shapes[0].n);
    device_[2].take_x_from(device_[1].out(), shapes[1].n);
  }
  void TearDown() override { device_.clear(); }

  Status launch_rounds(const GpuContext& context, CUstream stream, bool pdl) const {
    for (int round = 0; round < kRounds; ++round) {
      for (const DeviceProblem& problem : device_) {
        GEMVJIT_TRY(as_status(problem.launch(context.get(), stream, pdl)));
      }
    }
    return Status::ok();
  }
  void poison() {
    for (DeviceProblem& problem : device_) ASSERT_TRUE(problem.poison_output());
  }
  std::vector<std::vector<std::uint16_t>> outputs() const {
    std::vector<std::vector<std::uint16_t>> all;
    for (const DeviceProblem& problem : device_) {
      auto output = problem.output();
      EXPECT_TRUE(output) << output.status().text();
      all.push_back(output ? std::move(output).value() : std::vector<std::uint16_t>{});
    }
    return all;
  }
  // The chain's right result, link by link from what the device made of the link before.
  void check_against_reference(const std::vector<std::vector<std::uint16_t>>& bits) {
    for (std::size_t i = 0; i < host_.size(); ++i) {
      HostProblem link = host_[i];
      if (i > 0) link.x = bits[i - 1];
      const auto comparison = reference::compare(link.expected(), bits[i]);
      EXPECT_TRUE(comparison.within_bounds) << "link " << i << ": " << comparison.first_bad;
    }
  }

  std::vector<HostProblem> host_;
  std::vector<DeviceProblem> device_;
};

TEST_P(PdlChainTest, OverlapDoesNotChangeABit) {
  TileConfig cluster;
  cluster.warps_k = 4;
  cluster.cluster_k = 4;
  cluster.stages = 2;
  TileConfig late;
  late.release = 1;
  const TileConfig* const tiles[] = {nullptr, &cluster, &late};
  for (const TileConfig* tile : tiles) {
    GpuContext context(tile);
    for (const HostProblem& problem : host_) {
      context.add(problem.shape, 1, true);
      context.add(problem.shape, 1, false);
    }
    ASSERT_TRUE(context.warm());
    auto own_stream = make_stream();
    ASSERT_TRUE(own_stream) << own_stream.status().text();

    poison();
    const Status plain = launch_rounds(context, own_stream->get(), false);
    ASSERT_TRUE(plain) << plain.text();
    ASSERT_TRUE(own_stream->synchronize());
    const auto want = outputs();
    check_against_reference(want);

    for (int repeat = 0; repeat < 40; ++repeat) {
      poison();
      const Status launched = launch_rounds(context, own_stream->get(), true);
      ASSERT_TRUE(launched) << launched.text();
      ASSERT_TRUE(own_stream->synchronize());
      ASSERT_EQ(outputs(), want) << "eager, repeat " << repeat;
    }
    auto graph = GpuGraph::capture(gpu(), *own_stream, [&] { return launch_rounds(context, own_stream->get(), true); });
    ASSERT_TRUE(graph) << graph.status().text();
    EXPECT_EQ(graph->nodes(), 3u * kRounds);
    for (int repeat = 0; repeat < 40; ++repeat) {
      poison();
      for (int i = 0; i < 4; ++i) ASSERT_TRUE(graph->launch(*own_stream));
      ASSERT_TRUE(own_stream->synchronize());
      ASSERT_EQ(outputs(), want) << "graph, repeat " << repeat;
    }
    for (DeviceProblem& problem : device_) {
      const Status guards = problem.out().check_guards();
      EXPECT_TRUE(guards) << guards.text();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Families, PdlChainTest, testing::Values(GEMVJIT_NVFP4_GEMV, GEMVJIT_BF16_GEMV),
                         [](const auto& p) { return p.param == GEMVJIT_NVFP4_GEMV ? "nvfp4" : "bf16"; });

// The weight's own kernel before it: dequantize_rows writes a BF16 weight that the bf16 GEMV reads. The GEMV reads
// weights ahead of its predecessor, so a kernel that does not touch them must stand between, as the header says.
TEST_F(GraphTest, DequantizedWeightsServeTheBf16Gemv) {
  const HostProblem nvfp4 = random_problem({GEMVJIT_NVFP4_GEMV, 5, 128, 320, false}, 50, 0xFF);
  HostProblem bf16 = nvfp4;
  bf16.shape.family = GEMVJIT_BF16_GEMV;
  const auto weight = dequantize(nvfp4, true);
  bf16.weight.resize(weight.size() * 2);
  std::copy_n(reinterpret_cast<const std::uint8_t*>(weight.data()), bf16.weight.size(), bf16.weight.begin());
  bf16.scales.clear();
  GpuContext context;
  context.add(bf16.shape, 1, true);
  ASSERT_TRUE(context.warm());
  (void)run_checked(context, bf16, bf16.expected(), {}, "dequantized");
}

}  // namespace
}  // namespace gemvjit::test
