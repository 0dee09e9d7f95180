#include "src/runtime/options.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <set>

#include "tests/support/temp_dir.h"

namespace gemvjit {
namespace {

EnvironmentReader environment_of(std::map<std::string, std::string> values) {
  return [values = std::move(values)](const char* name) -> std::optional<std::string> {
    const auto found = values.find(name);
    return found == values.end() ? std::nullopt : std::optional<std::string>(found->second);
  };
}

TEST(Options, DefaultsWithoutAnEnvironment) {
  const auto options = resolve_options({}, environment_of({}));
  ASSERT_TRUE(options) << options.status().text();
  EXPECT_EQ(options->cache_dir, "");
  EXPECT_EQ(options->cache_ro, std::vector<std::string>());
  EXPECT_EQ(options->tuning_dir, "");
  EXPECT_EQ(options->dump_dir, "");
  EXPECT_GE(options->compile_threads, 1);
  EXPECT_LE(options->compile_threads, 8);
  EXPECT_EQ(options->log_level, LogLevel::warning);
  EXPECT_EQ(options->device, device_current);
  EXPECT_FALSE(options->compile_on_miss);
}

TEST(Options, TheEnvironmentOverrulesDefaults) {
  const auto options = resolve_options({}, environment_of({{"GEMVJIT_CACHE_DIR", "/c"},
                                                           {"GEMVJIT_CACHE_RO", ":/a::/b.gjb:"},
                                                           {"GEMVJIT_TUNING_DIR", "/t"},
                                                           {"GEMVJIT_DUMP_DIR", "/d"},
                                                           {"GEMVJIT_COMPILE_THREADS", "17"},
                                                           {"GEMVJIT_LOG", "debug"}}));
  ASSERT_TRUE(options) << options.status().text();
  EXPECT_EQ(options->cache_dir, "/c");
  EXPECT_EQ(options->cache_ro, (std::vector<std::string>{"/a", "/b.gjb"}));
  EXPECT_EQ(options->tuning_dir, "/t");
  EXPECT_EQ(options->dump_dir, "/d");
  EXPECT_EQ(options->compile_threads, 17);
  EXPECT_EQ(options->log_level, LogLevel::debug);
}

TEST(Options, TheCallerOverrulesTheEnvironment) {
  OptionRequest request;
  request.cache_dir = "";
  request.cache_ro = "";
  request.tuning_dir = "/mine";
  request.dump_dir = "";
  request.compile_threads = 3;
  request.log_level = LogLevel::off;
  const auto options = resolve_options(request, environment_of({{"GEMVJIT_CACHE_DIR", "/c"},
                                                                {"GEMVJIT_CACHE_RO", "/a"},
                                                                {"GEMVJIT_TUNING_DIR", "/t"},
                                                                {"GEMVJIT_DUMP_DIR", "/d"},
                                                                {"GEMVJIT_COMPILE_THREADS", "nonsense"},
                                                                {"GEMVJIT_LOG", "nonsense"}}));
  ASSERT_TRUE(options) << options.status().text();
  EXPECT_EQ(options->cache_dir, "");
  EXPECT_EQ(options->cache_ro, std::vector<std::string>());
  EXPECT_EQ(options->tuning_dir, "/mine");
  EXPECT_EQ(options->dump_dir, "");
  EXPECT_EQ(options->compile_threads, 3);
  EXPECT_EQ(options->log_level, LogLevel::off);
}

TEST(Options, SignaturesAreThoseOfTheEnvironment) {
  const auto defaults = resolve_options({}, environment_of({{"HOME", "/h"}}));
  ASSERT_TRUE(defaults);
  EXPECT_EQ(defaults->signatures.policy, SignaturePolicy::off);
  EXPECT_EQ(defaults->signatures.trust_dirs,
            (std::vector<std::string>{"/h/.config/gemvjit/trust", "/etc/gemvjit/trust"}));
  EXPECT_EQ(defaults->signatures.signing_key, "");
  const auto options = resolve_options({}, environment_of({{"GEMVJIT_CACHE_SIGNATURES", "bundles"},
                                                           {"GEMVJIT_CACHE_TRUST_DIR", "/t"},
                                                           {"GEMVJIT_CACHE_SIGNING_KEY", "/k"},
                                                           {"XDG_CONFIG_HOME", "/x"}}));
  ASSERT_TRUE(options);
  EXPECT_EQ(options->signatures.policy, SignaturePolicy::bundles);
  EXPECT_EQ(options->signatures.trust_dirs, (std::vector<std::string>{"/t"}));
  EXPECT_EQ(options->signatures.signing_key, "/k");
  EXPECT_EQ(resolve_options({}, environment_of({{"GEMVJIT_CACHE_SIGNATURES", "all"}}))->signatures.policy,
            SignaturePolicy::all);
  // A policy that is misspelt must not be taken for none.
  for (const char* wrong : {"All", "on", "1", "bundle"}) {
    const auto refused = resolve_options({}, environment_of({{"GEMVJIT_CACHE_SIGNATURES", wrong}}));
    ASSERT_FALSE(refused) << wrong;
    EXPECT_EQ(refused.status().code(), StatusCode::invalid_argument);
  }
}

TEST(Options, TheRuntimeDirectoryIsThatOfTheEnvironment) {
  EXPECT_EQ(resolve_options({}, environment_of({}))->runtime_dir, "");
  EXPECT_EQ(resolve_options({}, environment_of({{"XDG_RUNTIME_DIR", "/run/me"}}))->runtime_dir, "/run/me");
}

TEST(Options, TheCacheDirectoryFollowsXdg) {
  const auto cache = [](std::map<std::string, std::string> values) {
    return resolve_options({}, environment_of(std::move(values)))->cache_dir;
  };
  EXPECT_EQ(cache({{"XDG_CACHE_HOME", "/x"}, {"HOME", "/h"}}), "/x/gemvjit");
  EXPECT_EQ(cache({{"HOME", "/h"}}), "/h/.cache/gemvjit");
  EXPECT_EQ(cache({{"XDG_CACHE_HOME", "relative"}, {"HOME", "/h"}}), "/h/.cache/gemvjit");
  EXPECT_EQ(cache({{"GEMVJIT_CACHE_DIR", ""}, {"HOME", "/h"}}), "/h/.cache/gemvjit");
}

TEST(Options, ValuesThatMeanNothingAreNamed) {
  const auto refused = [](const OptionRequest& request, std::map<std::string, std::string> values, const char* part) {
    const auto options = resolve_options(request, environment_of(std::move(values)));
    ASSERT_FALSE(options) << part;
    EXPECT_EQ(options.status().code(), StatusCode::invalid_argument);
    EXPECT_NE(options.status().message().find(part), std::string::npos) << options.status().message();
  };
  for (const char* bad : {"abc", "0", "-1", "257", "3x", "99999999999"}) {
    refused({}, {{"GEMVJIT_COMPILE_THREADS", bad}}, "GEMVJIT_COMPILE_THREADS");
  }
  refused({}, {{"GEMVJIT_LOG", "loud"}}, "debug, info, warning, error or off");
  OptionRequest request;
  request.compile_threads = -2;
  refused(request, {}, "-2");
  request = {};
  request.device = -3;
  refused(request, {}, "-3");
}

// A row of the document for each row of the table, word for word, and no GEMVJIT_ variable of which nobody knows.
TEST(Options, TheDocumentationShowsTheTable) {
  const std::string text = test::read_text(std::string(GEMVJIT_SOURCE_DIR) + "/docs/configuration.md");
  std::set<std::string> known = {"GEMVJIT_NVRTC", "GEMVJIT_LIBCUDA", "GEMVJIT_CONFIG"};
  for (const OptionRow& row : option_rows()) {
    const std::string variable = *row.variable == '\0' ? "" : fmt::format("`{}` ", row.variable);
    const std::string line = fmt::format("| `{}` | {}| {} | {} |\n", row.name, variable, row.default_text, row.text);
    EXPECT_NE(text.find(line), std::string::npos) << "docs/configuration.md lacks the line\n" << line;
    known.insert(row.variable);
  }
  for (const char* variable : {"GEMVJIT_NVRTC", "GEMVJIT_LIBCUDA", "GEMVJIT_CONFIG", "CUDA_HOME", "VIRTUAL_ENV",
                               "CONDA_PREFIX", "XDG_CACHE_HOME", "HOME"}) {
    EXPECT_NE(text.find(std::string("`") + variable + "`"), std::string::npos) << variable;
  }
  // Of the table's second column and of the other variables; constants and build switches have other prefixes or rooms.
  const std::string rows = text.substr(0, text.find("## Where the libraries"));
  const std::regex name("`(GEMVJIT_[A-Z_]+)`");
  for (std::sregex_iterator at(rows.begin(), rows.end(), name), end; at != end; ++at) {
    EXPECT_TRUE(known.count((*at)[1].str()))
        << "docs/configuration.md names " << (*at)[1].str() << ", which nobody reads";
  }
}

}  // namespace
}  // namespace gemvjit
