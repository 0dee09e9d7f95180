// B98, B112, B113: whether a cluster fits is asked of the driver, where the kernel will run, and not concluded from the
// GPU's name. Where it does not fit the same kernel without a cluster serves, from a cache that was filled elsewhere.
#include "src/runtime/launch_kernels.h"
#include "src/runtime/ready.h"
#include "src/runtime/warmup.h"
#include "tests/runtime/runtime_fixture.h"

namespace gemvjit::test {
namespace {

class ClusterFallback : public RuntimeTest {
 protected:
  static ProblemRequest clustered() { return nvfp4(256, 8192, 1); }  // the test table gives it a cluster of 4
  static unsigned cluster_of(const KernelKey& key) { return get_flag(key.flags, flag_field::cluster_k); }
  unsigned launched_cluster(Context& context) {
    GemvArguments arguments{};
    arguments.x_row_stride = 8192;
    arguments.m = 1;
    const LaunchShape shape{256, 8192, Family::nvfp4_gemv, false, true, false};
    EXPECT_EQ(launch_gemv(context, shape, arguments, nullptr).code, StatusCode::ok);
    return recording.launches().empty() ? 0 : recording.launches().back().cluster_x();
  }
};

TEST_F(ClusterFallback, AClusterThatFitsIsLaunched) {
  const auto context = make();
  ASSERT_TRUE(warm_up(*context, std::vector{clustered()}, {}).overall);
  EXPECT_EQ(launched_cluster(*context), 4u);
  EXPECT_EQ(context->counters().cluster_fallbacks.load(), 0u);
}

TEST_F(ClusterFallback, OneThatDoesNotFitIsServedWithoutAndSaysSo) {
  recording.max_active_clusters = 0;
  const auto context = make();
  WarmupOptions run;
  std::vector<KernelKey> reported;
  run.on_kernel = [&](const KernelReport& report) { return reported.push_back(report.key), true; };
  ASSERT_TRUE(warm_up(*context, std::vector{clustered()}, run).overall);
  EXPECT_EQ(launched_cluster(*context), 1u);
  ASSERT_EQ(reported.size(), 1u);
  EXPECT_EQ(cluster_of(reported[0]), 1u);
  EXPECT_EQ(context->counters().cluster_fallbacks.load(), 1u);
  EXPECT_EQ(logged("takes its place"), 1u);
  EXPECT_TRUE(ready(*context, std::vector{clustered()}).overall);
}

// The question needs a current context, and the caller's is restored. Both contexts of a launch are asked.
TEST_F(ClusterFallback, TheDriverIsAskedInEachContextAndTheCallersIsRestored) {
  const auto other = reinterpret_cast<CUcontext>(0x77770);
  recording.set_current_context(other);
  std::vector<CUcontext> asked_in;
  recording.on_occupancy = [&] {
    asked_in.push_back(recording.current_context());
    return asked_in.back() == other ? 0 : 66;  // a context with a share of the device
  };
  const auto context = make();
  const auto ready = context->resolver().resolve(item(*context, clustered()).candidates, other);
  ASSERT_TRUE(ready) << ready.status().text();
  EXPECT_EQ(asked_in, (std::vector<CUcontext>{recording.primary_context(0), other}));
  EXPECT_EQ(cluster_of(ready->kernel->spec.key), 1u);
  EXPECT_EQ(recording.current_context(), other);
}

// A launch does not ask in which CUDA context it runs: what does not fit in one of them serves in none, whichever was
// warmed first.
TEST_F(ClusterFallback, WhatDoesNotFitInOneContextServesInNone) {
  const auto small = reinterpret_cast<CUcontext>(0x77770);
  recording.on_occupancy = [&] { return recording.current_context() == small ? 0 : 66; };
  recording.devices.push_back(FakeDevice{});
  for (const bool small_first : {false, true}) {
    const auto context = make();
    const std::vector<CUcontext> order = small_first ? std::vector{small, recording.primary_context(0)}
                                                     : std::vector{recording.primary_context(0), small};
    for (const CUcontext current : order) {
      recording.set_current_context(current);
      ASSERT_TRUE(context->resolver().resolve(item(*context, clustered()).candidates, current));
      EXPECT_TRUE(ready(*context, std::vector{clustered()}).overall);
      EXPECT_EQ(launched_cluster(*context), current == small || small_first ? 1u : 4u);
    }
    // The other one is asked for again: nothing is loaded twice, nothing is said twice.
    recording.set_current_context(recording.primary_context(0));
    EXPECT_TRUE(ready(*context, std::vector{clustered()}).overall);
    const std::size_t loads = recording.count("cuLibraryLoadData");
    ASSERT_TRUE(context->resolver().resolve(item(*context, clustered()).candidates, nullptr));
    EXPECT_EQ(recording.count("cuLibraryLoadData"), loads);
    EXPECT_EQ(launched_cluster(*context), 1u);
  }
  EXPECT_EQ(logged("takes its place"), 2u);  // once a context
  recording.set_current_context(nullptr);
}

// A build machine without a GPU keeps both, so that a partition of a GPU needs no compiler, also after the seal.
TEST_F(ClusterFallback, APrefilledOneNeedsNoCompiler) {
  {
    ContextOptions of_device = options;
    options.device = device_none;
    const auto filler = make();
    ProblemRequest request = on(clustered(), "sm_90a");
    request.cluster_fallback = true;
    ASSERT_TRUE(warm_up(*filler, std::vector{request}, {}).overall);
    EXPECT_EQ(compilers.compiled().size(), 2u);
    options = of_device;
  }
  compilers.missing = true;
  recording.max_active_clusters = 0;
  const auto context = make();
  context->seal();
  ASSERT_TRUE(warm_up(*context, std::vector{clustered()}, {}).overall);
  EXPECT_EQ(launched_cluster(*context), 1u);
  EXPECT_EQ(compilers.compiled().size(), 2u);
}

TEST_F(ClusterFallback, WithoutItTheRefusalSaysBoth) {
  {
    const auto filler = make();
    ASSERT_TRUE(warm_up(*filler, std::vector{clustered()}, {}).overall);
  }
  compilers.missing = true;
  recording.max_active_clusters = 0;
  const auto context = make();
  const WarmupResult result = warm_up(*context, std::vector{clustered()}, {});
  ASSERT_FALSE(result.overall);
  EXPECT_NE(result.overall.message().find("cluster of 4"), std::string::npos) << result.overall.message();
  EXPECT_NE(result.overall.message().find("no substitute"), std::string::npos) << result.overall.message();
  EXPECT_EQ(context->registry().size(), 0u);
}

// On a device that takes the cluster the prefilled substitute is kept, not loaded; and a plan that names both by key
// loads both, but launches the one with the cluster.
TEST_F(ClusterFallback, TheSubstituteNeverDisplacesWhatFits) {
  ProblemRequest request = clustered();
  request.cluster_fallback = true;
  {
    const auto context = make();
    ASSERT_TRUE(warm_up(*context, std::vector{request}, {}).overall);
    EXPECT_EQ(compilers.compiled().size(), 2u);
    EXPECT_EQ(context->registry().size(), 1u);
    EXPECT_EQ(context->counters().kernels_of(Match::exact), 1u);
  }
  const auto context = make();
  const KernelKey key = item(*context, clustered()).key();
  for (const KernelKey& named : {*without_cluster(key), key}) {
    ProblemRequest by_key;
    by_key.key = named;
    ASSERT_TRUE(warm_up(*context, std::vector{by_key}, {}).overall);
  }
  EXPECT_EQ(context->registry().size(), 2u);
  EXPECT_EQ(launched_cluster(*context), 4u);
}

TEST_F(ClusterFallback, OnlyKernelsWithClustersHaveOne) {
  const auto context = make();
  EXPECT_FALSE(without_cluster(item(*context, nvfp4(1024, 1024, 1)).key()));
  const auto alone = without_cluster(item(*context, clustered()).key());
  ASSERT_TRUE(alone);
  EXPECT_FALSE(without_cluster(*alone));
}

}  // namespace
}  // namespace gemvjit::test
