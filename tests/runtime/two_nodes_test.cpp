// B02, B14: two nodes that share a cache folder and no locks: mount namespaces, each with a folder for locks of its own
// at one and the same path. (A network file system needs a kernel that has a client for one; that is not asked here.)
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/runtime/runtime_fixture.h"
#include "tests/support/private_mounts.h"
#include "tests/support/processes.h"

namespace gemvjit::test {
namespace {

struct Seen {
  std::atomic<int> missed{0}, compiles{0};
  std::atomic<int> unchanged{0};  // publications that found the same code there
  std::atomic<int> alarms{0}, damaged{0}, failed_puts{0};
};

class TwoNodes : public RuntimeTest {
 protected:
  TwoNodes() {
    options.device = device_none;
    options.runtime_dir = dir.path("run");
    EXPECT_EQ(::mkdir(options.runtime_dir.c_str(), 0700), 0);
  }

  // One process of a node: asks for the kernel, compiles until all `processes` have looked for it in vain.
  int one_process(int processes) {
    bool asked = false;
    compilers.supports = [&](const Arch&) {
      if (!asked) ++seen->missed;
      asked = true;
      return true;
    };
    compilers.while_compiling = [&] {
      ++seen->compiles;
      // The other node has looked for the last time, too, once it compiles.
      wait_until([&] { return seen->missed == processes && seen->compiles == 2; });
    };
    const auto context = make();
    const auto candidates = item(*context, on(nvfp4(1024, 1024, 1), "sm_90a")).candidates;
    const auto built = context->resolver().ensure_cached(candidates);
    const std::string expected = "cubin of " + candidates.front().text();
    const StoreStats stats = context->store().stats();
    seen->unchanged += static_cast<int>(stats.puts_unchanged);
    seen->alarms += static_cast<int>(stats.determinism_alarms);
    seen->damaged += static_cast<int>(stats.damaged);
    seen->failed_puts += static_cast<int>(stats.put_failures);
    const bool right = built && built->kept && built->entry->cubin.bytes == Bytes(expected.begin(), expected.end());
    return right && logged("warning: ") == 0 ? 0 : 1;
  }

  // `each` processes on two nodes; false, with the reason, where this machine does not allow that.
  bool run_nodes(int each, std::string& why_not) {
    std::vector<pid_t> nodes;
    for (int node = 0; node < 2; ++node) {
      nodes.push_back(start_process([&] {
        std::string problem = enter_private_mounts();
        if (problem.empty()) problem = mount_tmpfs(options.runtime_dir, "size=1m,mode=0700");
        if (!problem.empty()) return exit_cannot;
        std::vector<pid_t> children;
        for (int i = 0; i < each; ++i) children.push_back(start_process([&] { return one_process(2 * each); }));
        int result = 0;
        for (const pid_t child : children) {
          int status = 0;
          ::waitpid(child, &status, 0);
          if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) result = 1;
        }
        return result;
      }));
    }
    bool allowed = true;
    for (const pid_t node : nodes) {
      int status = 0;
      EXPECT_EQ(::waitpid(node, &status, 0), node);
      EXPECT_TRUE(WIFEXITED(status));
      if (WEXITSTATUS(status) == exit_cannot) {
        allowed = false;
      } else {
        EXPECT_EQ(WEXITSTATUS(status), 0);
      }
    }
    why_not = "no private mounts for this user here";
    return allowed;
  }

  void expect_right_cache() {
    const auto listed = make_dir_store(options.cache_dir, Log::silent())->list();
    ASSERT_TRUE(listed);
    ASSERT_EQ(listed->size(), 1u);
    EXPECT_TRUE(listed->front().entry);
    EXPECT_EQ(seen->alarms, 0);
    EXPECT_EQ(seen->damaged, 0);
    EXPECT_EQ(seen->failed_puts, 0);
  }

  Shared<Seen> seen;
};

TEST_F(TwoNodes, BothBuildAndTheSecondPublicationIsAVerifiedNoOp) {
  std::string why_not;
  if (!run_nodes(1, why_not)) GTEST_SKIP() << why_not;
  EXPECT_EQ(seen->compiles, 2);
  EXPECT_EQ(seen->unchanged, 1);
  expect_right_cache();
}

// At worst one compile a node, whatever the number of processes.
TEST_F(TwoNodes, FourProcessesEachCompileOnceANode) {
  std::string why_not;
  if (!run_nodes(4, why_not)) GTEST_SKIP() << why_not;
  EXPECT_EQ(seen->compiles, 2);
  EXPECT_EQ(seen->unchanged, 1);
  expect_right_cache();
}

}  // namespace
}  // namespace gemvjit::test
