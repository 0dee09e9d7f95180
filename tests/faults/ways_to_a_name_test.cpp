// File systems without renameat2 (NFS), and those that have no links either (FAT, some of FUSE): a name that is taken
// stays taken, a free one is got, and nothing is left behind.
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

using test::FaultScenario;
using testing::ElementsAre;

constexpr const char* no_renameat2 = "renameat2";
constexpr const char* nor_links = "renameat2,link,linkat";

class WaysToAName : public testing::Test {
 protected:
  void TearDown() override {
    fault_shim_disarm();
    fault_shim_never("", 0);
  }
  void arm(const char* missing, int error, long at = 0, int at_error = 0) {
    fault_shim_never(missing, error);
    fault_shim_arm(dir_.path().c_str(), at, at == 0 ? fault_none : fault_error, at_error, 0);
  }
  // The calls on names, after the temporary was closed.
  static std::vector<std::string> calls_on_names() {
    std::vector<std::string> calls;
    for (int i = 0; const char* call = fault_shim_trace(i); ++i) {
      const std::string name = call;
      if (name == "close" && !calls.empty()) break;  // of the folder
      if (name.starts_with("rename") || name.starts_with("link") || name.starts_with("unlink") ||
          name.starts_with("fstatat")) {
        calls.push_back(name.starts_with("fstatat") ? "fstatat" : name);
      }
      if (name.starts_with("fsync") && !calls.empty()) break;  // of the folder
    }
    return calls;
  }
  Result<Published> publish() { return publish_file(dir_.path("d"), "f", "mine", 4, {.replace = false, .mode = 0600}); }

  test::TempDir dir_;
};

TEST_F(WaysToAName, ATakenNameStaysAndAFreeOneIsGot) {
  struct Case {
    const char* missing;
    bool taken;
    std::vector<std::string> calls;
  };
  const Case cases[] = {
      {no_renameat2, false, {"renameat2", "linkat", "unlinkat"}},
      {no_renameat2, true, {"renameat2", "linkat", "fstatat", "unlinkat"}},
      {nor_links, false, {"renameat2", "linkat", "fstatat", "renameat"}},
      {nor_links, true, {"renameat2", "linkat", "fstatat", "unlinkat"}},
  };
  for (const Case& one : cases) {
    for (const int error : {ENOSYS, EPERM, EOPNOTSUPP}) {
      SCOPED_TRACE(testing::Message() << one.missing << (one.taken ? ", taken, " : ", free, ") << error);
      std::filesystem::remove_all(dir_.path("d"));
      ASSERT_TRUE(make_directories(dir_.path("d")));
      if (one.taken) dir_.write("d/f", "first");
      arm(one.missing, error);
      const auto published = publish();
      fault_shim_disarm();
      ASSERT_TRUE(published) << published.status().text();
      EXPECT_EQ(*published, one.taken ? Published::already_there : Published::whole);
      EXPECT_EQ(calls_on_names(), one.calls);
      EXPECT_EQ(test::read_text(dir_.path("d/f")), one.taken ? "first" : "mine");
      EXPECT_THAT(*list_directory(dir_.path("d")), ElementsAre("f"));
    }
  }
}

// The look before the plain rename, and the rename, may fail like any other call: nothing is published then.
TEST_F(WaysToAName, ALookThatFailsReplacesNothing) {
  for (const bool taken : {false, true}) {
    for (const int error : {EIO, ESTALE, EACCES}) {
      std::filesystem::remove_all(dir_.path("d"));
      ASSERT_TRUE(make_directories(dir_.path("d")));
      if (taken) dir_.write("d/f", "first");
      bool looked = false;
      for (long at = 1; at < 40 && !looked; ++at) {
        if (!taken) (void)remove_file(dir_.path("d/f"));
        arm(nor_links, ENOSYS, at, error);
        const auto published = publish();
        fault_shim_disarm();
        looked = std::string_view(fault_shim_hit()).starts_with("fstatat");
        if (looked) {
          EXPECT_FALSE(published);
        }
      }
      ASSERT_TRUE(looked);
      EXPECT_EQ(std::filesystem::exists(dir_.path("d/f")), taken);
      if (taken) {
        EXPECT_EQ(test::read_text(dir_.path("d/f")), "first");
      }
    }
  }
}

// Every put of a store, on such a file system: what is whole is not replaced unless asked for, and damage heals.
TEST_F(WaysToAName, StoresKeepTheirRulesOnSuchFileSystems) {
  int puts = 0;
  for (const FaultScenario& scenario : test::fault_scenarios()) {
    if (!scenario.is_put) continue;
    for (const char* missing : {no_renameat2, nor_links}) {
      for (const int error : {ENOSYS, EPERM, EOPNOTSUPP}) {
        SCOPED_TRACE(testing::Message() << scenario.name << ", " << missing << ", " << error);
        const std::string root = dir_.path("c");
        scenario.prepare(root);
        const auto store = make_dir_store(root, Log::silent());
        arm(missing, error);
        const Status kept = store->put(scenario.entry, scenario.replace);
        fault_shim_disarm();
        EXPECT_TRUE(kept) << kept.text();
        EXPECT_EQ(test::usable_content(root), scenario.after);
        test::expect_no_third_state(root, false);
        std::filesystem::remove_all(root);
        ++puts;
      }
    }
  }
  EXPECT_EQ(puts, 8 * 2 * 3);
}

// The folders of a shared cache get their names by the same calls.
TEST_F(WaysToAName, FoldersOfASharedCacheAreMadeThere) {
  for (const int error : {ENOSYS, EPERM, EOPNOTSUPP}) {
    const std::string root = dir_.path("c");
    DirStoreOptions options;
    options.trust = CacheTrust::shared;
    arm(nor_links, error);
    const Status kept = make_dir_store(root, Log::silent(), options)->put(test::fault_entry(64, 1));
    fault_shim_disarm();
    EXPECT_TRUE(kept) << kept.text();
    EXPECT_EQ(test::usable_content(root), 1);
    EXPECT_EQ(list_directory(root)->size(), 1u) << "no folder under another name is left";
    std::filesystem::remove_all(root);
  }
}

}  // namespace
}  // namespace gemvjit
