// Every system call of get and put fails once, or from then on, with every errno that disks and networks give: get is a
// hit or a miss, put succeeds or fails, the caller keeps his bytes, and a later put heals. B16, B17, B22, B32, B37.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
using testing::HasSubstr;
using testing::SizeIs;

constexpr long too_many_calls = 200;
constexpr int errnos[] = {ESTALE, ENOENT, EBUSY,  EIO,    EACCES, EROFS,  ENOSPC,
                          EDQUOT, ENOMEM, EEXIST, EINVAL, EPERM,  ENOSYS, EINTR};

struct Fault {
  FaultKind kind;
  int error = 0;
  bool lasting = false;
};

struct Outcome {
  long calls = 0;
  bool hit = false;
  std::vector<std::string> warnings;
};

class Faults : public testing::Test {
 protected:
  // One operation with one fault; everything that must hold during it.
  Outcome run(const FaultScenario& scenario, const std::string& root, const Fault& fault, long at) {
    Outcome outcome;
    const auto store = make_dir_store(root, Log::create(LogLevel::warning, [&](LogLevel, std::string_view text) {
                                        outcome.warnings.emplace_back(text);
                                      }));
    const Bytes callers = encode_entry(scenario.entry);
    fault_shim_arm(root.c_str(), at, fault.kind, fault.error, fault.lasting);
    if (scenario.is_put) {
      const Status status = store->put(scenario.entry, scenario.replace);
      outcome.calls = fault_shim_disarm();
      EXPECT_EQ(encode_entry(scenario.entry), callers);
      const StoreStats stats = store->stats();
      EXPECT_EQ(stats.puts, status ? 1u : 0u);
      EXPECT_EQ(stats.put_failures, status ? 0u : 1u);
      if (!status) {
        EXPECT_FALSE(status.message().empty());
      }
    } else {
      const auto found = store->get(scenario.entry.id);
      outcome.calls = fault_shim_disarm();
      if (found) {
        EXPECT_EQ(found->cubin.bytes, fault_entry(64, scenario.before).cubin.bytes);
      }
      if (found) {
        EXPECT_NE(scenario.before, 0);
      }
      const StoreStats stats = store->stats();
      EXPECT_EQ(stats.hits + stats.misses, 1u);
      EXPECT_EQ(stats.hits, found ? 1u : 0u);
      EXPECT_LE(outcome.warnings.size(), 1u);
      EXPECT_EQ(outcome.warnings.size(), stats.damaged);
    }
    EXPECT_LE(outcome.warnings.size(), 2u) << "one for what was found, one for what could not be kept";
    outcome.hit = *fault_shim_hit() != '\0';
    return outcome;
  }

  void expect_sound_and_healing(const FaultScenario& scenario, const std::string& root) {
    test::expect_no_third_state(root, true);
    const std::uint8_t content = test::usable_content(root);
    EXPECT_TRUE(content == scenario.before || content == scenario.after) << int{content};
    DirStoreOptions options;
    options.stale_after_seconds = -1;
    EXPECT_TRUE(make_dir_store(root, Log::silent(), options)->put(fault_entry(64, 5), Replace::any));
    EXPECT_EQ(test::usable_content(root), 5);
    test::expect_no_third_state(root, false);
  }

  // The fault at every call of every scenario; how many there were.
  long try_everywhere(const Fault& fault) {
    long tried = 0;
    for (const FaultScenario& scenario : test::fault_scenarios()) {
      bool reached = true;
      for (long at = 1; reached; ++at) {
        SCOPED_TRACE(testing::Message() << scenario.name << ", call " << at << ", kind " << fault.kind << ", errno "
                                        << fault.error << (fault.lasting ? ", lasting" : ""));
        EXPECT_LT(at, too_many_calls);
        const std::string root = dir_.path("c");
        scenario.prepare(root);
        reached = run(scenario, root, fault, at).hit;
        if (reached) ++tried;
        if (reached) expect_sound_and_healing(scenario, root);
        std::filesystem::remove_all(root);
        if (HasFailure()) return tried;
      }
    }
    std::printf("%ld faults of kind %d, errno %d%s\n", tried, fault.kind, fault.error,
                fault.lasting ? ", lasting" : "");
    return tried;
  }

  TempDir dir_;
};

TEST_F(Faults, EveryErrnoOnceAtEveryCall) {
  for (const int error : errnos) {
    ASSERT_GT(try_everywhere({fault_error, error}), 100);
  }
}

TEST_F(Faults, EveryErrnoFromThereOn) {
  for (const int error : {ESTALE, EIO, EACCES, EROFS, ENOSPC, EDQUOT, ENOMEM}) {
    ASSERT_GT(try_everywhere({fault_error, error, true}), 100);
  }
}

// B16: the call was made, and the answer that came is that of a network file system which lost the first one.
TEST_F(Faults, AnswersThatWereLost) {
  for (const int error : {ENOENT, ESTALE, EEXIST}) ASSERT_GT(try_everywhere({fault_lost_reply, error}), 100);
}

