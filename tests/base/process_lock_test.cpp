// The lock between processes: who gets it, how long anybody waits, and what is told of how the work ended. Clocks are
// made up; a second holder in this process stands for one in another (the kernel's lock belongs to the open file, not
// to the process), and real processes are used where they are killed or stopped.
#include "src/base/process_lock.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <thread>
#include <vector>

#include "src/base/files.h"
#include "tests/support/processes.h"
#include "tests/support/temp_dir.h"

namespace gemvjit {
namespace {

using test::kill_process;
using test::run_processes;
using test::Shared;
using test::start_process;
using test::TempDir;
using test::wait_until;
using Kind = Turn::Kind;

// A clock that only sleeping moves, and what happens during each sleep.
struct FakeTime {
  Milliseconds time{0};
  std::function<void()> while_asleep = [] {};
  LockTiming timing() {
    LockTiming timing;
    timing.now = [this] { return time; };
    timing.sleep = [this](Milliseconds duration) {
      time += duration;
      while_asleep();
    };
    timing.heartbeat = Milliseconds(0);
    return timing;
  }
};

class ProcessLockTest : public ::testing::Test {
 protected:
  ProcessLockTest() : folder(private_folder(dir.path(), "locks", ::geteuid()).value()) {}

  Turn acquire(const LockWait& wait = {}) { return acquire_lock(folder, "a.lock", time.timing(), wait); }
  bool file_is_there() const { return ::access((folder + "/a.lock").c_str(), F_OK) == 0; }

  // A process that takes the lock, says so, and holds it until it is killed.
  pid_t start_holder() {
    *holding = 0;
    const pid_t child = start_process([this] {
      const Turn turn = acquire();
      *holding = turn.kind == Kind::held ? 1 : 2;
      for (;;) ::pause();
      return 0;
    });
    EXPECT_TRUE(wait_until([this] { return *holding != 0; }));
    EXPECT_EQ(*holding, 1);
    return child;
  }

