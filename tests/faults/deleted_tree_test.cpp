// B19: the whole cache is deleted again and again while processes put and get. B37: a folder of somebody else's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "src/base/files.h"
#include "tests/faults/fault_shim.h"
#include "tests/faults/faults_support.h"
#include "tests/support/temp_dir.h"

namespace gemvjit {
namespace {

using test::fault_entry;
using test::TempDir;

pid_t start_churn(const std::string& root, const char* rounds, const char* most_failed) {
  const pid_t child = fork();
  if (child == 0) {
    execl(CACHE_ACTOR, CACHE_ACTOR, root.c_str(), "churn", rounds, most_failed, static_cast<char*>(nullptr));
    _exit(127);
  }
  return child;
}

// Without anybody who deletes, no put of processes that write the same entries fails.
TEST(DeletedTree, EightProcessesAloneHaveNoPutThatFails) {
  const TempDir dir;
  std::vector<pid_t> children;
  for (int i = 0; i < 8; ++i) children.push_back(start_churn(dir.path("cache"), "200", "0"));
  for (const pid_t child : children) {
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
}

TEST(DeletedTree, EightProcessesGoOnWhileTheCacheIsDeleted) {
  const TempDir dir;
  const std::string root = dir.path("cache");
  std::vector<pid_t> children;
  for (int i = 0; i < 8; ++i) {
    children.push_back(start_churn(root, "1500", "75"));  // a put tries four times: few have no luck
    ASSERT_GT(children.back(), 0);
  }
  int deletions = 0;
  std::size_t ended = 0;
  while (ended < children.size()) {
    std::error_code error;
    if (std::filesystem::remove_all(root, error) > 1) ++deletions;
    for (int status = 0; waitpid(-1, &status, WNOHANG) > 0; ++ended) {
      EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    }
    usleep(1000);  // or nothing is ever there to be deleted
  }
  EXPECT_GT(deletions, 10);
  const auto store = make_dir_store(root, Log::silent());
  EXPECT_TRUE(store->put(fault_entry(64, 1)));
  EXPECT_TRUE(store->get(fault_entry(64, 1).id));
}

TEST(ForeignFolder, NobodyInRootsFolderWarnsOnceAndGoesOn) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const TempDir dir;
  ASSERT_EQ(chmod(dir.path().c_str(), 0755), 0);  // it can be searched, not written
  const pid_t child = fork();
  if (child == 0) {
    if (setgid(65534) != 0 || setuid(65534) != 0) _exit(3);
    int warnings = 0;
    const auto store =
        make_dir_store(dir.path("cache"), Log::create(LogLevel::warning, [&](LogLevel, std::string_view text) {
                         warnings += text.find("GEMVJIT_CACHE_DIR") != std::string_view::npos ? 1 : 100;
                       }));
    for (std::int64_t n = 8; n <= 64; n += 8) {
      if (store->get(fault_entry(n, 1).id)) _exit(4);
      if (store->put(fault_entry(n, 1)).code() != StatusCode::cache_not_writable) _exit(5);
    }
    _exit(warnings == 1 && store->stats().put_failures == 8 ? 0 : 6);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace gemvjit
