// Where the locks of shared builds lie, and builds where no common lock can be had.
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/files.h"
#include "tests/runtime/shared_builds_fixture.h"

namespace gemvjit::test {
namespace {

using BuildLockFolders = SharedBuilds;

// Where the locks lie: in the runtime folder if there is a good one, and then not on the cache's file system.
TEST_F(BuildLockFolders, TheLocksAreOffTheCachesFileSystemWherePossible) {
  options.runtime_dir = dir.path("run");
  for (const mode_t mode : {0700, 0777}) {
    ASSERT_TRUE(::mkdir(options.runtime_dir.c_str(), 0700) == 0 || errno == EEXIST);
    ASSERT_EQ(::chmod(options.runtime_dir.c_str(), mode), 0);
    options.cache_dir = dir.path("cache" + std::to_string(mode));
    const std::string folder = mode == 0700 ? options.runtime_dir + "/gemvjit" : options.cache_dir + "/locks";
    compilers.while_compiling = [&] { EXPECT_EQ(names_in(folder).size(), 1u) << folder; };
    const auto context = make();
    EXPECT_TRUE(is_right(context->resolver().ensure_cached(kernel(*context)), kernel(*context)));
    EXPECT_TRUE(names_in(folder).empty());
    EXPECT_EQ(::access((options.cache_dir + "/locks").c_str(), F_OK) == 0, mode == 0777);
  }
}

TEST_F(BuildLockFolders, ALocksNameIsThatOfTheCacheAndTheEntry) {
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
TEST_F(BuildLockFolders, WithoutAFolderForLocksEveryProcessBuilds) {
  const std::string locks = options.cache_dir + "/locks";
  const auto still_builds = [&](std::int64_t n) {
    const auto context = make();
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
TEST_F(BuildLockFolders, AReadOnlyCacheStillDelivers) {
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
    const auto context = make();
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
TEST_F(BuildLockFolders, TwoNodesThatDoNotShareLocksBothBuild) {
  run_processes(2, [&](int i) {
    options.runtime_dir = dir.path("node" + std::to_string(i));
    if (::mkdir(options.runtime_dir.c_str(), 0700) != 0) return 2;
    compilers.while_compiling = [&] {
      ++seen->compiles;
      wait_until([&] { return seen->compiles == 2; });
    };
    const auto context = make();
    const auto built = context->resolver().ensure_cached(kernel(*context));
    return is_right(built, kernel(*context)) && built->compiled && built->kept ? 0 : 1;
  });
  EXPECT_EQ(seen->compiles, 2);
  EXPECT_EQ(entries(), 1u);
  compilers.missing = true;
  const auto context = make();
  EXPECT_TRUE(is_right(context->resolver().ensure_cached(kernel(*context)), kernel(*context)));
}

// B13: a lock file that another host left on a shared file system, whoever may have it locked, is no obstacle for
// longer than the stale limit. Its lock is taken here by hand, since no second host is at hand.
TEST_F(BuildLockFolders, ALockThatNobodyAnswersForIsPassedOver) {
  use_fake_time();
  const auto context = make();
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

// The group's folder holds a folder of locks for each user, since nobody else may write there.
TEST(SharedCacheLocks, EachUserHasAFolderOfHisOwn) {
  const TempDir dir;
  const std::string root = dir.path("cache");
  const auto folder = choose_lock_folder("", root, ::geteuid(), CacheTrust::shared);
  ASSERT_TRUE(folder) << folder.status().text();
  EXPECT_EQ(*folder, root + "/locks-" + std::to_string(::geteuid()));
  EXPECT_EQ(examine_lock_folder("", root, ::geteuid(), CacheTrust::shared).path, *folder);
  struct stat info {};
  ASSERT_EQ(::stat(folder->c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, mode_t{0700});
  ASSERT_EQ(::stat(root.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, mode_t{02770});
}

}  // namespace
}  // namespace gemvjit::test
