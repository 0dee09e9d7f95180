// The counters of gemvjit_stats that tell of the cache and of other processes: each moves when its event happens, by
// just as much, and no other does.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <map>

#include "cache/layout.h"
#include "src/base/files.h"
#include "src/compile/specialize.h"
#include "tests/api/api_fixture.h"

namespace gemvjit::test {
namespace {

using Counts = std::map<std::string, std::uint64_t>;

class ApiStats : public ApiTest {
 protected:
  ApiStats() { options.device = device_none; }

  static gemvjit_stats_data stats_of(const gemvjit_context* context) {
    gemvjit_stats_data stats{};
    stats.struct_size = sizeof stats;
    EXPECT_EQ(gemvjit_stats(context, &stats), GEMVJIT_OK);
    return stats;
  }

  // Those of these counters that are not 0.
  static Counts counts(const gemvjit_context* context) {
    const gemvjit_stats_data s = stats_of(context);
    Counts counts;
    const auto add = [&](const char* name, std::uint64_t value) {
      if (value != 0) counts[name] = value;
    };
    add("damaged", s.cache_damaged);
    add("write_failures", s.cache_write_failures);
    add("compile_failures", s.compile_failures);
    add("waits", s.build_waits);
    add("stale_waits", s.build_stale_waits);
    add("shared_failures", s.build_shared_failures);
    add("evictions", s.cache_evictions);
    add("thrashed", s.cache_thrashed);
    add("refused", s.cache_writes_refused);
    add("quarantined", s.cache_quarantined);
    add("alarms", s.cache_determinism_alarms);
    add("unreadable", s.cache_unreadable);
    return counts;
  }

  // One kernel of the target, compiled only.
  static gemvjit_status warm_one(gemvjit_context* context, std::int64_t n = 64) {
    gemvjit_problem wanted = problem(GEMVJIT_NVFP4_GEMV, n, 1024);
    wanted.nt = 1;
    wanted.arch = "sm_90a";
    gemvjit_warmup_options warmup{};
    warmup.struct_size = sizeof warmup;
    warmup.level = GEMVJIT_LEVEL_COMPILED;
    return gemvjit_warmup(context, &wanted, 1, &warmup);
  }

  EntryId id_of(std::int64_t n = 64) {
    const auto context = make();
    const auto recipe = specialize(item(*context, on(nvfp4(n, 1024, 1), "sm_90a")).candidates.front());
    EXPECT_TRUE(recipe);
    return recipe->id();
  }
  std::string file_of(std::int64_t n = 64) { return entry_path(options.cache_dir, id_of(n)); }

  // The lock of the kernel, held as another process would, without a sign of life.
  Turn take_lock() {
    const auto folder = choose_lock_folder("", options.cache_dir, ::geteuid());
    EXPECT_TRUE(folder) << folder.status().text();
    LockTiming silent;
    silent.heartbeat = Milliseconds(0);
    Turn turn = acquire_lock(*folder, lock_file_name(options.cache_dir, id_of()), silent, {});
    EXPECT_EQ(turn.kind, Turn::Kind::held);
    return turn;
  }

  // Waiters go by a clock that only their waiting moves.
  void use_fake_time(std::function<void()> while_asleep) {
    timing.now = [this] { return time_; };
    timing.sleep = [this, while_asleep = std::move(while_asleep)](Milliseconds duration) {
      time_ += duration;
      while_asleep();
    };
  }