TEST_F(Faults, ShortReadsAndWritesAndEarlyEnds) {
  for (const FaultKind kind : {fault_short, fault_end}) ASSERT_GT(try_everywhere({kind}), 100);
}

const FaultScenario& scenario_of(const std::string& name) {
  for (const FaultScenario& scenario : test::fault_scenarios()) {
    if (scenario.name == name) return scenario;
  }
  std::abort();
}

// B17: one empty or short look at a whole file costs nothing: it is opened again.
TEST_F(Faults, AnEmptyLookAtAWholeFileIsStillAHit) {
  const FaultScenario& get = scenario_of("get");
  for (const Fault& fault : {Fault{fault_end}, Fault{fault_error, ESTALE}, Fault{fault_error, EIO}}) {
    const std::string root = dir_.path("c");
    get.prepare(root);
    std::string called;
    for (long at = 1; at <= 11; ++at) {  // the root, three folders below it, the file
      const Outcome outcome = run(get, root, fault, at);
      EXPECT_TRUE(outcome.hit);
      EXPECT_THAT(outcome.warnings, SizeIs(0)) << "call " << at;
      called += std::string(fault_shim_hit()) + " ";
    }
    EXPECT_EQ(called, "openat fstat openat close openat close openat close openat fstat read ");
    EXPECT_EQ(test::usable_content(root), 1);
    std::filesystem::remove_all(root);
  }
}

// An entry that can only not be read is a miss, and stays where it is: it may be whole.
TEST_F(Faults, WhatCannotBeReadIsNotQuarantined) {
  const FaultScenario& get = scenario_of("get");
  for (const int error : {ESTALE, EBUSY, EIO, EACCES, ENOMEM}) {
    for (const long at : {1, 2, 3, 5, 7, 9, 10, 11}) {  // those of the test above but close
      SCOPED_TRACE(testing::Message() << error << " at " << at);
      const std::string root = dir_.path("c");
      get.prepare(root);
      const Outcome outcome = run(get, root, {fault_error, error, true}, at);
      EXPECT_THAT(outcome.warnings, SizeIs(1));
      EXPECT_FALSE(std::filesystem::exists(quarantine_directory(root)));
      EXPECT_EQ(test::usable_content(root), 1) << "once it can be read again";
      std::filesystem::remove_all(root);
    }
  }
}

// B32, B37: a cache that cannot be written at all says so once, names the way out, and serves what it has.
TEST_F(Faults, ACacheThatCannotBeWrittenSaysSoOnce) {
  for (const int error : {EROFS, EACCES, ENOSPC, EDQUOT}) {
    const std::string root = dir_.path("c");
    std::vector<std::string> warnings;
    const auto store = make_dir_store(
        root, Log::create(LogLevel::warning, [&](LogLevel, std::string_view text) { warnings.emplace_back(text); }));
    ASSERT_TRUE(store->put(fault_entry(64, 1)));
    for (std::int64_t n = 72; n < 104; n += 8) {
      bool mkdir_failed = false;
      for (long at = 1; at < 20 && !mkdir_failed; ++at) {
        fault_shim_arm(root.c_str(), at, fault_error, error, 1);
        const Status status = store->put(fault_entry(n, 1));
        fault_shim_disarm();
        mkdir_failed = std::string_view(fault_shim_hit()) == "mkdirat" && !status;
        std::filesystem::remove_all(entry_directory(root, fault_entry(n, 1).id));
      }
      EXPECT_TRUE(mkdir_failed);
    }
    int said = 0;
    for (const std::string& warning : warnings) {
      if (warning.find("not kept") == std::string::npos) continue;
      ++said;
      EXPECT_THAT(warning, HasSubstr("GEMVJIT_CACHE_DIR"));
    }
    EXPECT_EQ(said, 1);
    EXPECT_TRUE(store->get(fault_entry(64, 1).id));
    EXPECT_TRUE(store->put(fault_entry(72, 1))) << "and it heals once there is room";
    std::filesystem::remove_all(root);
  }
}

// B04: random numbers that repeat themselves: the clash is seen, another name is taken.
TEST_F(Faults, ATemporaryNameThatIsTakenIsNotTakenAgain) {
  fault_shim_constant_random(1);
  const std::string taken = ".tmp-" + std::to_string(getpid()) + "-5a5a5a5a5a5a5a5a";
  dir_.write("d/" + taken, "another's");
  const std::string text = "mine";
  const Status status = publish_file(dir_.path("d"), "f", text.data(), text.size());
  fault_shim_constant_random(0);
  ASSERT_TRUE(status) << status.text();
  EXPECT_EQ(test::read_text(dir_.path("d/f")), "mine");
  EXPECT_EQ(test::read_text(dir_.path("d/" + taken)), "another's");
  EXPECT_THAT(*list_directory(dir_.path("d")), SizeIs(2));
}

}  // namespace
}  // namespace gemvjit