  TempDir dir;
  std::string folder;
  FakeTime time;
  Shared<std::atomic<int>> holding;
};

TEST_F(ProcessLockTest, OneHoldsItAndItsFileGoesWithIt) {
  Turn first = acquire();
  ASSERT_EQ(first.kind, Kind::held);
  EXPECT_FALSE(first.waited);
  EXPECT_FALSE(first.holder_died);
  struct stat info {};
  ASSERT_EQ(::stat((folder + "/a.lock").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600u);
  const Turn other = acquire_lock(folder, "b.lock", time.timing(), {});
  EXPECT_EQ(other.kind, Kind::held) << "another name is another lock";
  first.lock->finish();
  EXPECT_FALSE(file_is_there());
  EXPECT_EQ(acquire().kind, Kind::held);
}

TEST_F(ProcessLockTest, AWaiterIsToldThatTheWorkIsDone) {
  Turn holder = acquire();
  int sleeps = 0;
  time.while_asleep = [&] {
    if (++sleeps == 3) holder.lock->finish();
  };
  const Turn waiter = acquire();
  EXPECT_EQ(waiter.kind, Kind::finished);
  EXPECT_TRUE(waiter.waited);
  EXPECT_EQ(waiter.holder_pid, ::getpid());
  EXPECT_EQ(time.time, Milliseconds(60));
  EXPECT_FALSE(file_is_there());
}

// B11: a failure reaches those that wait, and nobody else.
TEST_F(ProcessLockTest, AFailureIsSharedWithThoseThatWaitAndForgottenAfterwards) {
  Turn holder = acquire();
  time.while_asleep = [&] { holder.lock->fail({StatusCode::compile_failed, "line 3: no such thing"}, "Fake 1.0"); };
  const Turn waiter = acquire();
  ASSERT_EQ(waiter.kind, Kind::failed);
  EXPECT_EQ(waiter.failure.code(), StatusCode::compile_failed);
  EXPECT_EQ(waiter.failure.message(), "line 3: no such thing");
  EXPECT_EQ(waiter.maker, "Fake 1.0");
  const Turn later = acquire();
  EXPECT_EQ(later.kind, Kind::held);
  EXPECT_FALSE(later.holder_died);
}

TEST_F(ProcessLockTest, ALongMessageIsShortened) {
  Turn holder = acquire();
  time.while_asleep = [&] {
    holder.lock->fail({StatusCode::compile_failed, std::string(1'000'000, 'x')}, std::string(10'000, 'v'));
  };
  const Turn waiter = acquire();
  ASSERT_EQ(waiter.kind, Kind::failed);
  EXPECT_EQ(waiter.failure.message(), std::string(16 * 1024, 'x') + "\n[shortened]");
}

TEST_F(ProcessLockTest, ARecordThatIsDamagedIsNotBelieved) {
  for (const std::size_t flipped : {32u, 36u, 40u, 60u, 90u}) {
    SCOPED_TRACE(flipped);
    Turn holder = acquire();
    ASSERT_EQ(holder.kind, Kind::held);
    const int kept = ::open((folder + "/a.lock").c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_GE(kept, 0);
    time.while_asleep = [&] {
      if (!holder.lock) return;
      // Its name is taken away only by the end, so the waiter has the file open and reads what is damaged by then.
      holder.lock->fail({StatusCode::compile_failed, "line 3: no such thing"}, "Fake 1.0");
      holder.lock.reset();
      char byte = 0;
      ASSERT_EQ(::pread(kept, &byte, 1, static_cast<off_t>(flipped)), 1);
      byte = static_cast<char>(byte ^ 1);
      ASSERT_EQ(::pwrite(kept, &byte, 1, static_cast<off_t>(flipped)), 1);
    };
    const Turn waiter = acquire();
    EXPECT_EQ(waiter.kind, Kind::held);
    ::close(kept);
  }
}

TEST_F(ProcessLockTest, AHolderThatGivesUpPassesTheWorkOn) {
  Turn holder = acquire();
  time.while_asleep = [&] { holder.lock.reset(); };
  const Turn waiter = acquire();
  EXPECT_EQ(waiter.kind, Kind::held);
  EXPECT_TRUE(waiter.waited);
  EXPECT_TRUE(file_is_there());
}

// B08: no limit that a long compile meets, as long as the holder lives; a word of it every five seconds.
TEST_F(ProcessLockTest, AWaiterWaitsAsLongAsThereAreSignsOfLife) {
  Turn holder = acquire();
  Milliseconds last_beat{0};
  time.while_asleep = [&] {
    if (time.time >= Milliseconds(120'000)) return holder.lock->finish();
    if (time.time - last_beat >= Milliseconds(9'000)) {
      last_beat = time.time;
      holder.lock->beat();
    }
  };
  std::vector<std::int64_t> reports;
  LockWait wait;
  wait.report = [&](std::int64_t pid, Milliseconds waited) {
    EXPECT_EQ(pid, ::getpid());
    reports.push_back(waited.count());
  };
  EXPECT_EQ(acquire(wait).kind, Kind::finished);
  EXPECT_EQ(time.time, Milliseconds(120'000));
  ASSERT_EQ(reports.size(), 23u);
  EXPECT_EQ(reports[0], 5'000);
  EXPECT_EQ(reports[22], 115'000);
}

TEST_F(ProcessLockTest, AWaiterGoesOnWhenThereIsNoSignOfLifeAnyMore) {
  Turn holder = acquire();
  time.while_asleep = [&] {
    if (time.time == Milliseconds(4'000)) holder.lock->beat();
  };
  const Turn waiter = acquire();
  EXPECT_EQ(waiter.kind, Kind::stale);
  EXPECT_EQ(time.time, Milliseconds(14'000));
  EXPECT_TRUE(file_is_there()) << "it is still the holder's";
}

TEST_F(ProcessLockTest, NobodyWaitsForEver) {
  Turn holder = acquire();
  time.while_asleep = [&] { holder.lock->beat(); };
  EXPECT_EQ(acquire().kind, Kind::stale);
  EXPECT_EQ(time.time, Milliseconds(600'000));
}

TEST_F(ProcessLockTest, AWaitCanBeStopped) {
  Turn holder = acquire();
  LockWait wait;
  wait.stop = [&] { return time.time >= Milliseconds(100); };
  EXPECT_EQ(acquire(wait).kind, Kind::stopped);
  EXPECT_EQ(time.time, Milliseconds(100));
}

TEST_F(ProcessLockTest, AThreadGivesTheSignsOfLife) {
  LockTiming timing = time.timing();
  timing.heartbeat = Milliseconds(1);
  Turn holder = acquire_lock(folder, "a.lock", timing, {});
  ASSERT_EQ(holder.kind, Kind::held);
  const std::string before = test::read_text(folder + "/a.lock");
  std::string after = before;
  for (int i = 0; i < 5'000 && after == before; ++i) {
    std::this_thread::sleep_for(Milliseconds(1));
    after = test::read_text(folder + "/a.lock");
  }
  EXPECT_NE(after, before);
  EXPECT_EQ(after.substr(0, 24), before.substr(0, 24));
}

// B07: kill -9 releases the lock, at once, and says whose it was.
TEST_F(ProcessLockTest, AKilledHolderLeavesNoLockBehind) {
  const pid_t child = start_holder();
  time.while_asleep = [&, killed = false]() mutable {
    if (!killed) kill_process(child);
    killed = true;
  };
  const Turn waiter = acquire();
  ASSERT_EQ(waiter.kind, Kind::held);
  EXPECT_TRUE(waiter.holder_died);
  EXPECT_EQ(waiter.holder_pid, child);
  EXPECT_EQ(time.time, Milliseconds(20)) << "one look later";
}

TEST_F(ProcessLockTest, AFileThatAKilledHolderLeftIsTakenOverByWhoComesLater) {
  const pid_t child = start_holder();
  kill_process(child);
  ASSERT_TRUE(file_is_there());
  Turn later = acquire();
  ASSERT_EQ(later.kind, Kind::held);
  EXPECT_FALSE(later.waited);
  EXPECT_TRUE(later.holder_died);
  EXPECT_EQ(later.holder_pid, child);
  later.lock->finish();
  EXPECT_FALSE(file_is_there());
}

// B08, B13: a holder that is stopped (or was never of this machine) holds nobody up for longer than the stale limit.
TEST_F(ProcessLockTest, AStoppedHolderHoldsNobodyUp) {
  const pid_t child = start_holder();
  ASSERT_EQ(::kill(child, SIGSTOP), 0);
  const Turn waiter = acquire();
  EXPECT_EQ(waiter.kind, Kind::stale);
  EXPECT_EQ(waiter.holder_pid, child);
  EXPECT_EQ(time.time, Milliseconds(10'000));
  kill_process(child);
}

TEST_F(ProcessLockTest, RemovingTheFolderAtAnyTimeIsSafe) {
  Turn holder = acquire();
  ASSERT_TRUE(remove_file(folder + "/a.lock"));
  Turn second = acquire();
  EXPECT_EQ(second.kind, Kind::held) << "both work; locks are only a courtesy";
  holder.lock->finish();
  EXPECT_TRUE(file_is_there()) << "the second one's";
  second.lock->finish();
  ASSERT_EQ(::rmdir(folder.c_str()), 0);
  const Turn without = acquire();
  EXPECT_EQ(without.kind, Kind::unavailable);
  EXPECT_NE(without.failure.message().find(folder), std::string::npos);
}

TEST_F(ProcessLockTest, WhatIsNoFileIsNoLock) {
  ASSERT_EQ(::symlink("/etc/passwd", (folder + "/a.lock").c_str()), 0);
  EXPECT_EQ(acquire().kind, Kind::unavailable);
  ASSERT_TRUE(remove_file(folder + "/a.lock"));
  ASSERT_EQ(::mkfifo((folder + "/a.lock").c_str(), 0600), 0);
  EXPECT_EQ(acquire().kind, Kind::unavailable);
}

TEST_F(ProcessLockTest, AFileFullOfNonsenseIsTakenOver) {
  for (const std::string& nonsense : {std::string(1, '\0'), std::string(32, 'x'), std::string(200'000, '\xff')}) {
    std::ofstream(folder + "/a.lock", std::ios::binary) << nonsense;
    Turn turn = acquire();
    ASSERT_EQ(turn.kind, Kind::held);
    EXPECT_EQ(test::read_text(folder + "/a.lock").size(), 32u);
    turn.lock->finish();
  }
}

// Sixteen processes, each of which needs the work done: the lock, then a look whether it is done, else the work.
TEST_F(ProcessLockTest, SixteenProcessesDoTheWorkOnce) {
  struct Work {
    std::atomic<int> ready{0}, done{0}, times{0};
  };
  const Shared<Work> work;
  LockTiming timing;
  timing.poll = Milliseconds(1);
  run_processes(16, [&](int) {
    ++work->ready;
    if (!wait_until([&] { return work->ready == 16; })) return 2;
    const Turn turn = acquire_lock(folder, "a.lock", timing, {});
    if (turn.kind == Kind::held) {
      if (work->done == 0) {
        ++work->times;
        std::this_thread::yield();
        work->done = 1;
      }
      turn.lock->finish();
    }
    return (turn.kind == Kind::finished || turn.kind == Kind::held) && work->done == 1 ? 0 : 1;
  });
  EXPECT_EQ(work->times, 1);
  EXPECT_TRUE(list_directory(folder)->empty());
}

TEST(LockFolder, IsMadeAndMustBeOursAlone) {
  const TempDir dir;
  const auto made = private_folder(dir.path(), "locks", ::geteuid());
  ASSERT_TRUE(made) << made.status().text();
  struct stat info {};
  ASSERT_EQ(::stat(made->c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0700u);
  EXPECT_TRUE(private_folder(dir.path(), "locks", ::geteuid())) << "it may be there already";

  const auto not_ours = private_folder(dir.path(), "locks", ::geteuid() + 1);
  ASSERT_FALSE(not_ours);
  EXPECT_NE(not_ours.status().message().find("belongs to user"), std::string::npos);
  for (const mode_t open : {0750, 0701, 0720}) {
    ASSERT_EQ(::chmod(made->c_str(), open), 0);
    EXPECT_FALSE(private_folder(dir.path(), "locks", ::geteuid())) << open;
  }
  ASSERT_EQ(::chmod(made->c_str(), 0700), 0);
  ASSERT_EQ(::symlink(made->c_str(), dir.path("link").c_str()), 0);
  EXPECT_FALSE(private_folder(dir.path(), "link", ::geteuid())) << "a link may be another user's";
  dir.write("file", "");
  EXPECT_FALSE(private_folder(dir.path(), "file", ::geteuid()));
  EXPECT_FALSE(private_folder(dir.path("missing"), "locks", ::geteuid()));
}

TEST(LockFolder, ARuntimeFolderIsOursAndOnlyWeWriteToIt) {
  const TempDir dir;
  const std::string path = dir.path("run");
  ASSERT_EQ(::mkdir(path.c_str(), 0755), 0);
  EXPECT_TRUE(check_runtime_folder(path, ::geteuid()));
  EXPECT_FALSE(check_runtime_folder(path, ::geteuid() + 1));
  EXPECT_FALSE(check_runtime_folder("run", ::geteuid()));
  EXPECT_FALSE(check_runtime_folder(dir.path("missing"), ::geteuid()));
  ASSERT_EQ(::symlink(path.c_str(), dir.path("link").c_str()), 0);
  EXPECT_FALSE(check_runtime_folder(dir.path("link"), ::geteuid()));
  for (const mode_t open : {0775, 0757, 01777}) {
    ASSERT_EQ(::chmod(path.c_str(), open), 0);
    EXPECT_FALSE(check_runtime_folder(path, ::geteuid())) << open;
  }
}

}  // namespace
}  // namespace gemvjit