 private:
  Milliseconds time_{0};
};

TEST_F(ApiStats, NothingHappenedAndNothingCounts) {
  gemvjit_context* context = open();
  ASSERT_EQ(warm_one(context), GEMVJIT_OK);
  ASSERT_EQ(warm_one(context), GEMVJIT_OK);
  EXPECT_EQ(counts(context), Counts{});
}

TEST_F(ApiStats, AWaitThatEndsWithAnOtherwiseBuiltKernel) {
  Turn other = take_lock();
  use_fake_time([&] { other.lock.reset(); });
  gemvjit_context* context = open();
  ASSERT_EQ(warm_one(context), GEMVJIT_OK);
  EXPECT_EQ(counts(context), (Counts{{"waits", 1}}));
  ASSERT_EQ(warm_one(context, 128), GEMVJIT_OK);
  EXPECT_EQ(counts(context), (Counts{{"waits", 1}})) << "nobody was at that one";
}

TEST_F(ApiStats, AWaitForSomebodyWhoShowsNoProgress) {
  const Turn other = take_lock();
  use_fake_time([] {});
  gemvjit_context* context = open();
  ASSERT_EQ(warm_one(context), GEMVJIT_OK);
  EXPECT_EQ(counts(context), (Counts{{"stale_waits", 1}, {"waits", 1}}));
}

TEST_F(ApiStats, AFailureOfAnotherProcess) {
  Turn other = take_lock();
  use_fake_time([&] {
    if (other.lock) other.lock->fail(Status(StatusCode::compile_failed, "no such thing"), compilers.version);
    other.lock.reset();
  });
  gemvjit_context* context = open();
  EXPECT_EQ(warm_one(context), GEMVJIT_COMPILE_FAILED);
  EXPECT_EQ(counts(context), (Counts{{"shared_failures", 1}, {"waits", 1}}));
  EXPECT_TRUE(compilers.compiled().empty());
}

TEST_F(ApiStats, EvictionsAndThrashing) {
  options.cache_max_bytes = 2500;
  gemvjit_context* context = open();
  constexpr std::int64_t kernels = 8;
  const auto missing = [&](std::int64_t written) {
    std::uint64_t there = 0;
    for (const auto& file : std::filesystem::recursive_directory_iterator(options.cache_dir)) {
      if (file.path().extension() == ".entry") ++there;
    }
    return static_cast<std::uint64_t>(written) - there;
  };
  for (std::int64_t i = 1; i <= kernels; ++i) {
    ASSERT_EQ(warm_one(context, 64 * i), GEMVJIT_OK);
    ASSERT_EQ(stats_of(context).cache_evictions, missing(i)) << i;
  }
  const std::uint64_t evicted = missing(kernels);
  ASSERT_GT(evicted, 0u);
  EXPECT_EQ(counts(context), (Counts{{"evictions", evicted}}));

  options.cache_max_bytes = 1'000'000;
  context = open();
  for (std::int64_t i = 1; i <= kernels; ++i) ASSERT_EQ(warm_one(context, 64 * i), GEMVJIT_OK);
  EXPECT_EQ(counts(context), (Counts{{"thrashed", evicted}}));
}

TEST_F(ApiStats, AWriteThatFindsNoRoom) {
  options.cache_max_bytes = 100;
  gemvjit_context* context = open();
  ASSERT_EQ(warm_one(context), GEMVJIT_OK);
  EXPECT_EQ(counts(context), (Counts{{"refused", 1}, {"write_failures", 1}}));
}

TEST_F(ApiStats, ADamagedEntryGoesToTheQuarantine) {
  ASSERT_EQ(warm_one(open()), GEMVJIT_OK);
  std::filesystem::resize_file(file_of(), 100);
  gemvjit_context* context = open();
  ASSERT_EQ(warm_one(context), GEMVJIT_OK);
  EXPECT_EQ(counts(context), (Counts{{"damaged", 1}, {"quarantined", 1}}));
}

TEST_F(ApiStats, OtherCodeByTheSameCompilerIsAnAlarm) {
  const std::string mine = options.cache_dir, others = dir.path("others");
  options.cache_dir = others;
  compilers.text = "other ";
  ASSERT_EQ(warm_one(open()), GEMVJIT_OK);
  const std::string published = file_of();
  options.cache_dir = mine;
  compilers.text = "cubin of ";
  const std::string file = file_of();
  // Somebody publishes between this context's look into the cache and its own put.
  compilers.while_compiling = [&] {
    std::filesystem::create_directories(std::filesystem::path(file).parent_path());
    std::filesystem::copy_file(published, file);
  };
  gemvjit_context* context = open();
  ASSERT_EQ(warm_one(context), GEMVJIT_OK);
  EXPECT_EQ(counts(context), (Counts{{"alarms", 1}}));
}

// A folder in the file's place cannot be read, by root neither. What it is stays, and the kernel is delivered.
TEST_F(ApiStats, AnEntryThatIsNotToBeRead) {
  ASSERT_EQ(warm_one(open()), GEMVJIT_OK);
  std::filesystem::permissions(file_of(), std::filesystem::perms::others_write, std::filesystem::perm_options::add);
  gemvjit_context* context = open();
  ASSERT_EQ(warm_one(context), GEMVJIT_OK);
  EXPECT_EQ(counts(context), (Counts{{"damaged", 1}, {"unreadable", 1}, {"write_failures", 1}}));
}

TEST_F(ApiStats, AFolderInAnEntrysPlaceIsDamageAndStays) {
  std::filesystem::create_directories(file_of() + "/somebody's");
  gemvjit_context* context = open();
  ASSERT_EQ(warm_one(context), GEMVJIT_OK);
  EXPECT_EQ(counts(context), (Counts{{"damaged", 1}, {"write_failures", 1}}));
  EXPECT_TRUE(std::filesystem::is_directory(file_of() + "/somebody's"));
}

TEST_F(ApiStats, AProblemWithoutAKernelIsCounted) {
  gemvjit_context* context = open();
  ASSERT_EQ(warm_one(context), GEMVJIT_OK);
  EXPECT_EQ(stats_of(context).unserved_problems, 0u);
  EXPECT_EQ(warm_one(context, 63), GEMVJIT_INVALID_SHAPE);
  EXPECT_EQ(stats_of(context).unserved_problems, 1u);
  gemvjit_stats_data older{};
  older.struct_size = offsetof(gemvjit_stats_data, unserved_problems);
  older.unserved_problems = 77;
  ASSERT_EQ(gemvjit_stats(context, &older), GEMVJIT_OK);
  EXPECT_EQ(older.unserved_problems, 77u);
}

TEST_F(ApiStats, TheStructsOfOlderHeadersEndEarlier) {
  options.cache_max_bytes = 100;
  gemvjit_context* context = open();
  ASSERT_EQ(warm_one(context), GEMVJIT_OK);
  gemvjit_stats_data stats{};
  stats.struct_size = offsetof(gemvjit_stats_data, build_waits);
  stats.cache_writes_refused = 77;
  ASSERT_EQ(gemvjit_stats(context, &stats), GEMVJIT_OK);
  EXPECT_EQ(stats.cache_write_failures, 1u);
  EXPECT_EQ(stats.default_kernels, 1u);
  EXPECT_EQ(stats.cache_writes_refused, 77u);
}

}  // namespace
}  // namespace gemvjit::test
