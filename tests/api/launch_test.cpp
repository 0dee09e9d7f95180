// The three launch functions: what reaches the driver, and every argument that is refused before it does.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "kernels/shared/scale_segments.h"
#include "tests/api/api_fixture.h"

namespace gemvjit::test {
namespace {

class ApiLaunchTest : public ApiTest {
 protected:
  CUstream stream = static_cast<CUstream>(address(0x9000));
};

TEST_F(ApiLaunchTest, Nvfp4ArgumentsReachTheKernel) {
  gemvjit_context* context = open();
  ASSERT_EQ(warm(context, {problem(GEMVJIT_NVFP4_GEMV, 4096, 4096)}), GEMVJIT_OK);
  recording.argument_sizes = {8, 8, 8, 8, 8, 8, 4};
  auto args = nvfp4_args(3, 4096, 4096);
  args.x_row_stride = 5000;
  ASSERT_EQ(gemvjit_nvfp4_gemv(context, &args, stream), GEMVJIT_OK) << gemvjit_last_error();
  ASSERT_EQ(recording.launches().size(), 1u);
  const RecordedLaunch seen = recording.launches()[0];
  const auto word = [&](std::size_t i) {
    std::uint64_t value = 0;
    std::memcpy(&value, seen.arguments.at(i).data(), seen.arguments.at(i).size());
    return value;
  };
  EXPECT_EQ(word(0), 0x10002u);
  EXPECT_EQ(word(1), 5000u);
  EXPECT_EQ(word(2), 0x20010u);
  EXPECT_EQ(word(3), 0x30010u);
  EXPECT_EQ(word(4), 0x40004u);
  EXPECT_EQ(word(5), 0x50002u);
  EXPECT_EQ(word(6), 3u);
  EXPECT_EQ(seen.stream, stream);
  EXPECT_TRUE(seen.pdl());
}

// B121.
TEST_F(ApiLaunchTest, SegmentsReachTheirOwnKernel) {
  gemvjit_context* context = open();
  gemvjit_problem merged = problem(GEMVJIT_NVFP4_GEMV, 192, 512);
  merged.scale_segments = 1;
  ASSERT_EQ(warm(context, {merged}), GEMVJIT_OK);
  recording.argument_sizes = {8, 8, 8, 8, sizeof(gemvjit::ScaleSegments), 8, 4};
  const auto* scales = static_cast<const float*>(address(0x70000));
  std::vector<gemvjit_scale_segment> segments{{128, scales}, {192, scales + 3}};
  auto args = nvfp4_args(2, 192, 512);
  EXPECT_EQ(gemvjit_nvfp4_gemv(context, &args, stream), GEMVJIT_NOT_READY);
  EXPECT_TRUE(last_error_has("scale_segments=0"));
  args.global_scale = nullptr;
  args.segments = segments.data();
  args.segment_count = 2;
  ASSERT_EQ(gemvjit_nvfp4_gemv(context, &args, stream), GEMVJIT_OK) << gemvjit_last_error();
  gemvjit::ScaleSegments seen{};
  const auto bytes = recording.launches().at(0).arguments.at(4);
  ASSERT_EQ(bytes.size(), sizeof seen);
  std::memcpy(&seen, bytes.data(), sizeof seen);
  EXPECT_EQ(seen.row_end[0], 128u);
  EXPECT_EQ(seen.scale[0], scales);
  for (int i = 1; i < gemvjit::kMaxScaleSegments; ++i) {
    EXPECT_EQ(seen.row_end[i], 192u) << i;
    EXPECT_EQ(seen.scale[i], scales + 3) << i;
  }
  // A struct of an older header has none, whatever lies behind it.
  args.struct_size = offsetof(gemvjit_nvfp4_gemv_args, segment_count);
  EXPECT_EQ(gemvjit_nvfp4_gemv(context, &args, stream), GEMVJIT_INVALID_ARGUMENT);
  EXPECT_TRUE(last_error_has("global_scale"));
}

TEST_F(ApiLaunchTest, SegmentsThatDoNotFitAreRefused) {
  gemvjit_context* context = open();
  const auto* scales = static_cast<const float*>(address(0x70000));
  const auto refused = [&](std::vector<gemvjit_scale_segment> segments, const char* what,
                           const float* global_scale = nullptr) {
    auto args = nvfp4_args(1, 64, 256);
    args.global_scale = global_scale;
    args.segments = segments.data();
    args.segment_count = static_cast<std::int64_t>(segments.size());
    return gemvjit_nvfp4_gemv(context, &args, stream) != GEMVJIT_OK && last_error_has(what);
  };
  EXPECT_TRUE(refused({{64, scales}}, "must be NULL", scales));
  EXPECT_TRUE(refused({{56, scales}}, "the last is n = 64"));
  EXPECT_TRUE(refused({{72, scales}}, "row_end is 72"));
  EXPECT_TRUE(refused({{12, scales}, {64, scales}}, "multiples of 8"));
  EXPECT_TRUE(refused({{32, scales}, {32, scales}, {64, scales}}, "segments[1]"));
  EXPECT_TRUE(refused({{32, scales}, {64, nullptr}}, "global_scale"));
  EXPECT_TRUE(refused(std::vector<gemvjit_scale_segment>(9, {64, scales}), "0 to 8"));
  EXPECT_TRUE(refused({{32, scales}, {64, scales}}, "scale_segments=1")) << "nothing is warmed";
}

TEST_F(ApiLaunchTest, SwizzleReachesTheKernelAndNeverOverlaps) {
  gemvjit_context* context = open();
  ASSERT_EQ(warm(context, {problem(GEMVJIT_SWIZZLE_BLOCKSCALE, 100, 48)}), GEMVJIT_OK) << gemvjit_last_error();
  gemvjit_swizzle_blockscale_args args{};
  args.struct_size = sizeof args;
  args.n = 100, args.k = 48, args.row_major = address(0x10001), args.swizzled = address(0x20010);
  ASSERT_EQ(gemvjit_swizzle_blockscale_device(context, &args, stream), GEMVJIT_OK) << gemvjit_last_error();
  EXPECT_FALSE(recording.launches().at(0).pdl());
  args.swizzled = address(0x20008);
  EXPECT_EQ(gemvjit_swizzle_blockscale_device(context, &args, stream), GEMVJIT_INVALID_ALIGNMENT);
  args.swizzled = address(0x20010), args.k = 24;
  EXPECT_EQ(gemvjit_swizzle_blockscale_device(context, &args, stream), GEMVJIT_INVALID_SHAPE);
  EXPECT_EQ(gemvjit_swizzle_blockscale_device(context, nullptr, stream), GEMVJIT_INVALID_ARGUMENT);
}

TEST_F(ApiLaunchTest, Bf16AndDequantizeReachTheKernel) {
  gemvjit_context* context = open();
  ASSERT_EQ(warm(context, {problem(GEMVJIT_BF16_GEMV, 64, 72), problem(GEMVJIT_DEQUANTIZE_ROWS, 7, 48)}), GEMVJIT_OK)
      << gemvjit_last_error();
  const auto bf16 = bf16_args(32, 64, 72);
  EXPECT_EQ(gemvjit_bf16_gemv(context, &bf16, nullptr), GEMVJIT_OK) << gemvjit_last_error();
  const auto rows = dequantize_args(7, 48);
  EXPECT_EQ(gemvjit_dequantize_rows(context, &rows, stream), GEMVJIT_OK) << gemvjit_last_error();
  EXPECT_EQ(recording.launches().size(), 2u);
}

TEST_F(ApiLaunchTest, SiluMulIsAKernelOfItsOwn) {
  gemvjit_context* context = open();
  ASSERT_EQ(warm(context, {problem(GEMVJIT_NVFP4_GEMV, 256, 1024)}), GEMVJIT_OK);
  auto args = nvfp4_args(1, 256, 1024);
  args.silu_mul = 1;
  EXPECT_EQ(gemvjit_nvfp4_gemv(context, &args, stream), GEMVJIT_NOT_READY);
  EXPECT_TRUE(last_error_has("silu_mul=1"));
  auto silu = problem(GEMVJIT_NVFP4_GEMV, 256, 1024);
  silu.silu_mul = 1;
  ASSERT_EQ(warm(context, {silu}), GEMVJIT_OK);
  EXPECT_EQ(gemvjit_nvfp4_gemv(context, &args, stream), GEMVJIT_OK);
}

// B130, B131.
TEST_F(ApiLaunchTest, MZeroSucceedsWithoutALaunchOnceAllElseIsValid) {
  gemvjit_context* context = open();
  auto args = nvfp4_args(0, 4096, 4096);
  EXPECT_EQ(gemvjit_nvfp4_gemv(context, &args, stream), GEMVJIT_OK);  // not warmed: there is nothing to launch
  const auto bf16 = bf16_args(0, 64, 64);
  EXPECT_EQ(gemvjit_bf16_gemv(context, &bf16, stream), GEMVJIT_OK);
  EXPECT_TRUE(recording.launches().empty());
  auto empty = nvfp4_args(0, 4096, 4096);  // an empty tensor of a framework has no address
  empty.x = nullptr;
  empty.out = nullptr;
  EXPECT_EQ(gemvjit_nvfp4_gemv(context, &empty, stream), GEMVJIT_OK) << gemvjit_last_error();
  auto empty_bf16 = bf16_args(0, 64, 64);
  empty_bf16.x = nullptr;
  empty_bf16.out = nullptr;
  EXPECT_EQ(gemvjit_bf16_gemv(context, &empty_bf16, stream), GEMVJIT_OK) << gemvjit_last_error();
  empty.out = address(0x50001);
  EXPECT_EQ(gemvjit_nvfp4_gemv(context, &empty, stream), GEMVJIT_INVALID_ALIGNMENT);
  args.n = 4097;
  EXPECT_EQ(gemvjit_nvfp4_gemv(context, &args, stream), GEMVJIT_INVALID_SHAPE);
  args.n = 4096;
  args.weight = nullptr;
  EXPECT_EQ(gemvjit_nvfp4_gemv(context, &args, stream), GEMVJIT_INVALID_ARGUMENT);
}

// B130, B131: not one call of the driver, which a capture would mind; nor a compile where a miss compiles.
TEST_F(ApiLaunchTest, MZeroCallsNoDriverAlsoUnderCapture) {
  options.compile_on_miss = true;
  gemvjit_context* context = open();
  ASSERT_EQ(warm(context, {problem(GEMVJIT_NVFP4_GEMV, 4096, 4096), problem(GEMVJIT_BF16_GEMV, 64, 64)}), GEMVJIT_OK);
  const std::size_t compiled = compilers.compiled().size();
  recording.forget_calls();
  for (const bool capturing : {false, true}) {
    recording.capturing = capturing;
    for (const std::int64_t n : {4096, 64, 8192}) {  // warmed for the one, for the other, and for none
      for (const int silu_mul : {0, 1}) {
        auto nvfp4 = nvfp4_args(0, n, 4096);
        nvfp4.silu_mul = silu_mul;
        EXPECT_EQ(gemvjit_nvfp4_gemv(context, &nvfp4, stream), GEMVJIT_OK) << gemvjit_last_error();
        auto bf16 = bf16_args(0, n, 64);
        bf16.silu_mul = silu_mul;
        EXPECT_EQ(gemvjit_bf16_gemv(context, &bf16, stream), GEMVJIT_OK) << gemvjit_last_error();
      }
    }
  }
  EXPECT_TRUE(recording.calls().empty()) << recording.calls().front();
  EXPECT_EQ(compilers.compiled().size(), compiled);
  recording.capturing = false;
  const auto one = nvfp4_args(1, 4096, 4096);  // control: M = 1 is one call
  EXPECT_EQ(gemvjit_nvfp4_gemv(context, &one, stream), GEMVJIT_OK);
  EXPECT_EQ(recording.calls(), std::vector<std::string>{"cuLaunchKernelEx"});
}

TEST_F(ApiLaunchTest, MThatIsNotCoveredHasItsOwnStatus) {
  gemvjit_context* context = open();
  auto one = problem(GEMVJIT_NVFP4_GEMV, 4096, 4096);
  one.nt = 1;
  ASSERT_EQ(warm(context, {one}), GEMVJIT_OK);
  for (const std::int64_t m : {9, 32, 33, 1000}) {
    const auto args = nvfp4_args(m, 4096, 4096);
    EXPECT_EQ(gemvjit_nvfp4_gemv(context, &args, stream), GEMVJIT_M_NOT_COVERED) << m;
    EXPECT_TRUE(last_error_has(std::to_string(m)));
  }
  const auto far = nvfp4_args(std::int64_t{1} << 32 | 1, 4096, 4096);  // must not be cut to 1
  EXPECT_EQ(gemvjit_nvfp4_gemv(context, &far, stream), GEMVJIT_M_NOT_COVERED);
  EXPECT_TRUE(recording.launches().empty());
}

TEST_F(ApiLaunchTest, WhatWasNotWarmedIsNotReadyAndCounted) {
  gemvjit_context* context = open();
  const auto args = nvfp4_args(1, 4096, 4096);
  EXPECT_EQ(gemvjit_nvfp4_gemv(context, &args, stream), GEMVJIT_NOT_READY);
  EXPECT_TRUE(last_error_has("gemvjit_warmup"));
  EXPECT_TRUE(last_error_has("n=4096 k=4096"));
  const auto rows = dequantize_args(64, 64);
  EXPECT_EQ(gemvjit_dequantize_rows(context, &rows, stream), GEMVJIT_NOT_READY);
  gemvjit_stats_data stats{};
  stats.struct_size = sizeof stats;
  ASSERT_EQ(gemvjit_stats(context, &stats), GEMVJIT_OK);
  EXPECT_EQ(stats.launch_misses, 2u);
  EXPECT_EQ(stats.launches, 0u);
}

TEST_F(ApiLaunchTest, WithoutADevice) {
  options.device = device_none;
  const auto args = nvfp4_args(1, 4096, 4096);
  EXPECT_EQ(gemvjit_nvfp4_gemv(open(), &args, stream), GEMVJIT_NO_DRIVER);
  EXPECT_TRUE(last_error_has("no device"));
}

TEST_F(ApiLaunchTest, AFailedDriverCallIsTold) {
  gemvjit_context* context = open();
  ASSERT_EQ(warm(context, {problem(GEMVJIT_NVFP4_GEMV, 4096, 4096)}), GEMVJIT_OK);
  recording.errors["cuLaunchKernelEx"] = CUDA_ERROR_LAUNCH_FAILED;
  const auto args = nvfp4_args(1, 4096, 4096);
  EXPECT_EQ(gemvjit_nvfp4_gemv(context, &args, stream), GEMVJIT_CUDA_ERROR);
  EXPECT_TRUE(last_error_has("CUDA_ERROR_LAUNCH_FAILED"));
  EXPECT_TRUE(last_error_has("gemvjit_nvfp4_gemv"));
}

// One way to spoil good arguments, what it must give, and a part of the message.
template <typename Args>
struct Spoiled {
  const char* what;
  std::function<void(Args&)> spoil;
  gemvjit_status status;
  const char* message;
};

template <typename Args, typename Launch>
void expect_refused(RecordingState& recording, const Args& good, const std::vector<Spoiled<Args>>& cases,
                    const Launch& launch) {
  ASSERT_EQ(launch(&good), GEMVJIT_OK) << gemvjit_last_error();
  const std::size_t launched = recording.launches().size();
  for (const auto& one : cases) {
    Args args = good;
    one.spoil(args);
    EXPECT_EQ(launch(&args), one.status) << one.what << ": " << gemvjit_last_error();
    EXPECT_TRUE(last_error_has(one.message)) << one.what;
  }
  EXPECT_EQ(launch(nullptr), GEMVJIT_INVALID_ARGUMENT);
  EXPECT_EQ(recording.launches().size(), launched) << "something was launched";
}

// B119, B134: a layout, a convention or an address that is not served never reaches the driver.
TEST_F(ApiLaunchTest, BadNvfp4ArgumentsAreRefusedBeforeTheLaunch) {
  gemvjit_context* context = open();
  ASSERT_EQ(warm(context, {problem(GEMVJIT_NVFP4_GEMV, 4096, 4096)}), GEMVJIT_OK);
  using Args = gemvjit_nvfp4_gemv_args;
  const std::vector<Spoiled<Args>> cases = {
      {"size 0", [](Args& a) { a.struct_size = 0; }, GEMVJIT_INVALID_ARGUMENT, "struct_size"},
      {"too small", [](Args& a) { a.struct_size -= 8; }, GEMVJIT_INVALID_ARGUMENT, "struct_size"},
      {"too large", [](Args& a) { a.struct_size += 8; }, GEMVJIT_INVALID_ARGUMENT, "struct_size"},
      {"m < 0", [](Args& a) { a.m = -1; }, GEMVJIT_INVALID_ARGUMENT, "-1"},
      {"n = 0", [](Args& a) { a.n = 0; }, GEMVJIT_INVALID_SHAPE, "positive"},
      {"n < 0", [](Args& a) { a.n = -4096; }, GEMVJIT_INVALID_SHAPE, "positive"},
      {"n odd", [](Args& a) { a.n = 4100; }, GEMVJIT_INVALID_SHAPE, "multiple of 8"},
      {"n for silu", [](Args& a) { a.n = 4104, a.silu_mul = 1; }, GEMVJIT_INVALID_SHAPE, "multiple of 16"},
      {"n overflows", [](Args& a) { a.n = INT64_MAX - 7; }, GEMVJIT_INVALID_SHAPE, "at most"},
      {"k = 0", [](Args& a) { a.k = 0; }, GEMVJIT_INVALID_SHAPE, "positive"},
      {"k < 0", [](Args& a) { a.k = -16; }, GEMVJIT_INVALID_SHAPE, "positive"},
      {"k odd", [](Args& a) { a.k = 4088; }, GEMVJIT_INVALID_SHAPE, "multiple of 16"},
      {"k overflows", [](Args& a) { a.k = a.x_row_stride = int64_t{1} << 40; }, GEMVJIT_INVALID_SHAPE, "at most"},
      {"stride < k", [](Args& a) { a.x_row_stride = 4095; }, GEMVJIT_INVALID_ARGUMENT, "x_row_stride"},
      {"stride < 0", [](Args& a) { a.x_row_stride = -4096; }, GEMVJIT_INVALID_ARGUMENT, "x_row_stride"},
      {"stride overflows", [](Args& a) { a.x_row_stride = INT64_MAX; }, GEMVJIT_INVALID_ARGUMENT, "x_row_stride"},
      {"no x", [](Args& a) { a.x = nullptr; }, GEMVJIT_INVALID_ARGUMENT, "x is null"},
      {"no weight", [](Args& a) { a.weight = nullptr; }, GEMVJIT_INVALID_ARGUMENT, "weight is null"},
      {"no scale", [](Args& a) { a.weight_scale = nullptr; }, GEMVJIT_INVALID_ARGUMENT, "weight_scale is null"},
      {"no global", [](Args& a) { a.global_scale = nullptr; }, GEMVJIT_INVALID_ARGUMENT, "global_scale is null"},
      {"no out", [](Args& a) { a.out = nullptr; }, GEMVJIT_INVALID_ARGUMENT, "out is null"},
      {"x odd", [](Args& a) { a.x = address(0x10001); }, GEMVJIT_INVALID_ALIGNMENT, "2-byte"},
      {"weight by 8", [](Args& a) { a.weight = address(0x20008); }, GEMVJIT_INVALID_ALIGNMENT, "16-byte"},
      {"scale by 8", [](Args& a) { a.weight_scale = address(0x30008); }, GEMVJIT_INVALID_ALIGNMENT, "16-byte"},
      {"global by 2", [](Args& a) { a.global_scale = static_cast<const float*>(address(0x40002)); },
       GEMVJIT_INVALID_ALIGNMENT, "4-byte"},
      {"out odd", [](Args& a) { a.out = address(0x50001); }, GEMVJIT_INVALID_ALIGNMENT, "2-byte"},
      {"layout 0", [](Args& a) { a.scale_layout = 0; }, GEMVJIT_INVALID_ARGUMENT, "GEMVJIT_SCALE_128X4_SWIZZLED"},
      {"layout 3", [](Args& a) { a.scale_layout = 3; }, GEMVJIT_INVALID_ARGUMENT, "scale_layout is 3"},
      {"row-major", [](Args& a) { a.scale_layout = GEMVJIT_SCALE_ROW_MAJOR; }, GEMVJIT_UNSUPPORTED,
       "gemvjit_swizzle_blockscale"},
      {"kind 0", [](Args& a) { a.global_scale_kind = 0; }, GEMVJIT_INVALID_ARGUMENT, "MULTIPLIER"},
      {"kind 9", [](Args& a) { a.global_scale_kind = 9; }, GEMVJIT_INVALID_ARGUMENT, "is 9"},
      {"divisor", [](Args& a) { a.global_scale_kind = GEMVJIT_GLOBAL_SCALE_DIVISOR; }, GEMVJIT_UNSUPPORTED,
       "reciprocal"},
      {"silu 2", [](Args& a) { a.silu_mul = 2; }, GEMVJIT_INVALID_ARGUMENT, "silu_mul is 2"},
      {"pdl -1", [](Args& a) { a.pdl = -1; }, GEMVJIT_INVALID_ARGUMENT, "pdl is -1"},
  };
  expect_refused(recording, nvfp4_args(1, 4096, 4096), cases,
                 [&](const Args* args) { return gemvjit_nvfp4_gemv(context, args, stream); });
  const auto args = nvfp4_args(1, 4096, 4096);
  EXPECT_EQ(gemvjit_nvfp4_gemv(nullptr, &args, stream), GEMVJIT_INVALID_ARGUMENT);
  EXPECT_TRUE(last_error_has("gemvjit_create"));
}

TEST_F(ApiLaunchTest, BadBf16ArgumentsAreRefusedBeforeTheLaunch) {
  gemvjit_context* context = open();
  ASSERT_EQ(warm(context, {problem(GEMVJIT_BF16_GEMV, 64, 72)}), GEMVJIT_OK);
  using Args = gemvjit_bf16_gemv_args;
  const std::vector<Spoiled<Args>> cases = {
      {"too small", [](Args& a) { a.struct_size = 8; }, GEMVJIT_INVALID_ARGUMENT, "struct_size"},
      {"m < 0", [](Args& a) { a.m = INT64_MIN; }, GEMVJIT_INVALID_ARGUMENT, "negative"},
      {"n odd", [](Args& a) { a.n = 60; }, GEMVJIT_INVALID_SHAPE, "multiple of 8"},
      {"k odd", [](Args& a) { a.k = 68; }, GEMVJIT_INVALID_SHAPE, "multiple of 8"},
      {"stride < k", [](Args& a) { a.x_row_stride = 71; }, GEMVJIT_INVALID_ARGUMENT, "x_row_stride"},
      {"no x", [](Args& a) { a.x = nullptr; }, GEMVJIT_INVALID_ARGUMENT, "x is null"},
      {"no weight", [](Args& a) { a.weight = nullptr; }, GEMVJIT_INVALID_ARGUMENT, "weight is null"},
      {"no out", [](Args& a) { a.out = nullptr; }, GEMVJIT_INVALID_ARGUMENT, "out is null"},
      {"weight by 2", [](Args& a) { a.weight = address(0x20002); }, GEMVJIT_INVALID_ALIGNMENT, "16-byte"},
      {"silu", [](Args& a) { a.silu_mul = 7; }, GEMVJIT_INVALID_ARGUMENT, "silu_mul"},
      {"pdl", [](Args& a) { a.pdl = 7; }, GEMVJIT_INVALID_ARGUMENT, "pdl"},
  };
  expect_refused(recording, bf16_args(1, 64, 72), cases,
                 [&](const Args* args) { return gemvjit_bf16_gemv(context, args, stream); });
}

TEST_F(ApiLaunchTest, BadDequantizeArgumentsAreRefusedBeforeTheLaunch) {
  gemvjit_context* context = open();
  ASSERT_EQ(warm(context, {problem(GEMVJIT_DEQUANTIZE_ROWS, 7, 48)}), GEMVJIT_OK);
  using Args = gemvjit_dequantize_rows_args;
  const std::vector<Spoiled<Args>> cases = {
      {"too large", [](Args& a) { a.struct_size = 4096; }, GEMVJIT_INVALID_ARGUMENT, "struct_size"},
      {"n = 0", [](Args& a) { a.n = 0; }, GEMVJIT_INVALID_SHAPE, "positive"},
      {"k odd", [](Args& a) { a.k = 40; }, GEMVJIT_INVALID_SHAPE, "multiple of 16"},
      {"no weight", [](Args& a) { a.weight = nullptr; }, GEMVJIT_INVALID_ARGUMENT, "weight is null"},
      {"no scale", [](Args& a) { a.weight_scale = nullptr; }, GEMVJIT_INVALID_ARGUMENT, "weight_scale is null"},
      {"no out", [](Args& a) { a.out = nullptr; }, GEMVJIT_INVALID_ARGUMENT, "out is null"},
      {"out by 2", [](Args& a) { a.out = address(0x50002); }, GEMVJIT_INVALID_ALIGNMENT, "16-byte"},
      {"layout", [](Args& a) { a.scale_layout = 0; }, GEMVJIT_INVALID_ARGUMENT, "scale_layout"},
      {"row-major", [](Args& a) { a.scale_layout = 2; }, GEMVJIT_UNSUPPORTED, "row-major"},
      {"pdl", [](Args& a) { a.pdl = 2; }, GEMVJIT_INVALID_ARGUMENT, "pdl"},
  };
  expect_refused(recording, dequantize_args(7, 48), cases,
                 [&](const Args* args) { return gemvjit_dequantize_rows(context, args, stream); });
}

}  // namespace
}  // namespace gemvjit::test
