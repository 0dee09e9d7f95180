// B58, B67: an NVRTC that is too old for a target, and two of them on one machine. (Builtins that are missing are
// in nvrtc_api_test.cpp.)
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "cache/entry.h"
#include "src/catalog/arch.h"
#include "src/compile/nvrtc_compiler.h"
#include "tests/cuda/nvrtc_support.h"

namespace gemvjit::cuda {
namespace {

using test::TempDir;
using ::testing::AllOf;
using ::testing::HasSubstr;

// How often the fake at the path was asked to compile.
int compiles_of(const std::string& file) {
  void* handle = dlopen(file.c_str(), RTLD_NOW | RTLD_NOLOAD);
  if (handle == nullptr) return 0;  // not even loaded
  const auto compiles = reinterpret_cast<int (*)()>(dlsym(handle, "fake_nvrtc_compiles"));
  const int count = compiles == nullptr ? -1 : compiles();
  dlclose(handle);
  return count;
}

// B58: NVRTC 12.8 has no sm_121. The answer says which NVRTC is needed for what, before anything is compiled.
TEST(TooOldNvrtc, SaysWhichNvrtcATargetNeedsAndCompilesNothing) {
  const TempDir dir;
  const std::string file = place(dir, "libnvrtc.so.12", FIXTURE_NVRTC_12_8);
  for (const int sm : {121, 103}) {
    const auto loaded = load_nvrtc(search_named(file), sm, "compile kernels");
    ASSERT_FALSE(loaded);
    EXPECT_EQ(loaded.status().code(), StatusCode::no_compiler);
    EXPECT_THAT(loaded.status().message(),
                AllOf(HasSubstr("NVRTC 12.9 or newer that knows sm_" + std::to_string(sm) + " is needed to compile"),
                      HasSubstr(file), HasSubstr("its version is 12.8, older than 12.9")));
  }
  EXPECT_EQ(compiles_of(file), 0);
}

// One that is new enough and lacks the target all the same: nothing is tried for that target.
TEST(TooOldNvrtc, ANewerOneWithoutTheTargetListsWhatItHas) {
  const TempDir dir;
  const std::string file = place(dir, "libnvrtc.so.13", FIXTURE_NVRTC_13_0);
  const auto any = load_nvrtc(search_named(file), 90, "test");
  ASSERT_TRUE(any) << any.status().message();
  const int before = compiles_of(file);
  EXPECT_FALSE((*any)->supports(121, 'a'));
  EXPECT_FALSE((*any)->supports(121, 0));
  EXPECT_FALSE(load_nvrtc(search_named(file), 121, "compile kernels"));
  EXPECT_EQ(compiles_of(file), before);
}

// B67: which of two is used is what was named, or the newest of the folder that was, and its table says so: path and
// version are what doctor prints and what an entry's header gets. (The order of places is in nvrtc_search_test.cpp.)
TEST(TwoNvrtcs, TheOneInUseIsReported) {
  const TempDir dir;
  const std::string older = place(dir, "both/libnvrtc.so.13.0", FIXTURE_NVRTC_13_0);
  const std::string newer = place(dir, "both/libnvrtc.so.13.1", FIXTURE_NVRTC_13_1_SM777);
  const auto expect_used = [](const std::string& named, const std::string& file, const std::string& version) {
    const auto nvrtc = load_nvrtc(search_named(named), 90, "test");
    ASSERT_TRUE(nvrtc) << nvrtc.status().message();
    EXPECT_EQ((*nvrtc)->path, file);
    const auto compiler = make_nvrtc_compiler(*nvrtc);
    EXPECT_EQ(compiler->path(), file);
    EXPECT_EQ(compiler->version(), version);
  };
  expect_used(older, older, "NVRTC 13.0");
  expect_used(newer, newer, "NVRTC 13.1");
  expect_used(dir.path("both"), newer, "NVRTC 13.1");
}

// B67: the build, which NVRTC does not tell, is that of the file's real name; it goes into the header of every entry.
TEST(TwoNvrtcs, TheBuildStandsInTheVersion) {
  const TempDir dir;
  const auto version_of = [&](const std::string& folder, const std::string& file) {
    place(dir, folder + "/" + file, FIXTURE_NVRTC_13_0);
    const std::string link = dir.path(folder + "/libnvrtc.so.13");
    if (file != "libnvrtc.so.13") std::filesystem::create_symlink(file, link);
    const auto nvrtc = load_nvrtc(search_named(link), 90, "test");
    EXPECT_TRUE(nvrtc) << nvrtc.status().message();
    return nvrtc ? make_nvrtc_compiler(*nvrtc)->version() : "";
  };
  EXPECT_EQ(version_of("toolkit", "libnvrtc.so.13.0.88"), "NVRTC 13.0 (13.0.88)");
  EXPECT_EQ(version_of("older", "libnvrtc.so.13.0.48"), "NVRTC 13.0 (13.0.48)");
  EXPECT_EQ(version_of("wheel", "libnvrtc.so.13"), "NVRTC 13.0");
  EXPECT_EQ(version_of("lies", "libnvrtc.so.12.9.86"), "NVRTC 13.0") << "the library's own word goes first";
  EXPECT_EQ(version_of("odd", "libnvrtc.so.13.0.beta"), "NVRTC 13.0");
}

}  // namespace
}  // namespace gemvjit::cuda
