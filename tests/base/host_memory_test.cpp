// The default number of compile jobs: cores, memory of the machine, limits of cgroups of both versions.
#include "src/base/host_memory.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/temp_dir.h"

namespace gemvjit {
namespace {

class HostMemoryTest : public testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) const {
    const std::filesystem::path file = folder_.path(path);
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  std::optional<std::uint64_t> free_memory() const {
    return free_host_memory({folder_.path("proc"), folder_.path("cgroup")});
  }

  test::TempDir folder_;
};

TEST_F(HostMemoryTest, NothingIsKnownWhereNothingCanBeRead) {
  EXPECT_EQ(free_memory(), std::nullopt);
  write("proc/meminfo", "MemTotal: 10 kB\nMemAvailable:  nonsense\n");
  EXPECT_EQ(free_memory(), std::nullopt);
}

TEST_F(HostMemoryTest, AvailableIsTheMachinesFigure) {
  write("proc/meminfo", "MemTotal:  9000 kB\nMemFree:  1 kB\nMemAvailable:    2000 kB\n");
  EXPECT_EQ(free_memory(), 2000u * 1024);
}

TEST_F(HostMemoryTest, ACgroupOfVersion2AndThoseAboveItLimit) {
  write("proc/meminfo", "MemAvailable: 1000000 kB\n");
  write("proc/self/cgroup", "0::/outer/inner\n");
  write("cgroup/outer/inner/memory.max", "max\n");
  write("cgroup/outer/memory.max", "5000000\n");
  write("cgroup/outer/memory.current", "3000000\n");
  write("cgroup/outer/memory.stat", "anon 5\ninactive_file 1000000\n");
  EXPECT_EQ(free_memory(), 3000000u);
  write("cgroup/outer/inner/memory.max", "1000\n");  // less than what is used there already
  write("cgroup/outer/inner/memory.current", "2000\n");
  EXPECT_EQ(free_memory(), 0u);
}

TEST_F(HostMemoryTest, AContainersOwnCgroupIsTheRoot) {
  write("proc/self/cgroup", "0::/\n");
  write("cgroup/memory.max", "700\n");
  EXPECT_EQ(free_memory(), 700u);
  write("proc/self/cgroup", "0::/../../other\n");  // from another namespace
  EXPECT_EQ(free_memory(), 700u);
}

TEST_F(HostMemoryTest, ACgroupOfVersion1Limits) {
  write("proc/meminfo", "MemAvailable: 1000000 kB\n");
  write("proc/self/cgroup", "12:cpu,cpuacct:/a\n9:memory:/a\n0::/\n");
  write("cgroup/memory/a/memory.limit_in_bytes", "9223372036854771712\n");  // its way to say: none
  EXPECT_EQ(free_memory(), 1000000u * 1024);
  write("cgroup/memory/a/memory.limit_in_bytes", "80000\n");
  write("cgroup/memory/a/memory.usage_in_bytes", "30000\n");
  write("cgroup/memory/a/memory.stat", "inactive_file 1\ntotal_inactive_file 10000\n");
  EXPECT_EQ(free_memory(), 60000u);
}

TEST(DefaultCompileJobs, AreTheLeastOfCoresEightAndMemory) {
  constexpr std::uint64_t job = kCompileJobBytes;
  EXPECT_EQ(default_compile_jobs(4, std::nullopt), 4);
  EXPECT_EQ(default_compile_jobs(64, std::nullopt), 8);
  EXPECT_EQ(default_compile_jobs(64, 100 * job), 8);
  EXPECT_EQ(default_compile_jobs(64, 3 * job + job / 2), 3);
  EXPECT_EQ(default_compile_jobs(2, 3 * job), 2);
  EXPECT_EQ(default_compile_jobs(0, 3 * job), 1);
  EXPECT_EQ(default_compile_jobs(64, 0), 1);
}

}  // namespace
}  // namespace gemvjit
