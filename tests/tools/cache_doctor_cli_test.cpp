// gemvjit-cache doctor on what operators trip over: where the locks are, a cache that will not last, two toolkits.
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "tests/tools/cli_fixture.h"

namespace gemvjit::test {
namespace {

using nlohmann::json;

class DoctorCli : public CliTest {
 protected:
  DoctorCli() {
    environment_["GEMVJIT_LIBCUDA"] = folder_.path("no-libcuda.so");
    environment_["XDG_RUNTIME_DIR"] = "";
  }
  json doctor() const { return document(cache({"doctor", "--json"})); }
};

TEST_F(DoctorCli, NamesTheFolderOfLocksAndWhatChoseIt) {
  json locks = doctor()["locks"];
  EXPECT_EQ(locks["path"], cache_dir_ + "/locks");
  EXPECT_EQ(locks["named_by"], "GEMVJIT_CACHE_DIR");
  EXPECT_EQ(locks["exists"], false);
  EXPECT_EQ(locks["owner"], nullptr);
  EXPECT_EQ(locks["passed_over"], "");
  EXPECT_EQ(locks["problem"], "");
  EXPECT_FALSE(std::filesystem::exists(cache_dir_)) << "the doctor makes nothing";

  const std::string run = folder_.path("run");
  environment_["XDG_RUNTIME_DIR"] = run;
  ASSERT_EQ(::mkdir(run.c_str(), 0700), 0);
  ASSERT_EQ(::mkdir((run + "/gemvjit").c_str(), 0700), 0);
  locks = doctor()["locks"];
  EXPECT_EQ(locks["path"], run + "/gemvjit");
  EXPECT_EQ(locks["named_by"], "XDG_RUNTIME_DIR");
  EXPECT_EQ(locks["exists"], true);
  EXPECT_EQ(locks["mode"], "0700");
  EXPECT_TRUE(contains(locks["owner"], std::to_string(::geteuid()))) << locks;
  EXPECT_TRUE(locks["file_system"].is_string());
  const std::string text = cache({"doctor"}).out;
  EXPECT_TRUE(contains(text, "Locks between processes\n") && contains(text, run + "/gemvjit")) << text;
}

TEST_F(DoctorCli, SaysWhyARuntimeFolderIsPassedOverAndWhyThereAreNoLocks) {
  const std::string run = folder_.path("run");
  ASSERT_EQ(::mkdir(run.c_str(), 0700), 0);
  ASSERT_EQ(::chmod(run.c_str(), 0777), 0);
  environment_["XDG_RUNTIME_DIR"] = run;
  json locks = doctor()["locks"];
  EXPECT_EQ(locks["path"], cache_dir_ + "/locks");
  EXPECT_TRUE(contains(locks["passed_over"], "mode 0777")) << locks;

  folder_.write("cache/locks", "a file where the folder should be");
  locks = doctor()["locks"];
  EXPECT_EQ(locks["path"], nullptr);
  EXPECT_EQ(locks["named_by"], nullptr);
  EXPECT_TRUE(contains(locks["problem"], cache_dir_ + "/locks")) << locks;
  EXPECT_TRUE(contains(locks["problem"], "do not share builds")) << locks;

  for (const char* variable : {"GEMVJIT_CACHE_DIR", "XDG_CACHE_HOME", "HOME"}) environment_[variable] = "";
  locks = doctor()["locks"];
  EXPECT_EQ(locks["path"], nullptr);
  EXPECT_TRUE(contains(locks["problem"], "memory only")) << locks;
}

// B143: what lies on overlay or tmpfs is gone after the next restart. Warned of wherever this test's folder is so, and
// in /dev/shm, which is tmpfs on most machines; nowhere else.
TEST_F(DoctorCli, WarnsOfACacheThatWillNotLast) {
  const auto is_short_lived = [](const std::string& path) {
    struct statfs system {};
    EXPECT_EQ(::statfs(path.c_str(), &system), 0);
    const auto type = static_cast<std::uint32_t>(system.f_type);
    return type == 0x01021994 || type == 0x794C7630;
  };
  const auto warning = [&] { return doctor()["layers"][0]["warning"].get<std::string>(); };
  EXPECT_EQ(!warning().empty(), is_short_lived(folder_.path())) << warning();
  ASSERT_EQ(::mkdir(cache_dir_.c_str(), 0700), 0);
  EXPECT_EQ(!warning().empty(), is_short_lived(folder_.path())) << warning();
  if (::access("/dev/shm", X_OK) != 0 || !is_short_lived("/dev/shm")) GTEST_SKIP() << "/dev/shm is no tmpfs here";
  environment_["GEMVJIT_CACHE_DIR"] = "/dev/shm/gemvjit-that-is-not-there";
  EXPECT_TRUE(contains(warning(), "on tmpfs")) << warning();
  EXPECT_TRUE(contains(cache({"doctor"}).out, "warning: on tmpfs"));
}

// B67: two NVRTCs. The report has path, version and targets of the one that is used, and the path of the other.
TEST_F(DoctorCli, TellsTwoNvrtcsApart) {
  const std::string toolkits = folder_.path("toolkits");
  std::filesystem::create_directories(toolkits);
  const std::string older = toolkits + "/libnvrtc.so.12", newer = toolkits + "/libnvrtc.so.13";
  std::filesystem::copy_file(FIXTURE_NVRTC_12_10, older);
  std::filesystem::copy_file(FIXTURE_NVRTC_13_0, newer);
  environment_["GEMVJIT_NVRTC"] = toolkits;
  const auto examine = [&](const std::string& used, const char* version, const json& targets, const json& others) {
    const json nvrtc = doctor()["nvrtc"];
    EXPECT_EQ(nvrtc["path"], used) << nvrtc;
    EXPECT_EQ(nvrtc["version"], version) << nvrtc;
    EXPECT_EQ(nvrtc["targets"], targets) << nvrtc;
    EXPECT_EQ(nvrtc["others"], others) << nvrtc;
  };
  const json of_newer{"sm_80", "sm_90a", "sm_90", "sm_120a", "sm_120"}, of_older{"sm_80", "sm_90a", "sm_90"};
  examine(newer, "13.0", of_newer, json{older + " (GEMVJIT_NVRTC)"});
  EXPECT_TRUE(contains(cache({"doctor"}).out, older + " (GEMVJIT_NVRTC)"));
  environment_["GEMVJIT_NVRTC"] = older;
  examine(older, "12.10", of_older, json::array());
}

}  // namespace
}  // namespace gemvjit::test
