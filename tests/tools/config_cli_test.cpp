// The configuration files through the tools: gemvjit-cache config shows what gemvjit-warmup works with.
#include <sys/stat.h>

#include "tests/tools/cli_fixture.h"

namespace gemvjit::test {
namespace {

using nlohmann::json;

class ConfigCli : public CliTest {
 protected:
  ConfigCli() {
    environment_["GEMVJIT_CONFIG"] = "";
    environment_["GEMVJIT_CACHE_DIR"] = "";
    environment_["XDG_CONFIG_HOME"] = folder_.path("config");
    std::filesystem::create_directories(folder_.path("config/gemvjit"));
  }
  void write(const std::string& text) const { write_text(file_, text); }
  json option(const std::string& name, std::vector<std::string> arguments = {"config", "--json"}) const {
    const json shown = document(cache(std::move(arguments)));
    for (const json& one : shown["options"]) {
      if (one["option"] == name) return one;
    }
    return {};
  }
  const std::string file_ = folder_.path("config/gemvjit/config.json");
};

TEST_F(ConfigCli, FlagThenEnvironmentThenFile) {
  write(R"({"cache_dir": ")" + cache_dir_ + R"(", "compile_threads": 3})");
  EXPECT_EQ(option("cache_dir")["origin"], file_);
  EXPECT_EQ(option("cache_dir")["value"], cache_dir_);
  EXPECT_EQ(option("tuning_dir")["origin"], "default");
  EXPECT_EQ(option("compile_threads")["origin"], "GEMVJIT_COMPILE_THREADS") << "the fixture sets it";
  EXPECT_EQ(option("cache_dir", {"config", "--json", "--cache-dir", "/elsewhere"})["origin"], "--cache-dir");
  environment_["GEMVJIT_CACHE_DIR"] = folder_.path("other");
  EXPECT_EQ(option("cache_dir")["origin"], "GEMVJIT_CACHE_DIR");
  EXPECT_EQ(option("cache_dir")["value"], folder_.path("other"));
  EXPECT_TRUE(contains(cache({"config", "--origin"}).out, "read " + file_));
}

TEST_F(ConfigCli, BothToolsAndTheLibraryUseTheFilesCache) {
  write(R"({"cache_dir": ")" + cache_dir_ + R"("})");
  ASSERT_EQ(warm_one_kernel().exit_code, 0);
  EXPECT_EQ(entry_files(cache_dir_).size(), 1u);
  EXPECT_EQ(document(cache({"ls", "--json"}))["entries"].size(), 1u);
  const json path = document(cache({"path", "--json"}));
  EXPECT_EQ(path["cache_dir"], cache_dir_);
  EXPECT_EQ(path["source"], file_);
}

TEST_F(ConfigCli, AWrongFileIsSaidByBothAndByTheDoctor) {
  write(R"({"cache_dri": "/x"})");
  const ProgramOutput shown = cache({"ls"});
  EXPECT_EQ(shown.exit_code, 2);
  EXPECT_TRUE(contains(shown.err, file_ + ": there is no option \"cache_dri\"")) << shown.err;
  EXPECT_TRUE(contains(error_message(warm_one_kernel({"--json"})), "cache_dri"));
  const json report = document(cache({"doctor", "--json"}));
  EXPECT_TRUE(contains(report["options"]["problem"], "cache_dri"));
  EXPECT_EQ(report["usable"], false);
}

}  // namespace
}  // namespace gemvjit::test
