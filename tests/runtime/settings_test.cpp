#include "src/runtime/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <map>

#include "tests/support/acl.h"
#include "tests/support/temp_dir.h"

namespace gemvjit {
namespace {

using test::TempDir;
using test::write_text;
using testing::ElementsAre;
using testing::HasSubstr;

class SettingsTest : public testing::Test {
 protected:
  SettingsTest() {
    std::filesystem::create_directories(dir_.path("home/.config/gemvjit"));
    std::filesystem::create_directories(dir_.path("etc"));
  }
  Result<Settings> read() {
    return Settings::read(
        [values = variables_](const char* name) -> std::optional<std::string> {
          const auto found = values.find(name);
          return found == values.end() ? std::nullopt : std::optional<std::string>(found->second);
        },
        system_);
  }
  std::string value(const char* variable) {
    const auto settings = read();
    EXPECT_TRUE(settings) << settings.status().text();
    return settings ? settings->reader()(variable).value_or("(none)") : "";
  }
  void expect_refused(const std::string& text, const std::string& why) {
    write_text(user_, text);
    const auto settings = read();
    ASSERT_FALSE(settings) << text;
    EXPECT_EQ(settings.status().code(), StatusCode::invalid_argument);
    EXPECT_THAT(settings.status().message(), testing::AllOf(HasSubstr(user_), HasSubstr(why))) << text;
  }

