// B100. A GEMV that is launched with PDL right behind the kernel that writes its x: a million launches in graph
// replays, over every way that x travels. The producers are of different length, in random order, and release their
// dependents first of all, so that the GEMV stands ready long before its x does; each producer writes other values to
// the same place, so that a read ahead of the wait is the x of an earlier one. Every single result is compared, bit for
// bit, with that of a run without PDL. How many launches ran is told as the property "launches" of each test.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <ostream>
#include <string_view>

#include "kernels/shared/gemv_geometry.h"
#include "src/compile/nvrtc_compiler.h"
#include "src/compile/specialize.h"
#include "src/cuda/library.h"
#include "src/cuda/nvrtc_api.h"
#include "src/launch/launcher.h"
#include "tests/support/gpu_fixture.h"

namespace gemvjit::test {
namespace {

using Bits = std::vector<std::uint16_t>;

struct Way {
  const char* name;
  TileConfig tile;
  gemvjit_family family = GEMVJIT_NVFP4_GEMV;
};
void PrintTo(const Way& way, std::ostream* out) { *out << way.name; }

const Way kWays[] = {{"direct", {.warps_k = 8, .stages = 2}},
                     {"staged", {.warps_k = 4, .stages = 2, .x_path = 3}},
                     {"async", {.variant = 1, .warps_k = 8, .stages = 3}},
                     {"async_staged", {.variant = 1, .warps_k = 8, .stages = 3, .x_path = 3}},
                     {"ring", {.variant = 1, .warps_k = 8, .stages = 2, .x_path = kXRing}},
                     {"dealt", {.warps_k = 8, .stages = 2, .x_path = kXDealt}},
                     {"cluster", {.warps_k = 4, .cluster_k = 4, .stages = 2}},
                     {"late_release", {.warps_k = 8, .stages = 2, .release = 1}},
                     {"bf16", {.warps_k = 8, .stages = 2}, GEMVJIT_BF16_GEMV},
                     {"bf16_ring", {.variant = 1, .warps_k = 8, .stages = 2, .x_path = kXRing}, GEMVJIT_BF16_GEMV},
                     {"wgmma", {.variant = 2, .warps_k = 2, .warps_n = 4, .stages = 2, .x_path = 3}}};

constexpr std::int64_t kM = 2, kK = 1024, kN = 64;  // of the consumer; two tokens, which dealt x is for
constexpr int kGraphs = 2, kPairs = 250, kReplays = 100;
// wgmma is for sm_90a alone.
static_assert(2 * kGraphs * kPairs * kReplays * (std::size(kWays) - 1) >= 1'000'000);

class PdlOrder : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    auto own_stream = GpuStream::create(gpu());
    auto x = DeviceBuffer::create(gpu(), kM * kK * 2);
    auto outs = DeviceBuffer::create(gpu(), kPairs * kOutElements * 2);
    ASSERT_TRUE(own_stream && x && outs);
    own_stream_.emplace(std::move(*own_stream));
    x_.emplace(std::move(*x));
    outs_.emplace(std::move(*outs));
    producing_.emplace(&producing_tile_);
    // From 1 KB to 8 MB of weights; the last is dequantize_rows, whose two rows are x.
    for (const ProblemShape& shape :
         {ProblemShape{GEMVJIT_NVFP4_GEMV, kM, kK, 256, false}, ProblemShape{GEMVJIT_NVFP4_GEMV, kM, kK, 16384, false},
          ProblemShape{GEMVJIT_BF16_GEMV, kM, kK, 4096, false}, ProblemShape{GEMVJIT_BF16_GEMV, kM, 2 * kK, 512, true},
          ProblemShape{GEMVJIT_NVFP4_GEMV, 0, kM, kK, false}}) {
      auto device = DeviceProblem::create(gpu(), random_problem(shape, 300 + producers_.size()));
      ASSERT_TRUE(device) << device.status().text();
      device->write_to(x_->as<void>());
      producers_.push_back(std::move(*device));
      for (const bool pdl : {false, true}) {
        if (shape.m == 0) {
          producing_->add_dequantize(kM, kK, pdl);
        } else {
          producing_->add(shape, 1, pdl);
        }
      }
    }
    ASSERT_TRUE(producing_->warm());
  }
  void TearDown() override {
    consumer_.reset();
    producers_.clear();
    outs_.reset();
    x_.reset();
    own_stream_.reset();
    producing_.reset();
  }

  static constexpr std::size_t kOutElements = static_cast<std::size_t>(kM * kN);

