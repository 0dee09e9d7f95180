#include "tests/support/gpu_fixture.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "kernels/shared/gemv_geometry.h"

namespace gemvjit::test {
namespace {

// One device, stream and cache folder a process. Kept until its end: tests come and go.
struct Shared {
  std::unique_ptr<GpuHarness> gpu;
  std::optional<GpuStream> stream;
  std::string reason;  // why there is no device
  TempDir cache;

  Shared() {
    auto opened = GpuHarness::open();
    if (!opened) {
      reason = opened.status().message();
      return;
    }
    gpu = std::move(opened).value();
    auto made = GpuStream::create(*gpu);
    if (!made) {
      reason = made.status().message();
      return;
    }
    stream.emplace(std::move(made).value());
  }
};

Shared& shared() {
  static Shared instance;
  return instance;
}

// A tuning table for every target that gives one tile to all shapes that can have it, and the default tile to the rest.
// Where a tile of several row tiles has too many accumulators for nt, that nt gets fewer row tiles; where x cannot be
// dealt, it is direct.
std::string tuning_table(const TileConfig& tile) {
  nlohmann::json defaults = nlohmann::json::array();
  for (const char* family : {"nvfp4_gemv", "bf16_gemv"}) {
    for (const int nt : {1, 2, 4}) {
      nlohmann::json fields;
      for (const TileField& field : tile_fields()) fields[field.name] = tile.*field.member;
      fields["row_tiles"] = std::min(tile.row_tiles, 8u / static_cast<unsigned>(nt));
      if (tile.x_path == kXDealt && (nt > 1 || family == std::string_view("bf16_gemv"))) fields["x_path"] = kXDirect;
      defaults.push_back({{"family", family}, {"nt", nt}, {"tile", fields}});
    }
    defaults.push_back({{"family", family}, {"tile", nlohmann::json::object()}});
  }
  const std::string arch = fmt::format("sm_{}", shared().gpu->sm());
  nlohmann::json archs = {arch + "a"};
  if (tile.variant != kWgmmaVariant) archs.insert(archs.end(), {arch + "f", arch});
  const nlohmann::json table = {{"schema", 1},
                                {"archs", archs},
                                {"measurements", nlohmann::json::object()},
                                {"entries", nlohmann::json::array()},
                                {"defaults", defaults}};
  return table.dump(1);
}

}  // namespace

GpuContext::GpuContext(const TileConfig* tile, const std::string& cache_dir, int device) {
  gemvjit_options options;
  EXPECT_EQ(gemvjit_options_init(&options), GEMVJIT_OK);
  options.device = device;
  const std::string cache = cache_dir.empty() ? shared().cache.path() : cache_dir;
  options.cache_dir = cache.c_str();
  options.compile_threads = static_cast<std::int32_t>(std::clamp(std::thread::hardware_concurrency(), 1u, 16u));
  if (tile != nullptr) {
    tuning_ = std::make_unique<TempDir>();
    tuning_->write("tile.json", tuning_table(*tile));
    options.tuning_dir = tuning_->path().c_str();
  }
  EXPECT_EQ(gemvjit_create(&options, &context_), GEMVJIT_OK) << gemvjit_last_error();
}

GpuContext::~GpuContext() {
  if (shared().gpu) (void)shared().gpu->synchronize();
  EXPECT_EQ(gemvjit_destroy(context_), GEMVJIT_OK);
}

void GpuContext::add(const ProblemShape& shape, int nt, bool pdl, bool scale_segments) {
  gemvjit_problem problem;
  EXPECT_EQ(gemvjit_problem_init(&problem, shape.family, shape.n, shape.k), GEMVJIT_OK);
  problem.nt = nt;
  problem.silu_mul = shape.silu_mul ? 1 : 0;
  problem.pdl = pdl ? 1 : 0;
  problem.allow_untuned = 1;
  problem.scale_segments = scale_segments ? 1 : 0;
  problems_.push_back(problem);
}

void GpuContext::add_swizzle(std::int64_t n, std::int64_t k) {
  gemvjit_problem problem;
  EXPECT_EQ(gemvjit_problem_init(&problem, GEMVJIT_SWIZZLE_BLOCKSCALE, n, k), GEMVJIT_OK);
  problem.allow_untuned = 1;
  problems_.push_back(problem);
}

void GpuContext::add_dequantize(std::int64_t n, std::int64_t k, bool pdl) {
  gemvjit_problem problem;
  EXPECT_EQ(gemvjit_problem_init(&problem, GEMVJIT_DEQUANTIZE_ROWS, n, k), GEMVJIT_OK);
  problem.pdl = pdl ? 1 : 0;
  problem.allow_untuned = 1;
  problems_.push_back(problem);
}

bool GpuContext::warm() {
  if (context_ == nullptr) return false;
  const gemvjit_status status = gemvjit_warmup(context_, problems_.data(), problems_.size(), nullptr);
  EXPECT_EQ(status, GEMVJIT_OK) << gemvjit_status_name(status) << ": " << gemvjit_last_error();
  problems_.clear();
  return status == GEMVJIT_OK;
}

gemvjit_stats_data GpuContext::stats() const {
  gemvjit_stats_data data{};
  data.struct_size = sizeof(data);
  EXPECT_EQ(gemvjit_stats(context_, &data), GEMVJIT_OK);
  return data;
}

int nt_of(std::int64_t m) { return m <= 8 ? 1 : m <= 16 ? 2 : 4; }

std::string tile_text(const TileConfig& tile) {
  std::string text;
  for (const TileField& field : tile_fields()) {
    text += fmt::format("{}{}", field.name, tile.*field.member);
  }
  std::erase(text, '_');
  return text;
}

void GpuTest::SetUp() {
  if (!shared().reason.empty()) GTEST_SKIP() << "needs a CUDA device: " << shared().reason;
  ASSERT_TRUE(shared().gpu->make_current());
}

const GpuHarness& GpuTest::gpu() { return *shared().gpu; }
CUstream GpuTest::stream() { return shared().stream->get(); }

void GpuTest::synchronize() {
  const Status status = gpu().synchronize();
  ASSERT_TRUE(status) << status.text();
}

Status GpuTest::as_status(gemvjit_status status) {
  if (status == GEMVJIT_OK) return Status::ok();
  return {static_cast<StatusCode>(status), gemvjit_last_error()};
}

std::vector<std::uint16_t> GpuTest::run(const GpuContext& context, const HostProblem& problem,
                                        const RunOptions& options, const std::string& what) {
  auto device = DeviceProblem::create(gpu(), problem, options.placement);
  EXPECT_TRUE(device) << device.status().text();
  if (!device) return {};
  const gemvjit_status launched = device->launch(context.get(), stream(), options.pdl);
  EXPECT_EQ(launched, GEMVJIT_OK) << what << ": " << gemvjit_last_error();
  const Status finished = gpu().synchronize();
  EXPECT_TRUE(finished) << what << ": " << finished.text();
  if (launched != GEMVJIT_OK || !finished) return {};
  const Status untouched = device->check_untouched(problem);
  EXPECT_TRUE(untouched) << what << ": " << untouched.text();
  auto output = device->output();
  EXPECT_TRUE(output) << output.status().text();
  return output ? std::move(output).value() : std::vector<std::uint16_t>{};
}

std::vector<std::uint16_t> GpuTest::run_checked(const GpuContext& context, const HostProblem& problem,
                                                const reference::Expected& expected, const RunOptions& options,
                                                const std::string& what) {
  const std::string text = fmt::format("{} {}{}", what, problem.shape.text(), options.pdl ? " pdl" : "");
  std::vector<std::uint16_t> output = run(context, problem, options, text);
  const reference::Comparison comparison = reference::compare(expected, output);
  EXPECT_TRUE(comparison.within_bounds) << text << ": " << comparison.bad << " of " << output.size()
                                        << " elements out of bounds, first " << comparison.first_bad;
  return output;
}

std::vector<std::uint16_t> GpuTest::dequantize(const HostProblem& problem, bool pdl) {
  GpuContext context;
  context.add_dequantize(problem.shape.n, problem.shape.k, pdl);
  if (!context.warm()) return {};
  auto device = DeviceProblem::create(gpu(), problem);
  auto out = DeviceBuffer::create(gpu(), static_cast<std::size_t>(problem.shape.n * problem.shape.k) * 2);
  EXPECT_TRUE(device && out) << device.status().text() << out.status().text();
  if (!device || !out) return {};
  EXPECT_EQ(device->launch_dequantize(context.get(), stream(), pdl, *out), GEMVJIT_OK) << gemvjit_last_error();
  synchronize();
  const Status guards = out->check_guards();
  EXPECT_TRUE(guards) << guards.text();
  const Status untouched = device->check_untouched(problem);
  EXPECT_TRUE(untouched) << untouched.text();
  auto output = out->download<std::uint16_t>();
  return output ? std::move(output).value() : std::vector<std::uint16_t>{};
}

}  // namespace gemvjit::test
