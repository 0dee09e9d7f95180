// Processes that need one kernel at one time: one builds it, the others wait no longer than it makes progress. A
// compile counts itself in memory that all processes share, and ends when the processes of the test are where they
// should be, so that nothing depends on who is quick.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

#include "src/base/files.h"
#include "tests/runtime/runtime_fixture.h"
#include "tests/support/processes.h"

namespace gemvjit::test {
namespace {

struct Seen {
  std::atomic<int> ready{0};     // processes at a barrier, of all rounds
  std::atomic<int> missed{0};    // that looked into the cache and are about to build
  std::atomic<int> waiting{0};   // that wait for another
  std::atomic<int> compiles{0};  // begun
  std::atomic<int> shared{0};    // failures that were taken from another
  std::atomic<bool> go_on{false};
};

class SharedBuilds : public RuntimeTest {
 protected:
  SharedBuilds() {
    options.device = device_none;
    compilers.while_compiling = [this] { ++seen->compiles; };
    timing.poll = Milliseconds(1);
  }

  // A context that polls quickly by the real clock, or goes by `timing`.
  std::unique_ptr<Context> make_here() {
    Dependencies parts = dependencies();
    parts.lock_timing = timing;
    Result<std::unique_ptr<Context>> context = Context::create(options, std::move(parts));
    EXPECT_TRUE(context) << context.status().text();
    return context ? std::move(context).value() : nullptr;
  }

  // Waiters go by a clock that only their waiting moves.
  void use_fake_time(std::function<void()> while_asleep = [] {}) {
    timing.now = [this] { return time; };
    timing.sleep = [this, while_asleep = std::move(while_asleep)](Milliseconds duration) {
      time += duration;
      while_asleep();
    };
  }

  // For a child: count it once as a waiter.
  void count_waiting() {
    timing.sleep = [this, counted = false](Milliseconds duration) mutable {
      if (!counted) ++seen->waiting;
      counted = true;
      std::this_thread::sleep_for(duration);
    };
  }

  static std::vector<KernelKey> kernel(const Context& context, std::int64_t n = 1024) {
    return item(context, on(nvfp4(n, 1024, 1), "sm_90a")).candidates;
  }

  static bool is_right(const Result<Delivered>& delivered, const std::vector<KernelKey>& candidates) {
    const std::string expected = "cubin of " + candidates.front().text();
    return delivered && delivered->entry->cubin.bytes == Bytes(expected.begin(), expected.end());
  }

  // A process that begins to build the kernel, and goes on once `seen->go_on` is set.
  pid_t start_builder() {
    const int before = seen->compiles;
    const pid_t child = start_process([this] {
      compilers.while_compiling = [this] {
        ++seen->compiles;
        wait_until([this] { return seen->go_on.load(); });
      };
      const auto context = make_here();
      return is_right(context->resolver().ensure_cached(kernel(*context)), kernel(*context)) ? 0 : 1;
    });
    EXPECT_TRUE(wait_until([&] { return seen->compiles > before; }));
    return child;
  }

  static std::vector<std::string> names_in(const std::string& folder) {
    auto names = list_directory(folder);
    EXPECT_TRUE(names) << names.status().text();
    return names ? std::move(names).value() : std::vector<std::string>{"?"};
  }

  std::size_t entries() {
    const auto listed = make_dir_store(options.cache_dir, Log::silent())->list();
    std::size_t whole = 0;
    for (const ListedEntry& entry : *listed) whole += entry.entry.has_value() ? 1 : 0;
    EXPECT_EQ(whole, listed->size());
    return whole;
  }

