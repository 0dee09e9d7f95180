// What the driver is told at a launch: attributes, sizes, stream and arguments.
#include "src/launch/launcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

#include "tests/support/recording_driver.h"

namespace gemvjit {
namespace {

using test::RecordedLaunch;

LaunchConfig config_of(unsigned cluster, bool pdl) {
  LaunchConfig config;
  config.grid_x = 96;
  config.block_x = 128;
  config.cluster_x = cluster;
  config.smem_bytes = 70000;
  config.pdl = pdl;
  return config;
}

TEST(MarshalAttributes, NoneWithoutClusterAndPdl) {
  LaunchAttributes out;
  out.count = 2;  // of an earlier use
  marshal_attributes(config_of(1, false), out);
  EXPECT_EQ(out.count, 0u);
}

TEST(MarshalAttributes, ClusterDimension) {
  for (const unsigned cluster : {2u, 4u, 8u}) {
    LaunchAttributes out;
    marshal_attributes(config_of(cluster, false), out);
    ASSERT_EQ(out.count, 1u);
    EXPECT_EQ(out.attributes[0].id, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
    EXPECT_EQ(out.attributes[0].value.clusterDim.x, cluster);
    EXPECT_EQ(out.attributes[0].value.clusterDim.y, 1u);
    EXPECT_EQ(out.attributes[0].value.clusterDim.z, 1u);
  }
}

TEST(MarshalAttributes, ProgrammaticStreamSerialization) {
  LaunchAttributes out;
  marshal_attributes(config_of(1, true), out);
  ASSERT_EQ(out.count, 1u);
  EXPECT_EQ(out.attributes[0].id, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
  EXPECT_EQ(out.attributes[0].value.programmaticStreamSerializationAllowed, 1);
}

TEST(MarshalAttributes, Both) {
  LaunchAttributes out;
  marshal_attributes(config_of(4, true), out);
  ASSERT_EQ(out.count, 2u);
  EXPECT_EQ(out.attributes[0].id, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
  EXPECT_EQ(out.attributes[0].value.clusterDim.x, 4u);
  EXPECT_EQ(out.attributes[1].id, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
  EXPECT_EQ(out.attributes[1].value.programmaticStreamSerializationAllowed, 1);
}

template <typename T>
T argument(const RecordedLaunch& launch, std::size_t index) {
  T value{};
  EXPECT_EQ(launch.arguments.at(index).size(), sizeof value);
  std::memcpy(&value, launch.arguments.at(index).data(), sizeof value);
  return value;
}

TEST(Launch, EverythingArrivesForAGemv) {
  test::RecordingState state;
  const auto driver = test::make_recording_driver(state);
  state.argument_sizes = {8, 8, 8, 8, 8, 8, 4};
  const auto address = [](std::uintptr_t value) { return reinterpret_cast<void*>(value); };
  GemvArguments arguments{address(0x1002),
                          std::int64_t{1} << 40,
                          address(0x2000),
                          address(0x3000),
                          static_cast<const float*>(address(0x4000)),
                          address(0x5006),
                          17};
  auto pointers = argument_pointers(arguments);
  const auto kernel = static_cast<CUkernel>(address(0x77));
  const auto stream = static_cast<CUstream>(address(0x99));
  EXPECT_EQ(launch(*driver, kernel, config_of(2, true), 1, pointers.data(), stream), CUDA_SUCCESS);

  EXPECT_THAT(state.calls(), ::testing::ElementsAre("cuLaunchKernelEx"));  // and no other call of the driver
  ASSERT_EQ(state.launches().size(), 1u);
  const RecordedLaunch seen = state.launches()[0];
  EXPECT_THAT(seen.grid, ::testing::ElementsAre(96, 1, 1));
  EXPECT_THAT(seen.block, ::testing::ElementsAre(128, 1, 1));
  EXPECT_EQ(seen.smem_bytes, 70000u);
  EXPECT_EQ(seen.stream, stream);
  EXPECT_EQ(static_cast<void*>(seen.function), static_cast<void*>(kernel));
  EXPECT_EQ(seen.cluster_x(), 2u);
  EXPECT_TRUE(seen.pdl());
  EXPECT_EQ(argument<void*>(seen, 0), address(0x1002));
  EXPECT_EQ(argument<std::int64_t>(seen, 1), std::int64_t{1} << 40);
  EXPECT_EQ(argument<void*>(seen, 2), address(0x2000));
  EXPECT_EQ(argument<void*>(seen, 3), address(0x3000));
  EXPECT_EQ(argument<void*>(seen, 4), address(0x4000));
  EXPECT_EQ(argument<void*>(seen, 5), address(0x5006));
  EXPECT_EQ(argument<std::int32_t>(seen, 6), 17);
}

// Of staged x a launch takes the rows of its own tokens only, so that more CTAs fit on an SM.
TEST(Launch, SharedMemoryIsThatOfItsTokens) {
  test::RecordingState state;
  const auto driver = test::make_recording_driver(state);
  LaunchConfig staged = config_of(1, false);
  staged.smem_token_bytes = 2064;
  staged.max_tokens = 16;
  for (unsigned m = 1; m <= 16; ++m) {
    EXPECT_EQ(launch(*driver, nullptr, staged, m, nullptr, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(state.launches().back().smem_bytes, 70000u - 2064u * (16 - m));
    EXPECT_THAT(state.launches().back().grid, ::testing::ElementsAre(96, 1, 1)) << "the grid knows no tokens";
  }
  for (const unsigned m : {0u, 1u, 32u}) {  // without staged x any m is the same
    EXPECT_EQ(launch(*driver, nullptr, config_of(1, false), m, nullptr, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(state.launches().back().smem_bytes, 70000u);
  }
}

TEST(Launch, EverythingArrivesForDequantizeRows) {
  test::RecordingState state;
  const auto driver = test::make_recording_driver(state);
  state.argument_sizes = {8, 8, 8};
  int weight = 0, scale = 0, out = 0;
  DequantizeArguments arguments{&weight, &scale, &out};
  auto pointers = argument_pointers(arguments);
  EXPECT_EQ(launch(*driver, nullptr, config_of(1, false), 1, pointers.data(), nullptr), CUDA_SUCCESS);
  ASSERT_EQ(state.launches().size(), 1u);
  const RecordedLaunch seen = state.launches()[0];
  EXPECT_TRUE(seen.attributes.empty());
  EXPECT_EQ(argument<void*>(seen, 0), &weight);
  EXPECT_EQ(argument<void*>(seen, 1), &scale);
  EXPECT_EQ(argument<void*>(seen, 2), &out);
}

TEST(Launch, TheDriversAnswerComesBack) {
  test::RecordingState state;
  const auto driver = test::make_recording_driver(state);
  state.errors["cuLaunchKernelEx"] = CUDA_ERROR_INVALID_CLUSTER_SIZE;
  EXPECT_EQ(launch(*driver, nullptr, config_of(8, false), 1, nullptr, nullptr), CUDA_ERROR_INVALID_CLUSTER_SIZE);
}

// Each thread launches with attributes of its own; shared ones would mix (and a thread sanitizer would see it).
TEST(Launch, TwoThreadsDoNotMixAttributes) {
  test::RecordingState state;
  const auto driver = test::make_recording_driver(state);
  constexpr int launches = 2000;
  const auto work = [&](unsigned cluster, bool pdl) {
    const auto stream = reinterpret_cast<CUstream>(std::uintptr_t{cluster});
    for (int i = 0; i < launches; ++i) {
      EXPECT_EQ(launch(*driver, nullptr, config_of(cluster, pdl), 1, nullptr, stream), CUDA_SUCCESS);
    }
  };
  std::thread first(work, 2u, true);
  std::thread second(work, 8u, false);
  first.join();
  second.join();
  const auto seen = state.launches();
  ASSERT_EQ(seen.size(), 2u * launches);
  for (const RecordedLaunch& one : seen) {
    const auto cluster = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(one.stream));
    ASSERT_EQ(one.cluster_x(), cluster);
    ASSERT_EQ(one.pdl(), cluster == 2);
    ASSERT_EQ(one.attributes.size(), cluster == 2 ? 2u : 1u);
  }
}

}  // namespace
}  // namespace gemvjit
