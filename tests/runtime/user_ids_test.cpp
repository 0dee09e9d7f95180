// B37, B40: users as the kernel knows them, by real user ids. Needs root, who may become anybody.
#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "cache/bundle.h"
#include "tests/runtime/runtime_fixture.h"
#include "tests/support/processes.h"

namespace gemvjit::test {
namespace {

constexpr uid_t users[] = {65534, 65533};

bool become(uid_t user) { return ::setgroups(0, nullptr) == 0 && ::setgid(user) == 0 && ::setuid(user) == 0; }

class UserIds : public RuntimeTest {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root may become another user";
    ASSERT_EQ(::chmod(dir.path().c_str(), 0755), 0);
    options.device = device_none;
  }

  static std::vector<KernelKey> kernel(const Context& context, std::int64_t n) {
    return item(context, on(nvfp4(n, 1024, 1), "sm_90a")).candidates;
  }
  static std::size_t entries(const std::string& root) {
    const auto listed = make_dir_store(root, Log::silent())->list();
    return listed ? listed->size() : 0;
  }
};

// B40: one bundle of root's, two users: both find its kernel, and what each builds goes into a folder of its own.
TEST_F(UserIds, TwoUsersShareABundleAndWriteToTheirOwnFolders) {
  options.cache_dir = dir.path("roots_cache");
  EntryId bundled;
  {
    const auto context = make();
    const auto built = context->resolver().ensure_cached(kernel(*context, 64));
    ASSERT_TRUE(built);
    bundled = built->entry->id;
    const std::vector<const Entry*> content = {built->entry.get()};
    ASSERT_TRUE(write_bundle(dir.path("kernels.gjb"), content));
  }
  ASSERT_EQ(::chmod(dir.path("kernels.gjb").c_str(), 0444), 0);
  const std::string before = read_text(dir.path("kernels.gjb"));
  options.cache_ro = {dir.path("kernels.gjb")};
  for (const uid_t user : users) {
    const std::string home = dir.path("home" + std::to_string(user));
    ASSERT_EQ(::mkdir(home.c_str(), 0700), 0);
    ASSERT_EQ(::chown(home.c_str(), user, user), 0);
  }
  run_processes(2, [&](int i) {
    if (!become(users[i])) return 2;
    options.cache_dir = dir.path("home" + std::to_string(users[i])) + "/cache";
    const auto context = make();
    const auto shared = context->resolver().ensure_cached(kernel(*context, 64));
    if (!shared || shared->compiled || shared->path.find("kernels.gjb#") == std::string::npos) return 3;
    const auto own = context->resolver().ensure_cached(kernel(*context, 64 * (2 + i)));
    if (!own || !own->compiled || !own->kept) return 4;
    return logged("warning: ") == 0 ? 0 : 5;
  });
  EXPECT_EQ(read_text(dir.path("kernels.gjb")), before);
  for (const uid_t user : users) {
    const std::string cache = dir.path("home" + std::to_string(user)) + "/cache";
    EXPECT_EQ(entries(cache), 1u) << "its own kernel and no copy of the bundle's";
    for (const auto& found : std::filesystem::recursive_directory_iterator(cache)) {
      struct stat info {};
      ASSERT_EQ(::lstat(found.path().c_str(), &info), 0);
      EXPECT_EQ(info.st_uid, user) << found.path();
    }
  }
  // Neither takes the other's folder for its own.
  run_processes(1, [&](int) {
    if (!become(users[0])) return 2;
    options.cache_dir = dir.path("home" + std::to_string(users[1])) + "/cache";
    options.cache_ro.clear();
    const auto context = make();
    const auto built = context->resolver().ensure_cached(kernel(*context, 64 * 3));
    return built && built->compiled && !built->kept && logged("warning: ") == 1 ? 0 : 3;
  });
}

// B37: a HOME that cannot be written to, and the root folder as HOME, for a user without rights: kernels stay in
// memory, and one warning names the variable to set.
TEST_F(UserIds, AHomeThatCannotBeWrittenIsNoObstacle) {
  ASSERT_EQ(::mkdir(dir.path("home").c_str(), 0555), 0);
  for (const std::string& home : {dir.path("home"), std::string("/"), dir.path("not_there")}) {
    SCOPED_TRACE(home);
    run_processes(1, [&](int) {
      if (!become(users[0])) return 2;
      OptionRequest request;
      request.device = device_none;
      request.log_sink = options.log_sink;
      request.tuning_dir = options.tuning_dir;
      const auto resolved = resolve_options(request, [&](const char* variable) -> std::optional<std::string> {
        return std::string(variable) == "HOME" ? std::optional(home) : std::nullopt;
      });
      if (!resolved || resolved->cache_dir.empty()) return 3;
      options = *resolved;
      const auto context = make();
      for (const std::int64_t n : {64, 128, 64}) {
        const auto built = context->resolver().ensure_cached(kernel(*context, n));
        const std::string expected = "cubin of " + kernel(*context, n).front().text();
        if (!built || built->entry->cubin.bytes != Bytes(expected.begin(), expected.end())) return 4;
        if (built->kept) return 5;
      }
      if (logged("warning: ") != 1 || logged("GEMVJIT_CACHE_DIR") != 1) {
        for (const std::string& line : log) std::fprintf(stderr, "%s\n", line.c_str());
        return 6;
      }
      return 0;
    });
  }
  EXPECT_EQ(::access("/.cache/gemvjit", F_OK), -1);
}

}  // namespace
}  // namespace gemvjit::test