  Shared<Seen> seen;
  LockTiming timing;
  Milliseconds time{0};
};

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
      const auto context = make_here();
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
    const auto context = make_here();
    const auto built = context->resolver().ensure_cached(kernel(*context));
    seen->shared += static_cast<int>(context->counters().build_shared_failures);
    const std::string expected = kernel(*context).front().text() + ": error: no such thing";
    return !built && built.status().code() == StatusCode::compile_failed && built.status().message() == expected ? 0
                                                                                                                 : 1;
  });
  EXPECT_EQ(seen->compiles, 1);
  EXPECT_EQ(seen->shared, processes - 1);
  const auto context = make_here();
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
    const auto context = make_here();
    return context->resolver().ensure_cached(kernel(*context)).is_ok() == (i == 1) ? 0 : 1;
  });
  EXPECT_EQ(seen->compiles, 2);
  EXPECT_EQ(entries(), 1u);
}

// A cached kernel that the driver refuses is built again by one process; the others take what that one published.
TEST_F(SharedBuilds, ARefusedKernelIsBuiltAgainOnce) {
  options.device = 0;
  compilers.text = "refused ";
  ASSERT_TRUE(make_here()->resolver().ensure_cached(kernel(*make_here())));
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
    const auto context = make_here();
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
  const auto context = make_here();
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
  const auto context = make_here();
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
  const auto later = make_here();
  const auto found = later->resolver().ensure_cached(kernel(*later));
  EXPECT_TRUE(is_right(found, kernel(*later)));
  EXPECT_FALSE(found->compiled);
}

TEST_F(SharedBuilds, ASealedContextDoesNotWait) {
  const pid_t builder = start_builder();
  use_fake_time();
  const auto context = make_here();
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
  const auto context = make_here();
  waiting = context.get();
  const auto sealed = context->resolver().ensure_cached(kernel(*context));
  EXPECT_EQ(sealed.status().code(), StatusCode::sealed);
  EXPECT_EQ(time, Milliseconds(1));
  seen->go_on = true;
  expect_exit(builder);
}

// Where the locks lie: in the runtime folder if there is a good one, and then not on the cache's file system.
TEST_F(SharedBuilds, TheLocksAreOffTheCachesFileSystemWherePossible) {
  options.runtime_dir = dir.path("run");
  for (const mode_t mode : {0700, 0777}) {
    ASSERT_TRUE(::mkdir(options.runtime_dir.c_str(), 0700) == 0 || errno == EEXIST);
    ASSERT_EQ(::chmod(options.runtime_dir.c_str(), mode), 0);
    options.cache_dir = dir.path("cache" + std::to_string(mode));
    const std::string folder = mode == 0700 ? options.runtime_dir + "/gemvjit" : options.cache_dir + "/locks";
    compilers.while_compiling = [&] { EXPECT_EQ(names_in(folder).size(), 1u) << folder; };
    const auto context = make_here();
    EXPECT_TRUE(is_right(context->resolver().ensure_cached(kernel(*context)), kernel(*context)));
    EXPECT_TRUE(names_in(folder).empty());
    EXPECT_EQ(::access((options.cache_dir + "/locks").c_str(), F_OK) == 0, mode == 0777);
  }
}

TEST_F(SharedBuilds, ALocksNameIsThatOfTheCacheAndTheEntry) {
  ASSERT_TRUE(make_directories(dir.path("a")));
  ASSERT_TRUE(make_directories(dir.path("b")));
  EntryId id;
  EntryId other;
  other.digest.fill(1);
  const std::string name = lock_file_name(dir.path("a"), id);
  EXPECT_EQ(name, lock_file_name(dir.path("b/../a/"), id));
  EXPECT_NE(name, lock_file_name(dir.path("b"), id));
  EXPECT_NE(name, lock_file_name(dir.path("a"), other));
  EXPECT_EQ(name.size(), 37u);
}

