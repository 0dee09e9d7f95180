// Loading an NVRTC: which one is taken, what is said of those that are not, and what a real one answers.
#include "src/cuda/nvrtc_api.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <filesystem>
#include <thread>

#include "tests/cuda/nvrtc_support.h"

namespace gemvjit::cuda {
namespace {

using test::TempDir;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(LoadNvrtc, TakesTheNamedFile) {
  const TempDir dir;
  const std::string file = place(dir, "any_name.so", FIXTURE_NVRTC_13_0);
  const auto nvrtc = load_nvrtc(search_named(file), 90, "compile kernels");
  ASSERT_TRUE(nvrtc) << nvrtc.status().message();
  EXPECT_EQ((*nvrtc)->path, file);
  EXPECT_EQ((*nvrtc)->major, 13);
  EXPECT_EQ((*nvrtc)->minor, 0);
  EXPECT_THAT((*nvrtc)->supported_sms, ElementsAre(80, 90, 120));
#define X(name) EXPECT_NE((*nvrtc)->name, nullptr) << #name;
#include "src/cuda/nvrtc_symbols.inc"
#undef X
}

TEST(LoadNvrtc, TheVersionIsComparedAsAPair) {
  EXPECT_TRUE(load_nvrtc(search_named(FIXTURE_NVRTC_12_10), 0, "test"));  // 12.10 is newer than 12.9
  const auto old = load_nvrtc(search_named(FIXTURE_NVRTC_12_8), 90, "compile kernels");
  ASSERT_FALSE(old);
  EXPECT_EQ(old.status().code(), StatusCode::no_compiler);
  EXPECT_THAT(old.status().message(),
              AllOf(HasSubstr(FIXTURE_NVRTC_12_8), HasSubstr("12.8"), HasSubstr("12.9"), HasSubstr("compile kernels")));
}

TEST(LoadNvrtc, SaysWhatAnUnusableNamedFileIs) {
  const TempDir dir;
  const auto message = [](const std::string& file, int sm) {
    const auto nvrtc = load_nvrtc(search_named(file), sm, "compile kernels");
    EXPECT_FALSE(nvrtc) << file;
    EXPECT_EQ(nvrtc.status().code(), StatusCode::no_compiler);
    EXPECT_THAT(nvrtc.status().message(),
                AllOf(HasSubstr(file), HasSubstr("(GEMVJIT_NVRTC)"), HasSubstr("needed to compile kernels")));
    return nvrtc.status().message();
  };
  EXPECT_THAT(message(dir.path("missing.so"), 90), HasSubstr("no such file"));
  EXPECT_THAT(message(dir.path(), 90), HasSubstr("holds no libnvrtc.so*"));
  EXPECT_THAT(message(dir.write("text.so", "no library"), 90), HasSubstr("too short"));
  EXPECT_THAT(message(FIXTURE_EMPTY_LIBRARY, 90), HasSubstr("lacks nvrtcVersion"));
  EXPECT_THAT(message(FIXTURE_NVRTC_NO_COMPILE, 90), HasSubstr("fake log of a failed compile"));
  EXPECT_THAT(message(FIXTURE_NVRTC_13_0, 121), AllOf(HasSubstr("sm_121"), HasSubstr("sm_80, sm_90, sm_120")));
}

TEST(LoadNvrtc, NamesMissingBuiltinsAndTheirFolder) {
  const TempDir dir;
  const std::string file = place(dir, "lib/libnvrtc.so.13", FIXTURE_NVRTC_NO_BUILTINS);
  const auto nvrtc = load_nvrtc(search_named(file), 90, "compile kernels");
  ASSERT_FALSE(nvrtc);
  EXPECT_THAT(nvrtc.status().message(),
              AllOf(HasSubstr("libnvrtc-builtins.so.13.2"), HasSubstr("folder " + dir.path("lib"))));
}

TEST(LoadNvrtc, GoesOnToTheFirstThatListsTheArchAndNamesAllOthers) {
  const TempDir dir;
  NvrtcSearch search = search_nowhere();
  search.library_directory = dir.path("app/lib");
  search.virtual_env = dir.path("venv");
  search.cuda_home = dir.path("home");
  search.toolkits_parent = dir.path("toolkits");
  std::filesystem::create_directories(search.library_directory);
  const std::string old = place(dir, "app/nvidia/cuda_nvrtc/lib/libnvrtc.so.12", FIXTURE_NVRTC_12_8);
  const std::string lacks =
      place(dir, "venv/lib/python3.12/site-packages/nvidia/cu13/lib/libnvrtc.so.13", FIXTURE_NVRTC_13_0);
  const std::string broken = place(dir, "home/lib64/libnvrtc.so.13", FIXTURE_EMPTY_LIBRARY);
  const std::string right = place(dir, "toolkits/cuda-13.1/lib64/libnvrtc.so.13", FIXTURE_NVRTC_13_1_SM777);

  const auto nvrtc = load_nvrtc(search, 777, "compile kernels");
  ASSERT_TRUE(nvrtc) << nvrtc.status().message();
  EXPECT_EQ((*nvrtc)->path, right);

  const auto none = load_nvrtc(search, 778, "compile kernels");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.status().code(), StatusCode::no_compiler);
  EXPECT_THAT(none.status().message(), AllOf(HasSubstr(old), HasSubstr(lacks), HasSubstr(broken), HasSubstr(right),
                                             HasSubstr("libnvrtc.so.13 (loader's path)"), HasSubstr("sm_778")));
}

TEST(LoadNvrtc, OneTableForAFileWhateverItsName) {
  const TempDir dir;
  const std::string file = place(dir, "lib/libnvrtc.so.13", FIXTURE_NVRTC_13_0);
  std::filesystem::create_symlink("libnvrtc.so.13", dir.path("lib/libnvrtc.so"));
  std::vector<std::shared_ptr<const NvrtcApi>> seen(4);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < seen.size(); ++i) {
    threads.emplace_back([&, i] {
      const std::string name = i % 2 == 0 ? file : dir.path("lib/libnvrtc.so");
      if (auto nvrtc = load_nvrtc(search_named(name), 90, "test")) seen[i] = *nvrtc;
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_NE(seen[0], nullptr);
  for (const auto& one : seen) EXPECT_EQ(one, seen[0]);
}

TEST(NvrtcSupports, TriesEachTargetOnce) {
  const TempDir dir;
  const std::string file = place(dir, "libnvrtc.so.13", FIXTURE_NVRTC_13_0);
  const auto nvrtc = load_nvrtc(search_named(file), 90, "test");
  ASSERT_TRUE(nvrtc) << nvrtc.status().message();
  void* handle = dlopen(file.c_str(), RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(handle, nullptr);
  const auto compiles = reinterpret_cast<int (*)()>(dlsym(handle, "fake_nvrtc_compiles"));
  ASSERT_NE(compiles, nullptr);
  EXPECT_EQ(compiles(), 1);  // the check at the load
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE((*nvrtc)->supports(90, 'a'));
    EXPECT_TRUE((*nvrtc)->supports(90, 0));
    EXPECT_FALSE((*nvrtc)->supports(80, 'a'));  // listed, without the suffix
    EXPECT_FALSE((*nvrtc)->supports(90, 'f'));
    EXPECT_FALSE((*nvrtc)->supports(100, 0));  // not listed, so not tried
  }
  EXPECT_EQ(compiles(), 1 + 4);
  EXPECT_EQ(dlclose(handle), 0);
}

TEST(RealNvrtc, VersionAndTargets) {
  const auto nvrtc = real_nvrtc();
  if (!nvrtc) GTEST_SKIP() << nvrtc.status().message();
  EXPECT_GE(std::pair((*nvrtc)->major, (*nvrtc)->minor), std::pair(12, 9));
  for (const int sm : {80, 90, 100, 120}) {
    EXPECT_THAT((*nvrtc)->supported_sms, ::testing::Contains(sm));
    EXPECT_TRUE((*nvrtc)->supports(sm, 0)) << sm;
  }
  for (const int sm : {90, 100, 120}) EXPECT_TRUE((*nvrtc)->supports(sm, 'a')) << sm;
  EXPECT_TRUE((*nvrtc)->supports(100, 'f'));
  EXPECT_FALSE((*nvrtc)->supports(90, 'f'));
  EXPECT_FALSE((*nvrtc)->supports(80, 'a'));
  EXPECT_FALSE((*nvrtc)->supports(999, 0));
  // CUDA 13 renamed sm_101 to sm_110.
  if ((*nvrtc)->major == 13) {
    EXPECT_FALSE((*nvrtc)->supports(101, 'a'));
  }
}

// A copy of the real library in a folder that the loader does not know, opened by a fresh process whose loader knows
// only wrong builtins: an empty library of that name.
class RealNvrtcCopy : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto nvrtc = real_nvrtc();
    if (!nvrtc) GTEST_SKIP() << nvrtc.status().message();
    builtins_name = "libnvrtc-builtins.so." + std::to_string((*nvrtc)->major) + "." + std::to_string((*nvrtc)->minor);
    real_builtins = std::filesystem::canonical((*nvrtc)->path).parent_path() / builtins_name;
    if (!std::filesystem::exists(real_builtins)) GTEST_SKIP() << "there is no " << real_builtins;
    copy = place(dir, "alone/libnvrtc.so.13", (*nvrtc)->path);
    place(dir, "wrong/" + builtins_name, FIXTURE_EMPTY_LIBRARY);
  }

  // The exit status of the fresh process, and what it wrote.
  int load_copy(std::string& output) {
    const std::string environment = "env LD_LIBRARY_PATH='" + dir.path("wrong") + "' ";
    const std::string command = environment + "'" FIXTURE_LOAD_NVRTC "' '" + copy + "' 2>&1";
    FILE* child = popen(command.c_str(), "r");
    if (child == nullptr) return -1;
    char buffer[256];
    while (fgets(buffer, sizeof buffer, child) != nullptr) output += buffer;
    const int status = pclose(child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  TempDir dir;
  std::string copy, builtins_name;
  std::filesystem::path real_builtins;
};

// B65.
TEST_F(RealNvrtcCopy, WithoutItsBuiltinsTheFileToAddIsNamed) {
  std::string output;
  EXPECT_EQ(load_copy(output), 1);
  EXPECT_THAT(output,
              AllOf(HasSubstr("its " + builtins_name), HasSubstr("folder " + dir.path("alone")), HasSubstr(copy)));
}

// As in a pip wheel. NVRTC by itself would take the wrong ones.
TEST_F(RealNvrtcCopy, TakesTheBuiltinsBesideIt) {
  place(dir, "alone/" + builtins_name, real_builtins.string());
  std::string output;
  EXPECT_EQ(load_copy(output), 0) << output;
}

}  // namespace
}  // namespace gemvjit::cuda