  Status produce(std::size_t producer, bool pdl) const {
    const DeviceProblem& problem = producers_[producer];
    CUstream stream = own_stream_->get();
    if (producer + 1 == producers_.size()) {
      return as_status(problem.launch_dequantize(producing_->get(), stream, pdl, *x_));
    }
    return as_status(problem.launch(producing_->get(), stream, pdl));
  }
  void* slot(std::size_t pair) const { return outs_->as<std::uint16_t>() + pair * kOutElements; }
  static Bits slot_of(const Bits& outs, std::size_t pair) {
    const auto begin = outs.begin() + static_cast<std::ptrdiff_t>(pair * kOutElements);
    return {begin, begin + kOutElements};
  }

  void make_consumer(gemvjit_family family) {
    host_ = random_problem({family, kM, kN, kK, false}, 17);
    auto device = DeviceProblem::create(gpu(), host_);
    ASSERT_TRUE(device) << device.status().text();
    device->take_x_from(*x_, kK);
    consumer_.emplace(std::move(*device));
  }

  // The results for each producer's x, one launch at a time without PDL, held against float64; no two are alike, or an
  // early read would not show.
  void find_expected(const GpuContext& consuming) {
    for (std::size_t producer = 0; producer < producers_.size(); ++producer) {
      ASSERT_TRUE(produce(producer, false));
      ASSERT_TRUE(own_stream_->synchronize());
      consumer_->write_to(slot(0));
      ASSERT_EQ(consumer_->launch(consuming.get(), own_stream_->get(), false), GEMVJIT_OK) << gemvjit_last_error();
      ASSERT_TRUE(own_stream_->synchronize());
      auto x = x_->download<std::uint16_t>();
      auto outs = outs_->download<std::uint16_t>();
      ASSERT_TRUE(x && outs);
      HostProblem link = host_;
      link.x = *x;
      const Bits bits = slot_of(*outs, 0);
      const auto comparison = reference::compare(link.expected(), bits);
      ASSERT_TRUE(comparison.within_bounds) << "producer " << producer << ": " << comparison.first_bad;
      ASSERT_EQ(std::count(expected_.begin(), expected_.end(), bits), 0) << "producer " << producer;
      expected_.push_back(bits);
    }
  }

  // No producer after itself, also from one replay to the next: the x before is always another.
  std::vector<std::size_t> random_order(Random& random) const {
    std::vector<std::size_t> order;
    while (order.size() < kPairs) {
      const std::size_t next = random.next() % producers_.size();
      const bool is_last = order.size() + 1 == kPairs;
      if (!order.empty() && (next == order.back() || (is_last && next == order.front()))) continue;
      order.push_back(next);
    }
    return order;
  }

  // Pairs of a producer and what consume(pair) launches; one producer in eight comes without PDL.
  template <typename Consume>
  Result<GpuGraph> capture(const std::vector<std::size_t>& order, Random& random, const Consume& consume) {
    return GpuGraph::capture(gpu(), *own_stream_, [&]() -> Status {
      for (std::size_t pair = 0; pair < order.size(); ++pair) {
        GEMVJIT_TRY(produce(order[pair], random.next() % 8 != 0));
        GEMVJIT_TRY(consume(pair));
      }
      return Status::ok();
    });
  }

  // Replays once. How many results are wrong; `first` is the first of them.
  int count_wrong(const GpuGraph& graph, const std::vector<std::size_t>& order, std::size_t& first) {
    EXPECT_TRUE(outs_->fill(DeviceBuffer::kPoison));
    const Status launched = graph.launch(*own_stream_), ended = own_stream_->synchronize();
    EXPECT_TRUE(launched && ended) << launched.text() << ended.text();
    auto outs = outs_->download<std::uint16_t>();
    EXPECT_TRUE(outs) << outs.status().text();
    int wrong = 0;
    for (std::size_t pair = order.size(); outs && pair-- > 0;) {
      if (slot_of(*outs, pair) == expected_[order[pair]]) continue;
      ++wrong;
      first = pair;
    }
    return outs ? wrong : kPairs;
  }

  // Release is 0: first of all.
  const TileConfig producing_tile_{.warps_k = 8, .stages = 4, .release = 0};
  std::optional<GpuContext> producing_;
  std::optional<GpuStream> own_stream_;
  std::optional<DeviceBuffer> x_, outs_;
  std::vector<DeviceProblem> producers_;
  HostProblem host_;
  std::optional<DeviceProblem> consumer_;
  std::vector<Bits> expected_;  // by producer
};

class PdlOrderOf : public PdlOrder, public testing::WithParamInterface<Way> {};

