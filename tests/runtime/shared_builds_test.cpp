// Processes that need one kernel at one time: one builds it, the others wait no longer than it makes progress.
#include <cstdlib>

#include "tests/runtime/shared_builds_fixture.h"

namespace gemvjit::test {
namespace {

// B01, B02: sixteen processes, let go by one barrier, and a kernel that none of them has: one compile, sixteen right
// results. The compile ends only after all of them have looked into the cache in vain, so that without the lock each
// would compile. Ten times as often with GEMVJIT_TEST_MANY_ROUNDS set.
TEST_F(SharedBuilds, SixteenProcessesBuildAKernelOnce) {
  constexpr int processes = 16;
  constexpr int rounds = 20;
  const int groups = std::getenv("GEMVJIT_TEST_MANY_ROUNDS") != nullptr ? 10 : 1;  // 200 rounds, 20 rounds
  for (int group = 0; group < groups; ++group) {
    seen->ready = seen->missed = seen->compiles = 0;
    options.cache_dir = dir.path("cache" + std::to_string(group));
    run_processes(processes, [&](int) {
      int round = 0;
      bool asked = false;
      compilers.supports = [&](const Arch&) {
        if (!asked) ++seen->missed;
        asked = true;
        return true;
      };
      compilers.while_compiling = [&] {
        ++seen->compiles;
        wait_until([&] { return seen->missed >= processes * (round + 1); });
      };
      const auto context = make();
      for (; round < rounds; ++round) {
        asked = false;
        const auto wanted = kernel(*context, 64 * (round + 1));
        ++seen->ready;
        if (!wait_until([&] { return seen->ready >= processes * (round + 1); })) return 2;
        if (!is_right(context->resolver().ensure_cached(wanted), wanted)) return 1;
        // All of this round are through with it before the next, or a slow one would find what it should miss.
        if (!wait_until([&] { return seen->missed >= processes * (round + 1); })) return 3;
      }
      return context->counters().build_stale_waits == 0 ? 0 : 4;
    });
    EXPECT_EQ(seen->compiles, rounds);
    EXPECT_EQ(entries(), static_cast<std::size_t>(rounds));
    EXPECT_TRUE(names_in(options.cache_dir + "/locks").empty());
  }
}

// B11: eight processes and a kernel that does not compile: one compile, eight times the same error; who comes later
// tries again.
TEST_F(SharedBuilds, AFailedCompileIsSharedByThoseThatWait) {
  constexpr int processes = 8;
  compilers.refuse = [](const Recipe& recipe) {
    return Status(StatusCode::compile_failed, recipe.key.text() + ": error: no such thing");
  };
  run_processes(processes, [&](int) {
    count_waiting();
    compilers.while_compiling = [&] {
      ++seen->compiles;
      wait_until([&] { return seen->waiting == processes - 1; });
    };
    const auto context = make();
    const auto built = context->resolver().ensure_cached(kernel(*context));
    seen->shared += static_cast<int>(context->counters().build_shared_failures);
    const std::string expected = kernel(*context).front().text() + ": error: no such thing";
    return !built && built.status().code() == StatusCode::compile_failed && built.status().message() == expected ? 0
                                                                                                                 : 1;
  });
  EXPECT_EQ(seen->compiles, 1);
  EXPECT_EQ(seen->shared, processes - 1);
  const auto context = make();
  EXPECT_FALSE(context->resolver().ensure_cached(kernel(*context)));
  EXPECT_EQ(seen->compiles, 2);
  EXPECT_EQ(context->counters().build_shared_failures, 0u);
}

TEST_F(SharedBuilds, AnotherCompilersFailureIsNotTaken) {
  run_processes(2, [&](int i) {
    if (i == 1 && !wait_until([&] { return seen->compiles == 1; })) return 2;
    count_waiting();
    compilers.version = i == 0 ? "Fake 0.9" : "Fake 1.0";
    compilers.refuse = [i](const Recipe&) {
      return i == 0 ? Status(StatusCode::compile_failed, "too old") : Status::ok();
    };
    compilers.while_compiling = [&, i] {
      ++seen->compiles;
      if (i == 0) wait_until([&] { return seen->waiting == 1; });
    };
    const auto context = make();
    return context->resolver().ensure_cached(kernel(*context)).is_ok() == (i == 1) ? 0 : 1;
  });
  EXPECT_EQ(seen->compiles, 2);
  EXPECT_EQ(entries(), 1u);
}

// A cached kernel that the driver refuses is built again by one process; the others take what that one published.
TEST_F(SharedBuilds, ARefusedKernelIsBuiltAgainOnce) {
  options.device = 0;
  compilers.text = "refused ";
  ASSERT_TRUE(make()->resolver().ensure_cached(kernel(*make())));
  compilers.text = "cubin of ";
  seen->compiles = 0;
  recording.on_load = [](const void* image) {
    return std::string_view(static_cast<const char*>(image), 7) == "refused" ? CUDA_ERROR_INVALID_IMAGE : CUDA_SUCCESS;
  };
  constexpr int processes = 4;
  run_processes(processes, [&](int) {
    compilers.supports = [&](const Arch&) { return ++seen->missed > 0; };
    compilers.while_compiling = [&] {
      ++seen->compiles;
      wait_until([&] { return seen->missed == processes; });
    };
    const auto context = make();
    return context->resolver().resolve(kernel(*context), nullptr) ? 0 : 1;
  });
  EXPECT_EQ(seen->compiles, 1);
  EXPECT_EQ(entries(), 1u);
}

// B07: the holder is killed in the middle of a compile; who waits goes on at its next look and says whose work it was.
TEST_F(SharedBuilds, AKilledBuilderHoldsNobodyUp) {
  const pid_t builder = start_builder();
  use_fake_time([&, killed = false]() mutable {
    if (!killed) kill_process(builder);
    killed = true;
  });
  options.log_level = LogLevel::info;
  const auto context = make();
  const auto built = context->resolver().ensure_cached(kernel(*context));
  EXPECT_TRUE(is_right(built, kernel(*context)));
  EXPECT_TRUE(built->compiled);
  EXPECT_EQ(time, Milliseconds(1));
  EXPECT_EQ(context->counters().build_waits, 1u);
  EXPECT_EQ(context->counters().build_stale_waits, 0u);
  EXPECT_EQ(logged("process " + std::to_string(builder) + " ended while it built it"), 1u);
  EXPECT_EQ(entries(), 1u);
}

// B05, B08: the builder is stopped before anything is published: who waits sees nothing, goes on after the stale limit
// and builds for itself. The builder, once it goes on, does no harm.
TEST_F(SharedBuilds, AStoppedBuilderHoldsNobodyUpForLong) {
  const pid_t builder = start_builder();
  ASSERT_EQ(::kill(builder, SIGSTOP), 0);
  int status = 0;
  ASSERT_EQ(::waitpid(builder, &status, WUNTRACED), builder);
  ASSERT_TRUE(WIFSTOPPED(status));
  use_fake_time();
  const auto context = make();
  const auto built = context->resolver().ensure_cached(kernel(*context));
  EXPECT_TRUE(is_right(built, kernel(*context)));
  EXPECT_TRUE(built->compiled);
  EXPECT_TRUE(built->kept);
  EXPECT_EQ(time, Milliseconds(10'000));
  EXPECT_EQ(context->counters().build_stale_waits, 1u);
  EXPECT_EQ(logged("shows no progress"), 1u);
  seen->go_on = true;
  ASSERT_EQ(::kill(builder, SIGCONT), 0);
  expect_exit(builder);
  EXPECT_EQ(entries(), 1u);
  const auto later = make();
  const auto found = later->resolver().ensure_cached(kernel(*later));
  EXPECT_TRUE(is_right(found, kernel(*later)));
  EXPECT_FALSE(found->compiled);
}

TEST_F(SharedBuilds, ASealedContextDoesNotWait) {
  const pid_t builder = start_builder();
  use_fake_time();
  const auto context = make();
  context->seal();
  const auto sealed = context->resolver().ensure_cached(kernel(*context));
  EXPECT_EQ(sealed.status().code(), StatusCode::sealed);
  EXPECT_EQ(time, Milliseconds(0));
  seen->go_on = true;
  expect_exit(builder);
}

TEST_F(SharedBuilds, SealingEndsAWait) {
  const pid_t builder = start_builder();
  Context* waiting = nullptr;
  use_fake_time([&] { waiting->seal(); });
  const auto context = make();
  waiting = context.get();
  const auto sealed = context->resolver().ensure_cached(kernel(*context));
  EXPECT_EQ(sealed.status().code(), StatusCode::sealed);
  EXPECT_EQ(time, Milliseconds(1));
  seen->go_on = true;
  expect_exit(builder);
}

}  // namespace
}  // namespace gemvjit::test