  TempDir dir_;
  std::map<std::string, std::string> variables_{{"HOME", dir_.path("home")}};
  const std::string user_ = dir_.path("home/.config/gemvjit/config.json"), system_ = dir_.path("etc/config.json");
};

TEST_F(SettingsTest, WithoutFilesTheEnvironmentAsItIs) {
  EXPECT_EQ(value("HOME"), dir_.path("home"));
  EXPECT_EQ(value("GEMVJIT_CACHE_DIR"), "(none)");
  EXPECT_TRUE(read()->files().empty());
  variables_["HOME"] = "relative";
  EXPECT_TRUE(read());
}

TEST_F(SettingsTest, EnvironmentThenTheUsersFileThenTheSystems) {
  if (::geteuid() != 0) GTEST_SKIP() << "the system's file has to belong to root";
  write_text(system_, R"({"cache_dir": "/s", "tuning_dir": "/st", "compile_threads": 5, "log_level": "error"})");
  write_text(user_, R"({"cache_dir": "/u", "compile_threads": 4, "log_level": null})");
  variables_["GEMVJIT_CACHE_DIR"] = "/e";
  variables_["GEMVJIT_COMPILE_THREADS"] = "";
  EXPECT_EQ(value("GEMVJIT_CACHE_DIR"), "/e");
  EXPECT_EQ(value("GEMVJIT_COMPILE_THREADS"), "4") << "a variable set to nothing is not set";
  EXPECT_EQ(value("GEMVJIT_TUNING_DIR"), "/st");
  EXPECT_EQ(value("GEMVJIT_LOG"), "error") << "null is not set";
  const auto settings = read();
  EXPECT_THAT(settings->files(), ElementsAre(user_, system_));
  EXPECT_EQ(settings->origin_of(option_row("cache_dir")), "GEMVJIT_CACHE_DIR");
  EXPECT_EQ(settings->origin_of(option_row("compile_threads")), user_);
  EXPECT_EQ(settings->origin_of(option_row("tuning_dir")), system_);
  EXPECT_EQ(settings->origin_of(option_row("dump_dir")), "");
  const auto options = resolve_options({}, settings->reader());
  ASSERT_TRUE(options);
  EXPECT_EQ(options->cache_dir, "/e");
  EXPECT_EQ(options->compile_threads, 4);
}

TEST_F(SettingsTest, ListsOfPathsAndNumbers) {
  write_text(user_, "{ // a comment\n\"cache_ro\": [\"/a\", \"/b.gjb\"], \"cache_max_bytes\": 2097152}");
  EXPECT_EQ(value("GEMVJIT_CACHE_RO"), "/a:/b.gjb");
  EXPECT_EQ(value("GEMVJIT_CACHE_MAX_BYTES"), "2097152");
}

TEST_F(SettingsTest, WhatMeansNothingIsRefusedWithTheFile) {
  expect_refused("", "no JSON: parse error at line 1");
  expect_refused("{\n  \"cache_dir\": \"/a\"\n  \"log_level\": \"debug\"\n}", "parse error at line 3");
  expect_refused(R"({"cache_dir": "/a", "cache_dir": "/b"})", "\"cache_dir\" is there twice");
  expect_refused(R"({"cache_dirr": "/x"})", "did you mean cache_dir?");
  expect_refused(R"({"cache_dir": ["/a", "/b"]})", "cache_dir [\"/a\",\"/b\"] is not accepted");
  expect_refused(R"({"log_level": ["debug"]})", "log_level [\"debug\"] is not accepted");
  expect_refused("[]", "not a JSON object");
  expect_refused(std::string(100, '['), "nested too deep");
  expect_refused(R"({"cache_dirs": "/x"})", "no option");
  expect_refused(R"({"on_miss": "compile"})", "no option");
  expect_refused(R"({"cache_dir": {"a": 1}})", "not accepted");
  expect_refused(R"({"cache_dir": true})", "not accepted");
  expect_refused(R"({"cache_ro": ["/a:/b"]})", "not accepted");
  expect_refused(R"({"cache_dir": "/a\u0000b"})", "not accepted");
  expect_refused(R"({"compile_threads": -3})", "not accepted");
  expect_refused(R"({"compile_threads": 1.5})", "not accepted");
  expect_refused(R"({"compile_threads": 1000})", "not accepted");
  expect_refused(R"({"log_level": "loud"})", "log_level \"loud\" is not accepted: debug, info");
  EXPECT_THAT(read().status().message(), testing::Not(HasSubstr("GEMVJIT_LOG"))) << "a variable that nobody set";
  EXPECT_THAT(read().status().message(), testing::Not(HasSubstr("json.exception")));
  expect_refused(R"({"cache_signatures": "some"})", "not accepted");
}

TEST_F(SettingsTest, AFileThatOthersMayWriteIsRefused) {
  write_text(user_, "{}");
  ASSERT_EQ(::chmod(user_.c_str(), 0666), 0);
  EXPECT_THAT(read().status().message(), HasSubstr("all users may write it"));
  ASSERT_EQ(::chmod(user_.c_str(), 0644), 0);
  EXPECT_TRUE(read());
  if (::geteuid() != 0) return;
  ASSERT_EQ(::chown(user_.c_str(), 65534, 65534), 0);
  EXPECT_THAT(read().status().message(), HasSubstr("it belongs to user 65534"));
  ASSERT_EQ(::chown(user_.c_str(), 0, 65534), 0);
  ASSERT_EQ(::chmod(user_.c_str(), 0664), 0);
  EXPECT_THAT(read().status().message(), HasSubstr("its group 65534 may write it"));
  ASSERT_EQ(::chown(user_.c_str(), 0, 0), 0);
  EXPECT_TRUE(read()) << "the owner's private group";
}

TEST_F(SettingsTest, AFileThatAnAclLetsOthersWriteIsRefused) {
  write_text(user_, "{}");
  const int error = test::set_acl(user_, {{false, 65534, 6}}, 4, 6);
  if (error == ENOTSUP) GTEST_SKIP() << "the file system of " << user_ << " has no ACLs";
  EXPECT_THAT(read().status().message(), HasSubstr("its ACL lets user 65534 write it"));
  ASSERT_EQ(::chmod(user_.c_str(), 0644), 0);
  EXPECT_TRUE(read());
}

// As a ConfigMap is mounted.
TEST_F(SettingsTest, LinksAreFollowed) {
  write_text(dir_.path("etc/real.json"), R"({"tuning_dir": "/t"})");
  std::filesystem::create_symlink(dir_.path("etc/real.json"), user_);
  EXPECT_EQ(value("GEMVJIT_TUNING_DIR"), "/t");
}

TEST_F(SettingsTest, OneFileOrNoneByTheVariable) {
  write_text(user_, R"({"tuning_dir": "/u"})");
  write_text(dir_.path("own.json"), R"({"tuning_dir": "/own"})");
  variables_["GEMVJIT_CONFIG"] = "none";
  EXPECT_EQ(value("GEMVJIT_TUNING_DIR"), "(none)");
  variables_["GEMVJIT_CONFIG"] = dir_.path("own.json");
  EXPECT_EQ(value("GEMVJIT_TUNING_DIR"), "/own");
  variables_["GEMVJIT_CONFIG"] = dir_.path("absent.json");
  EXPECT_EQ(read().status().code(), StatusCode::io_error);
  variables_["GEMVJIT_CONFIG"] = dir_.path("etc");
  EXPECT_THAT(read().status().message(), HasSubstr("no regular file"));
}

}  // namespace
}  // namespace gemvjit