TEST_P(PdlOrderOf, AMillionLaunchesReadXAfterItsProducer) {
  const Way& way = GetParam();
  if (way.tile.variant == kWgmmaVariant && gpu().sm() != 90) GTEST_SKIP() << "wgmma is of sm_90a alone";
  ASSERT_NO_FATAL_FAILURE(make_consumer(way.family));
  GpuContext consuming(&way.tile);
  for (const bool pdl : {false, true}) consuming.add(host_.shape, 1, pdl);
  ASSERT_TRUE(consuming.warm());
  ASSERT_NO_FATAL_FAILURE(find_expected(consuming));
  Random random(std::hash<std::string_view>()(way.name));
  int launches = 0;
  for (int i = 0; i < kGraphs; ++i) {
    const std::vector<std::size_t> order = random_order(random);
    auto graph = capture(order, random, [&](std::size_t pair) {
      consumer_->write_to(slot(pair));
      return as_status(consumer_->launch(consuming.get(), own_stream_->get(), true));
    });
    ASSERT_TRUE(graph) << graph.status().text();
    ASSERT_EQ(graph->nodes(), 2u * kPairs);
    for (int replay = 0; replay < kReplays; ++replay) {
      std::size_t first = 0;
      const int wrong = count_wrong(*graph, order, first);
      ASSERT_EQ(wrong, 0) << "graph " << i << ", replay " << replay << ": first pair " << first << ", of producer "
                          << order[first];
      launches += 2 * kPairs;
    }
  }
  RecordProperty("launches", launches);
  EXPECT_TRUE(x_->check_guards());
  EXPECT_TRUE(outs_->check_guards());
}

INSTANTIATE_TEST_SUITE_P(Ways, PdlOrderOf, testing::ValuesIn(kWays),
                         [](const testing::TestParamInfo<Way>& way) { return way.param.name; });

// Negative control: the same GEMV without the wait, launched with the attribute all the same, as the library never
// does.
TEST_F(PdlOrder, AConsumerThatDoesNotWaitIsSeen) {
  ASSERT_NO_FATAL_FAILURE(make_consumer(GEMVJIT_BF16_GEMV));
  TileConfig tile;
  tile.stages = 2;
  GpuContext consuming(&tile);
  consuming.add(host_.shape, 1, false);
  ASSERT_TRUE(consuming.warm());
  ASSERT_NO_FATAL_FAILURE(find_expected(consuming));

  auto nvrtc = cuda::load_nvrtc(cuda::nvrtc_search_from_environment(), 0, "a negative control");
  ASSERT_TRUE(nvrtc) << nvrtc.status().text();
  const auto arch = Arch::parse(gemvjit_device_arch(consuming.get()));
  ASSERT_TRUE(arch);
  const auto key = make_key({Family::bf16_gemv, kN, kK, false, true}, 1, tile, true, *arch);
  ASSERT_TRUE(key) << key.status().text();
  auto recipe = specialize(*key);
  ASSERT_TRUE(recipe);
  bool removed = false;
  for (SourceFile& source : recipe->sources) {
    const std::string wait = "asm volatile(\"griddepcontrol.wait;\" ::: \"memory\");";
    if (const std::size_t at = source.text.find(wait); at != std::string::npos) {
      source.text.replace(at, wait.size(), ";");
      removed = true;
    }
  }
  ASSERT_TRUE(removed);
  const auto cubin = make_nvrtc_compiler(*nvrtc)->compile(*recipe);
  ASSERT_TRUE(cubin) << cubin.status().text();
  auto driver = cuda::load_driver("a negative control");
  ASSERT_TRUE(driver) << driver.status().text();
  auto library = cuda::Library::load(*driver, cubin->bytes, cubin->entry_name);
  ASSERT_TRUE(library) << library.status().text();
  LaunchConfig config = launch_config(*describe_key(*key));
  ASSERT_TRUE(library->prepare(gpu().device(), config.smem_bytes, false));
  config.pdl = true;

  Random random(99);
  const std::vector<std::size_t> order = random_order(random);
  auto graph = capture(order, random, [&](std::size_t pair) {
    GemvArguments arguments{x_->as<void>(), kK, consumer_->weight().as<void>(), nullptr, nullptr, slot(pair), kM};
    auto pointers = argument_pointers(arguments);
    return gpu().check(launch(**driver, library->kernel(), config, kM, pointers.data(), own_stream_->get()),
                       "launching the control");
  });
  ASSERT_TRUE(graph) << graph.status().text();
  int wrong = 0;
  for (int replay = 0; replay < 10; ++replay) {
    std::size_t first = 0;
    wrong += count_wrong(*graph, order, first);
  }
  library->unload();
  EXPECT_GT(wrong, 0) << "not one of " << 10 * kPairs << " reads ahead of the wait shows";
}

// A shape that cannot have the tile would silently get another one. Needs no device.
TEST(PdlOrderShapes, CanHaveTheTile) {
  for (const Way& way : kWays) {
    const Family family = way.family == GEMVJIT_NVFP4_GEMV ? Family::nvfp4_gemv : Family::bf16_gemv;
    const auto key = make_key({family, kN, kK, false, true}, 1, way.tile, true, {90, 'a'});
    EXPECT_TRUE(key) << way.name << ": " << key.status().message();
  }
}

}  // namespace
}  // namespace gemvjit::test
