// A process is killed before and after every system call of a put or a get. Afterwards the cache holds what it held
// before or what it would hold after, never a third thing, and the next put leaves nothing behind. B05, B32.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "cache/layout.h"
#include "src/base/files.h"
#include "tests/faults/fault_shim.h"
#include "tests/faults/scenarios.h"
#include "tests/support/temp_dir.h"

namespace gemvjit {
namespace {

using test::fault_entry;
using test::FaultScenario;
using test::TempDir;

constexpr long too_many_calls = 200;

// True if the child was killed, false if it came to its end before call `at`.
bool killed_at(const FaultScenario& scenario, const std::string& root, long at, FaultKind kind) {
  const pid_t child = fork();
  if (child == 0) {
    const auto store = make_dir_store(root, Log::silent());
    fault_shim_arm(root.c_str(), at, kind, 0, 0);
    if (scenario.is_put) {
      (void)store->put(scenario.entry, scenario.replace);
    } else {
      (void)store->get(scenario.entry.id);
    }
    _exit(0);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  if (WIFSIGNALED(status)) {
    EXPECT_EQ(WTERMSIG(status), SIGKILL);
  }
  if (WIFEXITED(status)) {
    EXPECT_EQ(WEXITSTATUS(status), 0);
  }
  return WIFSIGNALED(status);
}

void expect_old_or_new(const FaultScenario& scenario, const std::string& root) {
  test::expect_no_third_state(root, true);
  const std::uint8_t content = test::usable_content(root);
  EXPECT_TRUE(content == scenario.before || content == scenario.after) << int{content};
  // The next writer sweeps (at any age here) and puts.
  DirStoreOptions options;
  options.stale_after_seconds = -1;
  EXPECT_TRUE(make_dir_store(root, Log::silent(), options)->put(fault_entry(64, 5), Replace::any));
  EXPECT_EQ(test::usable_content(root), 5);
  test::expect_no_third_state(root, false);
  EXPECT_EQ(list_directory(entry_directory(root, scenario.entry.id))->size(), 1u);
}

void kill_everywhere() {
  const TempDir dir;
  long points = 0;
  for (const FaultScenario& scenario : test::fault_scenarios()) {
    for (const FaultKind kind : {fault_kill_before, fault_kill_after}) {
      bool killed = true;
      for (long at = 1; killed; ++at) {
        SCOPED_TRACE(testing::Message() << scenario.name << ", call " << at
                                        << (kind == fault_kill_after ? " after" : ""));
        ASSERT_LT(at, too_many_calls);
        const std::string root = dir.path("c" + std::to_string(points));
        scenario.prepare(root);
        killed = killed_at(scenario, root, at, kind);
        expect_old_or_new(scenario, root);
        if (killed) ++points;
        std::filesystem::remove_all(root);
        if (testing::Test::HasFailure()) return;
      }
    }
  }
  std::printf("%ld crash points\n", points);
  EXPECT_GT(points, 150) << "the shim was not between the store and libc";
}

TEST(CrashPoints, KilledBeforeAndAfterEveryCall) { kill_everywhere(); }

// The same on a file system that can neither rename without replacing nor link: the last way to a name.
TEST(CrashPoints, KilledBeforeAndAfterEveryCallWithoutRenameat2AndLinks) {
  fault_shim_never("renameat2,link,linkat", ENOSYS);
  kill_everywhere();
  fault_shim_never("", 0);
}

// The same by LD_PRELOAD on a program of its own, which knows nothing of the shim.
TEST(CrashPoints, AProgramUnderLdPreloadIsKilled) {
  const TempDir dir;
  int killed = 0;
  for (int at = 1; at < too_many_calls; ++at) {
    SCOPED_TRACE(at);
    const std::string root = dir.path(std::to_string(at));
    const std::string run = std::string(CACHE_ACTOR) + " " + root + " put 64 1 >/dev/null 2>&1";
    const std::string environment = "GEMVJIT_FAULT_FOLDER=" + root + " GEMVJIT_FAULT_AT=" + std::to_string(at) +
                                    " GEMVJIT_FAULT_KIND=kill_" + (at % 2 == 0 ? "before" : "after") +
                                    " ASAN_OPTIONS=verify_asan_link_order=0 LD_PRELOAD=" + FAULT_SHIM + " ";
    const int status = std::system((environment + "exec " + run).c_str());
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) break;
    // The shell is replaced by the program, so its end is the program's.
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
    ++killed;
    const std::uint8_t content = test::usable_content(root);
    EXPECT_TRUE(content == 0 || content == 1);
    ASSERT_EQ(std::system(run.c_str()), 0);
    EXPECT_EQ(test::usable_content(root), 1);
    test::expect_no_third_state(root, false);
  }
  EXPECT_GT(killed, 10);
}

}  // namespace
}  // namespace gemvjit
