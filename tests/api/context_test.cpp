// Creating and ending contexts, status names, the last error, sealing, statistics.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <filesystem>
#include <thread>

#include "tests/api/api_fixture.h"

namespace gemvjit::test {
namespace {

class ApiContextTest : public ApiTest {
 protected:
  static gemvjit_options defaults() {
    gemvjit_options result;
    EXPECT_EQ(gemvjit_options_init(&result), GEMVJIT_OK);
    result.device = GEMVJIT_DEVICE_NONE;
    return result;
  }
  // Creating with these options must fail, with this in the message.
  static void refused(const gemvjit_options& options, gemvjit_status status, const char* message) {
    auto* untouched = reinterpret_cast<gemvjit_context*>(0x1);
    gemvjit_context* out = untouched;
    EXPECT_EQ(gemvjit_create(&options, &out), status) << message;
    EXPECT_EQ(out, untouched);
    EXPECT_TRUE(last_error_has(message));
  }
};

TEST_F(ApiContextTest, StatusNames) {
  EXPECT_STREQ(gemvjit_status_name(GEMVJIT_OK), "GEMVJIT_OK");
  EXPECT_STREQ(gemvjit_status_name(GEMVJIT_NOT_READY), "GEMVJIT_NOT_READY");
  EXPECT_STREQ(gemvjit_status_name(GEMVJIT_INTERNAL_ERROR), "GEMVJIT_INTERNAL_ERROR");
  EXPECT_STREQ(gemvjit_status_name(GEMVJIT_FORKED), "GEMVJIT_FORKED");
  EXPECT_STREQ(gemvjit_status_name(static_cast<gemvjit_status>(21)), "GEMVJIT_UNKNOWN_STATUS");
  EXPECT_STREQ(gemvjit_status_name(static_cast<gemvjit_status>(31)), "GEMVJIT_UNKNOWN_STATUS");
  EXPECT_STREQ(gemvjit_version(), "0.1.0");
}

TEST_F(ApiContextTest, CreateAndDestroyWithoutADevice) {
  gemvjit_options given = defaults();
  given.cache_dir = options.cache_dir.c_str();
  gemvjit_context* context = nullptr;
  ASSERT_EQ(gemvjit_create(&given, &context), GEMVJIT_OK) << gemvjit_last_error();
  EXPECT_EQ(gemvjit_device_arch(context), nullptr);
  EXPECT_STREQ(gemvjit_cache_dir(context), options.cache_dir.c_str());
  EXPECT_EQ(std::strlen(gemvjit_tuning_hash(context)), 64u);
  EXPECT_EQ(gemvjit_destroy(context), GEMVJIT_OK);
  EXPECT_EQ(gemvjit_destroy(nullptr), GEMVJIT_OK);
}

TEST_F(ApiContextTest, BadOptionsAreNamed) {
  gemvjit_options bad = defaults();
  bad.struct_size -= 8;
  refused(bad, GEMVJIT_INVALID_ARGUMENT, "struct_size");
  bad.struct_size += 16;
  refused(bad, GEMVJIT_INVALID_ARGUMENT, "struct_size");
  bad = defaults();
  bad.device = -3;
  refused(bad, GEMVJIT_INVALID_ARGUMENT, "device is -3");
  bad = defaults();
  bad.on_miss = 2;
  refused(bad, GEMVJIT_INVALID_ARGUMENT, "on_miss is 2");
  bad = defaults();
  bad.log_level = 6;
  refused(bad, GEMVJIT_INVALID_ARGUMENT, "log_level is 6");
  bad = defaults();
  bad.compile_threads = -1;
  refused(bad, GEMVJIT_INVALID_ARGUMENT, "compile_threads");
  bad = defaults();
  const std::string missing = dir.path("no/such/folder");
  bad.tuning_dir = missing.c_str();
  refused(bad, GEMVJIT_NOT_FOUND, "no/such/folder");
  refused(bad, GEMVJIT_NOT_FOUND, "tuning_dir (GEMVJIT_TUNING_DIR)");
  EXPECT_EQ(gemvjit_create(nullptr, nullptr), GEMVJIT_INVALID_ARGUMENT);
  EXPECT_EQ(gemvjit_options_init(nullptr), GEMVJIT_INVALID_ARGUMENT);
}

TEST_F(ApiContextTest, ANullContextIsRefusedEverywhere) {
  const gemvjit_problem one = problem(GEMVJIT_NVFP4_GEMV, 64, 64);
  std::int32_t number = 5;
  gemvjit_stats_data stats{};
  stats.struct_size = sizeof stats;
  EXPECT_EQ(gemvjit_device_arch(nullptr), nullptr);
  EXPECT_EQ(gemvjit_cache_dir(nullptr), nullptr);
  EXPECT_EQ(gemvjit_tuning_hash(nullptr), nullptr);
  EXPECT_EQ(gemvjit_seal(nullptr), GEMVJIT_INVALID_ARGUMENT);
  EXPECT_EQ(gemvjit_supported(nullptr, &one, nullptr, 0), GEMVJIT_INVALID_ARGUMENT);
  EXPECT_EQ(gemvjit_pick_nt(nullptr, &one, 1, &number), GEMVJIT_INVALID_ARGUMENT);
  EXPECT_EQ(gemvjit_tuned(nullptr, &one, &number), GEMVJIT_INVALID_ARGUMENT);
  EXPECT_EQ(number, 5);
  EXPECT_EQ(gemvjit_explain(nullptr, &one, 1, nullptr, 0, nullptr), GEMVJIT_INVALID_ARGUMENT);
  EXPECT_EQ(gemvjit_warmup(nullptr, &one, 1, nullptr), GEMVJIT_INVALID_ARGUMENT);
  EXPECT_EQ(gemvjit_plan(nullptr, &one, 1, nullptr, nullptr), GEMVJIT_INVALID_ARGUMENT);
  EXPECT_EQ(gemvjit_check(nullptr, &one, 1, nullptr, nullptr), GEMVJIT_INVALID_ARGUMENT);
  EXPECT_EQ(gemvjit_stats(nullptr, &stats), GEMVJIT_INVALID_ARGUMENT);
  EXPECT_TRUE(last_error_has("gemvjit_create"));
}

TEST_F(ApiContextTest, ACountThatCannotBeMeantIsRefused) {
  gemvjit_context* context = open();
  const gemvjit_problem one = problem(GEMVJIT_NVFP4_GEMV, 64, 64);
  for (const std::size_t count : {std::size_t{1'000'001}, SIZE_MAX}) {
    EXPECT_EQ(gemvjit_warmup(context, &one, count, nullptr), GEMVJIT_INVALID_ARGUMENT);
    EXPECT_TRUE(last_error_has("at most 1000000"));
    EXPECT_EQ(gemvjit_plan(context, &one, count, nullptr, nullptr), GEMVJIT_INVALID_ARGUMENT);
    EXPECT_EQ(gemvjit_check(context, &one, count, nullptr, nullptr), GEMVJIT_INVALID_ARGUMENT);
  }
}

TEST_F(ApiContextTest, TheLastErrorBelongsToTheThread) {
  std::string before, after;
  std::thread([&] {
    before = gemvjit_last_error();
    gemvjit_seal(nullptr);
    after = gemvjit_last_error();
  }).join();
  EXPECT_EQ(before, "");
  EXPECT_NE(after.find("context is null"), std::string::npos);
  gemvjit_options_init(nullptr);
  std::thread([] { gemvjit_seal(nullptr); }).join();
  EXPECT_TRUE(last_error_has("gemvjit_options_init"));  // of this thread, as it was
  gemvjit_options good;
  EXPECT_EQ(gemvjit_options_init(&good), GEMVJIT_OK);
  EXPECT_TRUE(last_error_has("gemvjit_options_init"));  // a success leaves it
}

// B41, B47. It is not in use, so an engine must not be told that it is.
TEST_F(ApiContextTest, ARefusedFolderIsNoCacheDirectory) {
  const std::string folder = dir.path("loose");
  std::filesystem::create_directory(folder);
  gemvjit_options given = defaults();
  given.cache_dir = folder.c_str();
  for (const bool loose : {false, true}) {
    std::filesystem::permissions(folder, std::filesystem::perms(loose ? 0777 : 0700));
    gemvjit_context* context = nullptr;
    ASSERT_EQ(gemvjit_create(&given, &context), GEMVJIT_OK) << gemvjit_last_error();
    EXPECT_STREQ(gemvjit_cache_dir(context), loose ? "" : folder.c_str());
    gemvjit_destroy(context);
  }
}

TEST_F(ApiContextTest, LogMessagesReachTheCallback) {
  struct Seen {
    std::string text;
    gemvjit_log_level level = GEMVJIT_LOG_DEFAULT;
  } seen;
  const std::string file = dir.write("file", "no directory");
  gemvjit_options given = defaults();
  given.cache_dir = file.c_str();
  given.log_level = GEMVJIT_LOG_WARNING;
  given.log_user = &seen;
  given.log_callback = [](void* user, gemvjit_log_level level, const char* message) {
    *static_cast<Seen*>(user) = {message, level};
  };
  gemvjit_context* context = nullptr;
  ASSERT_EQ(gemvjit_create(&given, &context), GEMVJIT_OK) << gemvjit_last_error();
  context->impl->log().info("below the level");
  EXPECT_EQ(seen.text, "");
  context->impl->log().warning("above");
  EXPECT_EQ(seen.text, "above");
  EXPECT_EQ(seen.level, GEMVJIT_LOG_WARNING);
  gemvjit_destroy(context);
}

TEST_F(ApiContextTest, AfterTheSealNothingCompiles) {
  gemvjit_context* context = open();
  ASSERT_EQ(warm(context, {problem(GEMVJIT_NVFP4_GEMV, 64, 64)}), GEMVJIT_OK);
  ASSERT_EQ(gemvjit_seal(context), GEMVJIT_OK);
  EXPECT_EQ(warm(context, {problem(GEMVJIT_NVFP4_GEMV, 64, 64)}), GEMVJIT_OK);
  EXPECT_EQ(warm(context, {problem(GEMVJIT_NVFP4_GEMV, 64, 128)}), GEMVJIT_SEALED);
  EXPECT_TRUE(last_error_has("gemvjit_seal"));
  EXPECT_EQ(compilers.compiled().size(), 3u);
}

TEST_F(ApiContextTest, StatisticsCount) {
  gemvjit_context* context = open();
  ASSERT_EQ(warm(context, {problem(GEMVJIT_NVFP4_GEMV, 64, 64)}), GEMVJIT_OK);
  const auto args = nvfp4_args(1, 64, 64);
  for (int i = 0; i < 5; ++i) ASSERT_EQ(gemvjit_nvfp4_gemv(context, &args, nullptr), GEMVJIT_OK);
  gemvjit_stats_data stats{};
  EXPECT_EQ(gemvjit_stats(context, &stats), GEMVJIT_INVALID_ARGUMENT);
  EXPECT_EQ(gemvjit_stats(context, nullptr), GEMVJIT_INVALID_ARGUMENT);
  stats.struct_size = sizeof stats;
  ASSERT_EQ(gemvjit_stats(context, &stats), GEMVJIT_OK);
  EXPECT_EQ(stats.launches, 5u);
  EXPECT_EQ(stats.compiles, 3u);
  EXPECT_EQ(stats.cache_misses, 3u);
  EXPECT_EQ(stats.cache_writes, 3u);
  EXPECT_EQ(stats.kernels_loaded, 3u);
  EXPECT_EQ(stats.untuned_kernels, 3u);
  EXPECT_EQ(stats.default_kernels, 3u);
  EXPECT_EQ(stats.exact_kernels + stats.predicted_kernels + stats.nearest_kernels, 0u);
  EXPECT_EQ(stats.compile_milliseconds, 21u);
  EXPECT_EQ(stats.compile_failures + stats.cache_damaged + stats.cache_write_failures + stats.launch_misses, 0u);
}

TEST_F(ApiContextTest, StatisticsSayHowConfigurationsWereFound) {
  gemvjit_context* context = open();
  gemvjit_problem predicted = problem(GEMVJIT_NVFP4_GEMV, 512, 65536);
  predicted.nt = 1;
  ASSERT_EQ(warm(context, {problem(GEMVJIT_NVFP4_GEMV, 4096, 4096), problem(GEMVJIT_NVFP4_GEMV, 5120, 4096), predicted,
                           problem(GEMVJIT_BF16_GEMV, 64, 64), problem(GEMVJIT_DEQUANTIZE_ROWS, 64, 64)}),
            GEMVJIT_OK);
  gemvjit_stats_data stats{};
  stats.struct_size = sizeof stats;
  ASSERT_EQ(gemvjit_stats(context, &stats), GEMVJIT_OK);
  EXPECT_EQ(stats.exact_kernels, 3u);
  EXPECT_EQ(stats.nearest_kernels, 3u);
  EXPECT_EQ(stats.predicted_kernels, 1u);
  EXPECT_EQ(stats.default_kernels, 3u);
  EXPECT_EQ(stats.untuned_kernels, 7u);
  EXPECT_EQ(stats.kernels_loaded, 11u) << "dequantize_rows among them, which has no table";
}

TEST_F(ApiContextTest, StatisticsKeepWithinTheStructOfAnOlderHeader) {
  gemvjit_context* context = open();
  ASSERT_EQ(warm(context, {problem(GEMVJIT_NVFP4_GEMV, 4096, 4096)}), GEMVJIT_OK);
  constexpr std::size_t older = offsetof(gemvjit_stats_data, exact_kernels);
  gemvjit_stats_data stats{};
  std::memset(&stats, 0xAB, sizeof stats);
  const gemvjit_stats_data untouched = stats;
  stats.struct_size = older;
  ASSERT_EQ(gemvjit_stats(context, &stats), GEMVJIT_OK);
  EXPECT_EQ(stats.struct_size, older);
  EXPECT_EQ(stats.kernels_loaded, 3u);
  EXPECT_EQ(stats.exact_kernels, untouched.exact_kernels);
  EXPECT_EQ(stats.default_kernels, untouched.default_kernels);
  for (const std::size_t wrong : {older - 8, older + 8, sizeof stats - 4, sizeof stats + 8}) {
    stats.struct_size = wrong;
    EXPECT_EQ(gemvjit_stats(context, &stats), GEMVJIT_INVALID_ARGUMENT) << wrong;
  }
}

TEST_F(ApiContextTest, ThrownMemoryErrorsBecomeAStatus) {
  compilers.while_compiling = [] { throw std::bad_alloc(); };
  gemvjit_context* context = open();
  EXPECT_EQ(warm(context, {problem(GEMVJIT_NVFP4_GEMV, 64, 64)}), GEMVJIT_OUT_OF_MEMORY);
  compilers.while_compiling = [] { throw std::runtime_error("surprise"); };
  EXPECT_EQ(warm(context, {problem(GEMVJIT_NVFP4_GEMV, 64, 64)}), GEMVJIT_INTERNAL_ERROR);
  EXPECT_TRUE(last_error_has("surprise"));
}

}  // namespace
}  // namespace gemvjit::test