// No folder for locks: everything works.
TEST_F(SharedBuilds, WithoutAFolderForLocksEveryProcessBuilds) {
  const std::string locks = options.cache_dir + "/locks";
  const auto still_builds = [&](std::int64_t n) {
    const auto context = make_here();
    const auto built = context->resolver().ensure_cached(kernel(*context, n));
    EXPECT_TRUE(is_right(built, kernel(*context, n)));
    EXPECT_TRUE(built->compiled);
    EXPECT_TRUE(built->kept) << built->kept.text();
    EXPECT_EQ(logged("warning: "), 0u);
  };
  dir.write("cache/locks", "a file where the folder should be");
  still_builds(64);
  ASSERT_TRUE(remove_file(locks));
  ASSERT_EQ(::mkdir(locks.c_str(), 0700), 0);
  ASSERT_EQ(::chmod(locks.c_str(), 0777), 0);
  still_builds(128);
  EXPECT_TRUE(names_in(locks).empty()) << "a folder that others may write to is not used";
  ASSERT_EQ(::chmod(locks.c_str(), 0700), 0);
  if (::geteuid() ==
      0) {  // who is not root cannot give a folder away: process_lock_test asks for another owner instead
    ASSERT_EQ(::chown(locks.c_str(), 65534, 65534), 0);
    compilers.while_compiling = [&] { EXPECT_TRUE(names_in(locks).empty()); };
    still_builds(192);
  }
}

// A cache that cannot be written to: what one process built is not there for the others, which then do not take turns.
TEST_F(SharedBuilds, AReadOnlyCacheStillDelivers) {
  ASSERT_TRUE(make_directories(options.cache_dir));
  ASSERT_EQ(::chmod(dir.path().c_str(), 0755), 0);
  ASSERT_EQ(::chmod(options.cache_dir.c_str(), 0555), 0);
  options.runtime_dir = dir.path("run");
  ASSERT_EQ(::mkdir(options.runtime_dir.c_str(), 0700), 0);
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(options.runtime_dir.c_str(), 65534, 65534), 0);
  }
  const auto build = [&](int) {
    if (::geteuid() == 0 && ::setuid(65534) != 0) return 2;  // root may write anywhere
    const auto context = make_here();
    const auto built = context->resolver().ensure_cached(kernel(*context));
    if (!is_right(built, kernel(*context)) || built->kept) return 1;
    return context->counters().build_stale_waits == 0 ? 0 : 3;
  };
  run_processes(4, build);
  options.runtime_dir.clear();  // and neither can there be locks
  run_processes(2, build);
  EXPECT_EQ(seen->compiles, 6);
}

// B14: two nodes that share the cache and not the locks: both compile, both publish, and the cache is right.
TEST_F(SharedBuilds, TwoNodesThatDoNotShareLocksBothBuild) {
  run_processes(2, [&](int i) {
    options.runtime_dir = dir.path("node" + std::to_string(i));
    if (::mkdir(options.runtime_dir.c_str(), 0700) != 0) return 2;
    compilers.while_compiling = [&] {
      ++seen->compiles;
      wait_until([&] { return seen->compiles == 2; });
    };
    const auto context = make_here();
    const auto built = context->resolver().ensure_cached(kernel(*context));
    return is_right(built, kernel(*context)) && built->compiled && built->kept ? 0 : 1;
  });
  EXPECT_EQ(seen->compiles, 2);
  EXPECT_EQ(entries(), 1u);
  compilers.missing = true;
  const auto context = make_here();
  EXPECT_TRUE(is_right(context->resolver().ensure_cached(kernel(*context)), kernel(*context)));
}

// B13: a lock file that another host left on a shared file system, whoever may have it locked, is no obstacle for
// longer than the stale limit. Its lock is taken here by hand, since no second host is at hand.
TEST_F(SharedBuilds, ALockThatNobodyAnswersForIsPassedOver) {
  use_fake_time();
  const auto context = make_here();
  const auto recipe = specialize(kernel(*context).front());
  const auto folder = choose_lock_folder("", options.cache_dir, ::geteuid());
  ASSERT_TRUE(folder) << folder.status().text();
  LockTiming silent;
  silent.heartbeat = Milliseconds(0);
  const Turn other = acquire_lock(*folder, lock_file_name(options.cache_dir, recipe->id()), silent, {});
  ASSERT_EQ(other.kind, Turn::Kind::held);
  EXPECT_TRUE(is_right(context->resolver().ensure_cached(kernel(*context)), kernel(*context)));
  EXPECT_EQ(time, Milliseconds(10'000));
}

}  // namespace
}  // namespace gemvjit::test
