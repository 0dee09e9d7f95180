// Where an NVRTC is looked for, and in which order, on fake folders.
#include "src/cuda/nvrtc_search.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "tests/cuda/nvrtc_support.h"
#include "tests/support/acl.h"

namespace gemvjit::cuda {
namespace {

using test::TempDir;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> files(const std::vector<NvrtcCandidate>& candidates) {
  std::vector<std::string> result;
  for (const NvrtcCandidate& candidate : candidates) result.push_back(candidate.file);
  return result;
}

std::string touch(const TempDir& dir, const std::string& name) { return dir.write(name, "not opened in these tests"); }

TEST(NvrtcName, OnlyTheLibraryItself) {
  for (const char* name : {"libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12.9.86"}) EXPECT_TRUE(is_nvrtc_name(name));
  for (const char* name : {"libnvrtc.alt.so.13", "libnvrtc-builtins.so.13.0", "libnvrtc.so.", "libnvrtc.so.13.bak",
                           "libnvrtc.so-old", "libnvrtc_static.a", "libcuda.so.1", ""}) {
    EXPECT_FALSE(is_nvrtc_name(name)) << name;
  }
}

TEST(NvrtcSearch, FoldersInOrder) {
  const TempDir dir;
  NvrtcSearch search = search_nowhere();
  search.library_directory = dir.path("app/engine/lib");
  search.virtual_env = dir.path("venv");
  search.conda_prefix = dir.path("conda");
  search.cuda_home = dir.path("home");
  search.toolkits_parent = dir.path("toolkits");
  std::filesystem::create_directories(search.library_directory);
  const std::vector<std::string> expected = {
      touch(dir, "app/engine/nvidia/cu13/lib/libnvrtc.so.13"),
      touch(dir, "app/engine/nvidia/cuda_nvrtc/lib/libnvrtc.so.12"),
      touch(dir, "venv/lib/python3.12/site-packages/nvidia/cu13/lib/libnvrtc.so.13"),
      touch(dir, "venv/lib/python3.9/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12"),
      touch(dir, "conda/lib/python3.11/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12"),
      touch(dir, "conda/lib/libnvrtc.so.12"),
      touch(dir, "home/lib64/libnvrtc.so.12"),
      touch(dir, "home/targets/x86_64-linux/lib/libnvrtc.so.12"),
      touch(dir, "toolkits/cuda/lib64/libnvrtc.so.12"),
      touch(dir, "toolkits/cuda-12.10/lib64/libnvrtc.so.12"),
      touch(dir, "toolkits/cuda-12.9/lib64/libnvrtc.so.12"),
  };
  touch(dir, "toolkits/other/lib64/libnvrtc.so.12");
  touch(dir, "venv/lib/libnvrtc.so.12");  // a virtual environment has its wheels, no libraries of its own
  EXPECT_EQ(files(own_candidates(search)), expected);
}

TEST(NvrtcSearch, TheLoadersPathComesBetweenCondaAndCudaHome) {
  const TempDir dir;
  NvrtcSearch search = search_nowhere();
  search.conda_prefix = dir.path("conda");
  search.cuda_home = dir.path("home");
  touch(dir, "conda/lib/libnvrtc.so.12");
  touch(dir, "home/lib64/libnvrtc.so.12");
  std::vector<std::string> origins;
  std::vector<std::string> bare;
  for (const NvrtcCandidate& candidate : nvrtc_candidates(search)) {
    if (candidate.origin == "already loaded") continue;
    origins.push_back(candidate.origin);
    if (candidate.origin == "loader's path") bare.push_back(candidate.file);
  }
  EXPECT_THAT(origins, ElementsAre("CONDA_PREFIX", "loader's path", "loader's path", "loader's path", "CUDA_HOME"));
  EXPECT_THAT(bare, ElementsAre("libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"));
}

TEST(NvrtcSearch, NewestFirstEachFileOnceAndNeitherBuiltinsNorAlt) {
  const TempDir dir;
  NvrtcSearch search = search_nowhere();
  search.cuda_home = dir.path("home");
  const std::string older = touch(dir, "home/lib64/libnvrtc.so.12.9.86");
  const std::string newer = touch(dir, "home/lib64/libnvrtc.so.13");
  touch(dir, "home/lib64/libnvrtc-builtins.so.13.0");
  touch(dir, "home/lib64/libnvrtc.alt.so.13");
  std::filesystem::create_symlink("libnvrtc.so.13", dir.path("home/lib64/libnvrtc.so"));
  std::filesystem::create_directory_symlink("lib64", dir.path("home/lib"));
  EXPECT_THAT(files(own_candidates(search)), ElementsAre(newer, older));
}

TEST(NvrtcSearch, WheelsFetchedIntoTheBuildFolder) {
  const TempDir dir;
  const std::string wheel = touch(dir, "src/build/deps/cuda/nvidia/cu13/lib/libnvrtc.so.13");
  NvrtcSearch search = search_nowhere();
  for (const char* place : {"src/build/dev/tools/warmup", "src/build/dev", "src/build", "src/out/dev/tools"}) {
    search.library_directory = dir.path(place);
    std::filesystem::create_directories(search.library_directory);
    EXPECT_THAT(files(own_candidates(search)), ElementsAre(wheel)) << place;
  }
}

TEST(NvrtcSearch, NothingBesideTheLibraryIsTakenFromAFolderThatAnyoneMayWriteTo) {
  const TempDir dir;
  touch(dir, "shared/nvidia/cu13/lib/libnvrtc.so.13");
  touch(dir, "nvidia/cu13/lib/libnvrtc.so.13");
  NvrtcSearch search = search_nowhere();
  search.library_directory = dir.path("shared/app");
  std::filesystem::create_directories(search.library_directory);
  EXPECT_EQ(own_candidates(search).size(), 2u);
  ASSERT_EQ(chmod(dir.path("shared").c_str(), 01777), 0);
  EXPECT_THAT(files(own_candidates(search)), IsEmpty());
}

TEST(NvrtcSearch, AnNvrtcBesideTheLibraryThatAnyoneCouldHaveWrittenIsNotOpened) {
  const TempDir dir;
  NvrtcSearch search = search_nowhere();
  search.library_directory = dir.path("app");
  const std::string wheel = touch(dir, "app/nvidia/cu13/lib/libnvrtc.so.13");
  const auto problem = [&] {
    const auto candidates = own_candidates(search);
    EXPECT_THAT(files(candidates), ElementsAre(wheel));
    return candidates.empty() ? "" : candidates.front().problem;
  };
  EXPECT_EQ(problem(), "");
  for (const char* part :
       {"app/nvidia", "app/nvidia/cu13", "app/nvidia/cu13/lib", "app/nvidia/cu13/lib/libnvrtc.so.13"}) {
    const std::string path = dir.path(part);
    ASSERT_EQ(chmod(path.c_str(), 0777), 0);
    EXPECT_EQ(problem(), path + " may be written by others");
    ASSERT_EQ(chmod(path.c_str(), 0755), 0);
  }
  EXPECT_EQ(problem(), "");
}

TEST(NvrtcSearch, NothingBesideTheLibraryIsTakenFromAStrangersFolder) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a folder to somebody else";
  const TempDir dir;
  const std::string wheel = touch(dir, "shared/nvidia/cu13/lib/libnvrtc.so.13");
  const std::string folder = dir.path("shared");
  NvrtcSearch search = search_nowhere();
  search.library_directory = dir.path("shared/app");
  std::filesystem::create_directories(search.library_directory);
  const auto found = [&](uid_t owner, gid_t group, mode_t mode, uid_t library_owner) {
    EXPECT_EQ(chown(folder.c_str(), owner, group), 0);
    EXPECT_EQ(chmod(folder.c_str(), mode), 0);
    EXPECT_EQ(chown(search.library_directory.c_str(), library_owner, 0), 0);
    return !own_candidates(search).empty();
  };
  EXPECT_TRUE(found(0, 0, 0775, 0));
  EXPECT_TRUE(found(4711, 4711, 0775, 4711)) << "the library's owner, with a private group";
  EXPECT_TRUE(found(0, 4712, 0755, 0));
  EXPECT_FALSE(found(4711, 4711, 0755, 0)) << "a stranger's";
  EXPECT_FALSE(found(0, 4712, 0775, 0)) << "a group may write";
  EXPECT_FALSE(found(4711, 4712, 0775, 4711)) << "a group may write";
  EXPECT_FALSE(found(4711, 0, 0775, 4711)) << "root's group is not this owner's";
  EXPECT_TRUE(found(4711, 4711, 0775, 4711));
  const int error = test::set_acl(folder, {{false, 4712, 7}}, 5, 7);
  if (error == ENOTSUP) GTEST_SKIP() << "the file system of " << folder << " has no ACLs";
  EXPECT_THAT(files(own_candidates(search)), IsEmpty()) << "a user whom an ACL names may write";
  EXPECT_TRUE(found(4711, 4711, 0755, 4711)) << "chmod g-w takes it from him";
}

TEST(NvrtcSearch, TheNamedOneIsTheOnlyOne) {
  const TempDir dir;
  NvrtcSearch search = search_nowhere();
  search.cuda_home = dir.path("home");
  touch(dir, "home/lib64/libnvrtc.so.12");
  search.gemvjit_nvrtc = touch(dir, "mine/libmynvrtc.so");
  EXPECT_THAT(files(nvrtc_candidates(search)), ElementsAre(search.gemvjit_nvrtc));

  search.gemvjit_nvrtc = dir.path("mine");  // a folder with nothing of that name
  ASSERT_EQ(nvrtc_candidates(search).size(), 1u);
  EXPECT_NE(nvrtc_candidates(search)[0].problem, "");

  const std::string inside = touch(dir, "mine/libnvrtc.so.13");
  EXPECT_THAT(files(nvrtc_candidates(search)), ElementsAre(inside));

  search.gemvjit_nvrtc = dir.path("nowhere");
  ASSERT_EQ(nvrtc_candidates(search).size(), 1u);
  EXPECT_NE(nvrtc_candidates(search)[0].problem, "");

  search.gemvjit_nvrtc = "libnvrtc.so.13";  // the loader's to find
  ASSERT_EQ(nvrtc_candidates(search).size(), 1u);
  EXPECT_EQ(nvrtc_candidates(search)[0].problem, "");
}

TEST(NvrtcSearch, OneThatTheProcessHasLoadedComesFirst) {
  const TempDir dir;
  NvrtcSearch search = search_nowhere();
  const std::string wheel = touch(dir, "venv/lib/python3.12/site-packages/nvidia/cu13/lib/libnvrtc.so.13");
  search.virtual_env = dir.path("venv");
  const std::string loaded = place(dir, "engine/libnvrtc.so.13", FIXTURE_NVRTC_13_0);
  const auto position = [&](const std::string& file) {
    const std::vector<std::string> all = files(nvrtc_candidates(search));
    return std::find(all.begin(), all.end(), file) - all.begin();
  };
  const auto absent = static_cast<std::ptrdiff_t>(nvrtc_candidates(search).size());
  EXPECT_EQ(position(loaded), absent);
  void* handle = dlopen(loaded.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(handle, nullptr) << dlerror();
  EXPECT_LT(position(loaded), position(wheel));
  for (const NvrtcCandidate& candidate : nvrtc_candidates(search)) {
    if (candidate.file != loaded) continue;
    EXPECT_EQ(candidate.origin, "already loaded");
  }
  EXPECT_EQ(dlclose(handle), 0);
}

TEST(NvrtcSearch, TheEnvironmentIsReadAndTheLibrarysFolderIsKnown) {
  const auto with = [](const char* name, const char* value) { ASSERT_EQ(setenv(name, value, 1), 0); };
  const std::string before = getenv("GEMVJIT_NVRTC") == nullptr ? "" : getenv("GEMVJIT_NVRTC");
  EXPECT_EQ(nvrtc_search_from_environment().gemvjit_nvrtc, before);
  with("GEMVJIT_NVRTC", "/a");
  with("VIRTUAL_ENV", "/b");
  with("CONDA_PREFIX", "/c");
  with("CUDA_HOME", "/d");
  const NvrtcSearch search = nvrtc_search_from_environment();
  for (const char* name : {"GEMVJIT_NVRTC", "VIRTUAL_ENV", "CONDA_PREFIX", "CUDA_HOME"}) unsetenv(name);
  if (!before.empty()) with("GEMVJIT_NVRTC", before.c_str());
  EXPECT_EQ(search.gemvjit_nvrtc, "/a");
  EXPECT_EQ(search.virtual_env, "/b");
  EXPECT_EQ(search.conda_prefix, "/c");
  EXPECT_EQ(search.cuda_home, "/d");
  EXPECT_EQ(search.toolkits_parent, "/usr/local");
  // Linked statically into this test program.
  EXPECT_EQ(search.library_directory, std::filesystem::read_symlink("/proc/self/exe").parent_path().string());
}

}  // namespace
}  // namespace gemvjit::cuda
