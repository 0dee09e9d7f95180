// gemvjit-cache on caches of one or two small kernels.
#include "cache/store.h"
#include "tests/tools/cli_fixture.h"

namespace gemvjit::test {
namespace {

using nlohmann::json;

class CacheCli : public CliTest {
 protected:
  // Two kernels, of two targets.
  void warm_two() const {
    const ProgramOutput output = warmup({"--shape", "64x64:dequant", "--arch", "sm_90a,sm_120a", "-q"});
    ASSERT_EQ(output.exit_code, 0) << output.err;
  }
  // An entry with a digest of the test's choice: `first` and zeros. Its key has flags that no version makes.
  void put_entry(std::int64_t n, std::array<std::uint8_t, 3> first, std::int64_t created = 1700000000) const {
    Entry entry;
    entry.id.key = {.n = n, .k = 64, .nt = 1, .flags = 0xf, .arch = {.sm = 90, .suffix = 'a'}};
    std::copy(first.begin(), first.end(), entry.id.digest.begin());
    entry.created_unix_seconds = created;
    entry.cubin.bytes = {1, 2, 3};
    entry.cubin.entry_name = "kernel";
    entry.cubin.compiler_version = "NVRTC 0.0";
    const Status status = make_dir_store(cache_dir_, Log::silent())->put(entry);
    ASSERT_TRUE(status) << status.message();
  }
  json listed() const { return document(cache({"ls", "--json"})); }
};

TEST_F(CacheCli, BadUsageIsTwo) {
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{},
                                                    {"frobnicate"},
                                                    {"ls", "extra"},
                                                    {"ls", "--colour"},
                                                    {"show"},
                                                    {"show", "a", "b"},
                                                    {"show", "neither-key-nor-digest"},
                                                    {"show", "abc"},
                                                    {"rm"},
                                                    {"rm", "--all", "0123456789"},
                                                    {"ls", "--cache-dir", ""},
                                                    {"ls", "stats"}}) {
    const ProgramOutput output = cache(arguments);
    EXPECT_EQ(output.exit_code, 2) << (arguments.empty() ? "" : arguments.back()) << "\n" << output.err;
    EXPECT_NE(output.err, "");
    EXPECT_EQ(output.out, "");
  }
  EXPECT_EQ(cache({"--help"}).exit_code, 0);
  EXPECT_EQ(cache({"rm", "--help"}).exit_code, 0);
}

TEST_F(CacheCli, AnAbsentCacheIsAnEmptyOne) {
  EXPECT_EQ(cache({"ls"}).out, "0 entries, 0 damaged, 0 unreadable, 0 B\n");
  EXPECT_EQ(listed()["entries"], json::array());
  EXPECT_EQ(cache({"verify"}).exit_code, 0);
  EXPECT_EQ(document(cache({"stats", "--json"}))["entries"], 0);
  EXPECT_EQ(cache({"show", "0123456789"}).exit_code, 4);
  EXPECT_EQ(cache({"rm", "0123456789"}).exit_code, 4);
  EXPECT_EQ(cache({"rm", "--all"}).exit_code, 0);
  EXPECT_FALSE(std::filesystem::exists(cache_dir_));
}

TEST_F(CacheCli, AnAbsentFolderThatWasNamedIsFive) {
  const std::string typo = folder_.path("typo");
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"ls"}, {"verify"}, {"stats"}, {"rm", "--all"}, {"show", "0123456789"}}) {
    std::vector<std::string> arguments = command;
    arguments.insert(arguments.end(), {"--cache-dir", typo});
    const ProgramOutput output = cache(arguments);
    EXPECT_EQ(output.exit_code, 5) << command.front();
    EXPECT_TRUE(contains(output.err, typo)) << output.err;
  }
  EXPECT_EQ(cache({"path", "--cache-dir", typo}).exit_code, 0);
  EXPECT_EQ(cache({"doctor", "--cache-dir", typo}).exit_code, 0) << "a warmup would make it";
}

TEST_F(CacheCli, OptionsOfAllCommandsMayComeFirst) {
  put_entry(64, {0xab, 0xcd, 0x01});
  environment_["GEMVJIT_CACHE_DIR"] = "";
  const json first = document(cache({"--cache-dir", cache_dir_, "--json", "stats"}));
  EXPECT_EQ(first["entries"], 1);
  EXPECT_EQ(document(cache({"--json", "stats", "--cache-dir", cache_dir_})), first);
  EXPECT_EQ(document(cache({"stats", "--cache-dir", cache_dir_, "--json"})), first);
  EXPECT_EQ(document(cache({"--json", "--cache-dir", cache_dir_, "show", "abcd01"}))["entries"].size(), 1u);
}

TEST_F(CacheCli, VersionIsTheLibrarys) {
  const ProgramOutput output = cache({"--version"});
  EXPECT_EQ(output.exit_code, 0);
  EXPECT_EQ(output.out, warmup({"--version"}).out);
}

TEST_F(CacheCli, WithJsonAnErrorIsADocumentToo) {
  put_entry(64, {0xab, 0xcd, 0x01});
  put_entry(128, {0xab, 0xcd, 0x02});
  struct Case {
    std::vector<std::string> arguments;
    int exit_code;
    const char* said;
  };
  const Case cases[] = {
      {{"--json"}, 2, "subcommand"},           {{"ls", "--json", "--colour"}, 2, "--colour"},
      {{"--json", "rm"}, 2, "rm needs"},       {{"show", "abcd", "--json"}, 2, "ambiguous"},
      {{"show", "abce", "--json"}, 4, "abce"}, {{"ls", "--cache-dir", folder_.path("typo"), "--json"}, 5, "typo"}};
  for (const Case& c : cases) {
    const ProgramOutput output = cache(c.arguments);
    EXPECT_EQ(output.exit_code, c.exit_code) << c.said;
    EXPECT_TRUE(contains(error_message(output), c.said)) << output.out;
    EXPECT_TRUE(contains(output.err, c.said)) << output.err;
  }
}

TEST_F(CacheCli, AResultThatCannotBeWrittenIsFive) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "there is no /dev/full here";
  for (const std::vector<std::string>& command : {std::vector<std::string>{"ls"},
                                                  {"stats"},
                                                  {"path"},
                                                  {"doctor"},
                                                  {"ls", "--json"},
                                                  {"verify"},
                                                  {"--help"},
                                                  {"--version"}}) {
    std::vector<std::string> arguments = command;
    arguments.insert(arguments.begin(), GEMVJIT_CACHE_BINARY);
    const ProgramOutput output = Program(arguments, environment_, "/dev/full").wait();
    EXPECT_EQ(output.exit_code, 5) << command.front();
    EXPECT_TRUE(contains(output.err, "could not be written to stdout")) << output.err;
  }
}

TEST_F(CacheCli, ADamagedEntryIsCalledDamagedByItsName) {
  put_entry(64, {0xab, 0xcd, 0x01});
  const std::string key = listed()["entries"][0]["key"], digest = listed()["entries"][0]["digest"];
  damage(entry_files(cache_dir_).at(0));
  for (const char* command : {"show", "rm"}) {
    for (const std::string& name : {key, digest, digest.substr(0, 6)}) {
      const ProgramOutput output = cache({command, name});
      EXPECT_EQ(output.exit_code, 7) << name;
      EXPECT_TRUE(contains(output.err, "is damaged") && contains(output.err, "rm --damaged")) << output.err;
    }
    EXPECT_EQ(cache({command, "abce"}).exit_code, 4);
  }
  EXPECT_EQ(entry_files(cache_dir_).size(), 1u);
}

TEST_F(CacheCli, GcRemovesByTargetAgeAndSize) {
  for (int i = 1; i <= 3; ++i) put_entry(64 * i, {static_cast<std::uint8_t>(i), 1, 2});
  EXPECT_EQ(cache({"gc"}).exit_code, 2) << "nothing said";
  for (const char* wrong : {"x", "1T", "-1", "99999999999999999999"}) {
    EXPECT_EQ(cache({"gc", "--max-bytes", wrong}).exit_code, 2) << wrong;
  }
  EXPECT_EQ(cache({"gc", "--max-age", "1w"}).exit_code, 2);
  EXPECT_EQ(cache({"gc", "--arch", "ampeer"}).exit_code, 2);
  EXPECT_EQ(document(cache({"gc", "--max-age", "1d", "--json"}))["removed"].size(), 0u);
  EXPECT_EQ(document(cache({"gc", "--arch", "sm_120a", "--json"}))["kept"], 3);
  const auto dry = document(cache({"gc", "--max-bytes", "1", "--dry-run", "--json"}));
  EXPECT_EQ(dry["removed"].size(), 3u);
  EXPECT_EQ(entry_files(cache_dir_).size(), 3u);
  const ProgramOutput output = cache({"gc", "--arch", "sm_90a", "--max-bytes", "0K"});
  EXPECT_EQ(output.exit_code, 0) << output.err;
  EXPECT_TRUE(contains(output.out, "3 entries of")) << output.out;
  EXPECT_TRUE(entry_files(cache_dir_).empty());
}

TEST_F(CacheCli, AFolderInAnEntrysPlaceIsRemovedByHand) {
  put_entry(64, {0xab, 0xcd, 0x01});
  const std::filesystem::path file = entry_files(cache_dir_).at(0);
  std::filesystem::remove(file);
  std::filesystem::create_directory(file);
  const ProgramOutput verified = cache({"verify"});
  EXPECT_EQ(verified.exit_code, 7);
  EXPECT_TRUE(contains(verified.out, "by hand")) << verified.out;
  EXPECT_FALSE(contains(verified.out, "rm --damaged")) << verified.out;
  const ProgramOutput removed = cache({"rm", "--damaged"});
  EXPECT_EQ(removed.exit_code, 6);
  EXPECT_TRUE(contains(removed.err, "by hand")) << removed.err;
}

TEST_F(CacheCli, WhatMayNotBeReadIsNotDamaged) {
  put_entry(64, {0xab, 0xcd, 0x01});
  put_entry(128, {0xab, 0xcd, 0x02});
  const std::filesystem::path file = entry_files(cache_dir_).at(0);
  std::filesystem::permissions(file, std::filesystem::perms::none);
  const bool root = ::geteuid() == 0;  // may read everything, so that somebody else has to try
  if (root) {
    std::filesystem::permissions(folder_.path(), std::filesystem::perms(0755));
    std::filesystem::permissions(cache_dir_, std::filesystem::perms(0777));
    for (const auto& item : std::filesystem::recursive_directory_iterator(cache_dir_)) {
      if (item.is_directory()) std::filesystem::permissions(item.path(), std::filesystem::perms(0777));
      if (item.is_regular_file() && item.path() != file) {
        std::filesystem::permissions(item.path(), std::filesystem::perms(0644));
      }
    }
  }
  const auto run = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), GEMVJIT_CACHE_BINARY);
    return Program(arguments, environment_, "", root).wait();
  };
  const ProgramOutput verified = run({"verify", "--json"});
  if (verified.exit_code == 126 || verified.exit_code == 127) GTEST_SKIP() << "another user may not run the program";
  EXPECT_EQ(verified.exit_code, 5) << verified.out;
  EXPECT_EQ(document(verified)["damaged"], json::array());
  EXPECT_EQ(document(verified)["unreadable"].at(0)["path"], file.string());
  EXPECT_EQ(document(run({"ls", "--json"}))["unreadable"].size(), 1u);
  EXPECT_EQ(document(run({"stats", "--json"}))["unreadable"], 1);
  EXPECT_EQ(run({"rm", "--damaged"}).exit_code, 0);
  EXPECT_EQ(entry_files(cache_dir_).size(), 2u) << "it may be whole";
}

TEST_F(CacheCli, ACacheThatIsAFileIsFive) {
  const std::string file = folder_.write("file", "x");
  for (const char* command : {"ls", "verify", "stats"}) {
    const ProgramOutput output = cache({command, "--cache-dir", file});
    EXPECT_EQ(output.exit_code, 5) << command;
    EXPECT_TRUE(contains(output.err, file)) << output.err;
  }
  EXPECT_EQ(cache({"doctor", "--cache-dir", file}).exit_code, 5);
}

TEST_F(CacheCli, ListAndShowTellTheSame) {
  warm_two();
  const json entries = listed()["entries"];
  ASSERT_EQ(entries.size(), 2u);
  const json entry = entries[1];
  const std::string key = entry["key"], digest = entry["digest"], path = entry["path"];
  EXPECT_TRUE(key.starts_with("n64-k64-nt0-f"));
  EXPECT_EQ(entry["family"], "dequantize_rows");
  EXPECT_GT(entry["registers"], 0);
  EXPECT_GT(entry["cubin_bytes"], 0);
  EXPECT_EQ(entry["file_bytes"], std::filesystem::file_size(path));
  EXPECT_TRUE(entry["static_smem_bytes"].is_number());
  EXPECT_TRUE(entry["dynamic_smem_bytes"].is_number());
  EXPECT_TRUE(entry["spill_store_bytes"].is_number());
  EXPECT_GT(entry["compile_ms"], 0);
  EXPECT_GE(entry["age_seconds"], 0);
  EXPECT_LT(entry["age_seconds"], 3600);
  EXPECT_TRUE(contains(entry["compiler"], "NVRTC"));

  for (const std::string& name : {key, digest, digest.substr(0, 12)}) {
    const ProgramOutput output = cache({"show", name, "--json"});
    ASSERT_EQ(output.exit_code, 0) << output.err;
    json shown = document(output)["entries"];
    ASSERT_EQ(shown.size(), 1u);
    shown[0]["age_seconds"] = entry["age_seconds"];
    EXPECT_EQ(shown[0]["signature"]["state"], "none");  // which only show looks at
    shown[0].erase("signature");
    EXPECT_EQ(shown[0], entry);
  }
  const ProgramOutput text = cache({"show", key});
  EXPECT_TRUE(contains(text.out, digest) && contains(text.out, path)) << text.out;
  const ProgramOutput table = cache({"ls"});
  EXPECT_TRUE(contains(table.out, key) && contains(table.out, "2 entries, 0 damaged")) << table.out;
}

TEST_F(CacheCli, StatsCountByTargetAndFamily) {
  warm_two();
  const json stats = document(cache({"stats", "--json"}));
  EXPECT_EQ(stats["entries"], 2);
  EXPECT_EQ(stats["damaged"], 0);
  ASSERT_EQ(stats["groups"].size(), 2u);
  EXPECT_EQ(stats["groups"][0]["arch"], "sm_120a");
  EXPECT_EQ(stats["groups"][1]["arch"], "sm_90a");
  EXPECT_EQ(stats["groups"][0]["bytes"].get<int>() + stats["groups"][1]["bytes"].get<int>(), stats["bytes"]);
  EXPECT_TRUE(contains(cache({"stats"}).out, "sm_120a"));
}

TEST_F(CacheCli, VerifyFindsDamageAndRmRemovesJustThat) {
  warm_two();
  EXPECT_EQ(cache({"verify"}).exit_code, 0);
  const std::string whole = listed()["entries"][0]["path"], victim = listed()["entries"][1]["path"];
  damage(victim);

  const ProgramOutput text = cache({"verify"});
  EXPECT_EQ(text.exit_code, 7);
  EXPECT_TRUE(contains(text.out, victim)) << text.out;
  const ProgramOutput verified = cache({"verify", "--json"});
  EXPECT_EQ(verified.exit_code, 7);
  EXPECT_EQ(document(verified)["checked"], 2);
  EXPECT_EQ(document(verified)["whole"], 1);
  EXPECT_EQ(document(verified)["damaged"].at(0)["path"], victim);
  EXPECT_EQ(cache({"ls"}).exit_code, 0);
  EXPECT_EQ(listed()["damaged"].at(0)["path"], victim);
  EXPECT_EQ(document(cache({"stats", "--json"}))["damaged"], 1);

  const ProgramOutput removed = cache({"rm", "--damaged", "--json"});
  EXPECT_EQ(removed.exit_code, 0) << removed.err;
  EXPECT_EQ(document(removed)["removed"], json::array({victim}));
  EXPECT_TRUE(std::filesystem::exists(whole));
  EXPECT_FALSE(std::filesystem::exists(victim));
  EXPECT_EQ(cache({"verify"}).exit_code, 0);
}

TEST_F(CacheCli, AnEntryUnderAnotherNameIsDamaged) {
  warm_two();
  const std::filesystem::path one = listed()["entries"][0]["path"].get<std::string>();
  const std::filesystem::path other = listed()["entries"][1]["path"].get<std::string>();
  std::filesystem::copy_file(one, other, std::filesystem::copy_options::overwrite_existing);
  const ProgramOutput output = cache({"verify"});
  EXPECT_EQ(output.exit_code, 7);
  EXPECT_TRUE(contains(output.out, other.string())) << output.out;
}

TEST_F(CacheCli, RmTakesKeysAndPrefixesAndNothingIfOneIsWrong) {
  warm_two();
  const json entries = listed()["entries"];
  const std::string key = entries[0]["key"], digest = entries[1]["digest"];
  EXPECT_EQ(cache({"rm", key, "0000000000000000"}).exit_code, 4);
  EXPECT_EQ(listed()["entries"].size(), 2u) << "a wrong name removes nothing";
  EXPECT_EQ(cache({"rm", key}).exit_code, 0);
  ASSERT_EQ(listed()["entries"].size(), 1u);
  EXPECT_EQ(listed()["entries"][0]["digest"], digest);
  EXPECT_EQ(cache({"rm", digest.substr(0, 16)}).exit_code, 0);
  EXPECT_EQ(listed()["entries"].size(), 0u);
}

TEST_F(CacheCli, AnAmbiguousPrefixListsItsMatchesAndRemovesNothing) {
  put_entry(64, {0xab, 0xcd, 0x01});
  put_entry(128, {0xab, 0xcd, 0x02});
  put_entry(192, {0xab, 0xce, 0x00});
  for (const char* command : {"show", "rm"}) {
    const ProgramOutput output = cache({command, "ABCD"});
    EXPECT_EQ(output.exit_code, 2) << command;
    EXPECT_TRUE(contains(output.err, "abcd01")) << output.err;
    EXPECT_TRUE(contains(output.err, "abcd02")) << output.err;
    EXPECT_FALSE(contains(output.err, "abce00")) << output.err;
  }
  EXPECT_EQ(listed()["entries"].size(), 3u);
  EXPECT_EQ(cache({"rm", "abcd02"}).exit_code, 0);
  EXPECT_EQ(listed()["entries"].size(), 2u);
}

TEST_F(CacheCli, OneKeyMayHaveSeveralEntries) {
  put_entry(64, {0xab, 0xcd, 0x01});
  put_entry(64, {0xab, 0xcd, 0x02});
  const std::string key = listed()["entries"][0]["key"];
  EXPECT_EQ(document(cache({"show", key, "--json"}))["entries"].size(), 2u);
  EXPECT_EQ(cache({"rm", key}).exit_code, 0);
  EXPECT_EQ(listed()["entries"].size(), 0u);
}

TEST_F(CacheCli, WhenAndHowLongSomethingWasCompiledMayBeUnknown) {
  put_entry(64, {0xab, 0xcd, 0x01}, 0);  // as it comes from elsewhere
  const json entry = listed()["entries"].at(0);
  for (const char* name : {"created_unix_seconds", "age_seconds", "compile_ms"})
    EXPECT_EQ(entry[name], nullptr) << name;
  const std::string text = cache({"show", "abcd01"}).out;
  EXPECT_TRUE(contains(text, "compile time       unknown\n")) << text;
  EXPECT_TRUE(contains(text, "created            unknown\n")) << text;
  EXPECT_TRUE(contains(cache({"ls"}).out, "unknown")) << cache({"ls"}).out;
  EXPECT_TRUE(contains(cache({"stats"}).out, "unknown")) << cache({"stats"}).out;
}

TEST_F(CacheCli, AKeyOfAnotherVersionIsShownAsFarAsItIsKnown) {
  put_entry(64, {0xab, 0xcd, 0x01});
  const json entry = listed()["entries"].at(0);
  EXPECT_EQ(entry["family"], "unknown");
  EXPECT_EQ(entry["dynamic_smem_bytes"], nullptr);
  EXPECT_EQ(entry["created_unix_seconds"], 1700000000);
  const ProgramOutput text = cache({"show", "abcd01"});
  EXPECT_EQ(text.exit_code, 0);
  EXPECT_TRUE(contains(text.out, "2023-11-14 22:13:20 UTC")) << text.out;
  EXPECT_EQ(cache({"verify"}).exit_code, 0);
}

TEST_F(CacheCli, RmAllRemovesDamagedOnesToo) {
  warm_two();
  damage(entry_files(cache_dir_).at(0));
  EXPECT_EQ(cache({"rm", "--all"}).exit_code, 0);
  EXPECT_TRUE(entry_files(cache_dir_).empty());
}

TEST_F(CacheCli, PathSaysWhereAndWhy) {
  EXPECT_EQ(cache({"path"}).out, cache_dir_ + "\n");
  EXPECT_EQ(cache({"path", "--cache-dir", "/somewhere"}).out, "/somewhere\n");
  environment_["XDG_CACHE_HOME"] = "/xdg";
  environment_["HOME"] = "/home/me";
  EXPECT_EQ(document(cache({"path", "--json"}))["source"], "GEMVJIT_CACHE_DIR");
  environment_["GEMVJIT_CACHE_DIR"] = "";
  EXPECT_EQ(document(cache({"path", "--json"})), (json{{"cache_dir", "/xdg/gemvjit"}, {"source", "XDG_CACHE_HOME"}}));
  environment_["XDG_CACHE_HOME"] = "";
  EXPECT_EQ(document(cache({"path", "--json"})), (json{{"cache_dir", "/home/me/.cache/gemvjit"}, {"source", "HOME"}}));
  environment_["HOME"] = "";
  const ProgramOutput none = cache({"path"});
  EXPECT_EQ(none.exit_code, 5);
  EXPECT_TRUE(contains(none.err, "GEMVJIT_CACHE_DIR")) << none.err;
}

TEST_F(CacheCli, DoctorReportsWhatIsHereAndWhatIsNot) {
  environment_["GEMVJIT_LIBCUDA"] = folder_.path("no-libcuda.so");
  const ProgramOutput good = cache({"doctor", "--json"});
  EXPECT_EQ(good.exit_code, 0) << good.out;
  const json report = document(good);
  EXPECT_EQ(report["cache"]["path"], cache_dir_);
  EXPECT_EQ(report["cache"]["named_by"], "GEMVJIT_CACHE_DIR");
  EXPECT_EQ(report["cache"]["writable"], true);
  EXPECT_EQ(report["nvrtc"]["found"], true);
  const json& targets = report["nvrtc"]["targets"];
  EXPECT_NE(std::find(targets.begin(), targets.end(), "sm_90a"), targets.end()) << targets;
  EXPECT_EQ(report["driver"]["found"], false);
  EXPECT_TRUE(contains(report["driver"]["problem"], "no-libcuda.so")) << report["driver"];
  EXPECT_EQ(report["tuning"]["hash"].get<std::string>().size(), 64u);
  EXPECT_EQ(report["can_compile"], true);
  EXPECT_EQ(report["can_launch"], false);

  environment_["GEMVJIT_NVRTC"] = folder_.path("no-nvrtc");
  const ProgramOutput bad = cache({"doctor"});
  EXPECT_EQ(bad.exit_code, 5);
  EXPECT_TRUE(contains(bad.out, "no-nvrtc")) << bad.out;
  EXPECT_FALSE(std::filesystem::exists(cache_dir_)) << "the doctor makes nothing";
}

TEST_F(CacheCli, DoctorNamesTheTargetsThatTheLibraryUses) {
  environment_["GEMVJIT_LIBCUDA"] = FIXTURE_DEVICE_LIBCUDA;
  struct Case {
    const char* capability;
    json target;
  };
  for (const Case& c : {Case{"86", "sm_86"}, {"89", "sm_89"}, {"90", "sm_90a"}, {"120", "sm_120a"}, {"75", nullptr}}) {
    environment_["FAKE_CAPABILITY"] = c.capability;
    const json report = document(cache({"doctor", "--json"}));
    EXPECT_EQ(report["driver"]["devices"].at(0)["target"], c.target) << report["driver"];
    EXPECT_EQ(report["can_launch"], !c.target.is_null());
  }
  const std::string old_device = cache({"doctor"}).out;
  EXPECT_TRUE(contains(old_device, "7.5") && contains(old_device, "8.0")) << old_device;
  // A driver that fails, and no compiler.
  environment_["FAKE_COUNT_RESULT"] = "999";
  environment_["GEMVJIT_NVRTC"] = folder_.path("no-nvrtc");
  const ProgramOutput output = cache({"doctor", "--json"});
  EXPECT_EQ(output.exit_code, 5);
  EXPECT_TRUE(contains(document(output)["driver"]["problem"], "cuDeviceGetCount")) << output.out;
}

TEST_F(CacheCli, DoctorObjectsHaveTheSameFieldsWhateverIsMissing) {
  const auto fields = [](const json& object) {
    std::vector<std::string> names;
    for (const auto& [name, value] : object.items()) names.push_back(name);
    return names;
  };
  environment_["GEMVJIT_LIBCUDA"] = FIXTURE_DEVICE_LIBCUDA;
  const json found = document(cache({"doctor", "--json"}));
  environment_["GEMVJIT_LIBCUDA"] = folder_.path("no-libcuda.so");
  environment_["GEMVJIT_NVRTC"] = folder_.path("no-nvrtc");
  environment_["GEMVJIT_LOG"] = "loud";
  environment_["GEMVJIT_TUNING_DIR"] = folder_.path("no-tuning");
  const json missing = document(cache({"doctor", "--json"}));
  for (const char* section : {"options", "cache", "nvrtc", "driver", "tuning"}) {
    EXPECT_EQ(fields(missing[section]), fields(found[section])) << section;
  }
  EXPECT_EQ(missing["nvrtc"]["path"], nullptr);
  EXPECT_EQ(missing["nvrtc"]["version"], nullptr);
  EXPECT_EQ(missing["nvrtc"]["targets"], json::array());
}

TEST_F(CacheCli, DoctorRefusesSettingsThatNoContextWouldTake) {
  ASSERT_EQ(cache({"doctor"}).exit_code, 0);
  for (const auto& [variable, value] :
       Environment{{"GEMVJIT_LOG", "loud"}, {"GEMVJIT_COMPILE_THREADS", "257"}, {"GEMVJIT_TUNING_DIR", "/nowhere"}}) {
    const std::string before = environment_[variable];
    environment_[variable] = value;
    const ProgramOutput output = cache({"doctor"});
    EXPECT_EQ(output.exit_code, 5) << variable;
    EXPECT_TRUE(contains(output.out, value)) << output.out;
    environment_[variable] = before;
  }
  folder_.write("tuning/bad.json", R"({"schema": 1, "archs": ["sm_90a"], "colour": 3})");
  environment_["GEMVJIT_TUNING_DIR"] = folder_.path("tuning");
  const ProgramOutput output = cache({"doctor", "--json"});
  EXPECT_EQ(output.exit_code, 5);
  EXPECT_TRUE(contains(document(output)["tuning"]["problem"], "bad.json")) << output.out;
}

TEST_F(CacheCli, DoctorLooksWhereEntriesAre) {
  std::filesystem::create_directories(cache_dir_);
  const std::string versioned = folder_.write("cache/v1", "in the way");
  ProgramOutput output = cache({"doctor", "--json"});
  EXPECT_EQ(output.exit_code, 5);
  EXPECT_TRUE(contains(document(output)["cache"]["problem"], versioned)) << output.out;
  std::filesystem::remove(versioned);
  const std::string target = folder_.write("cache/v1/sm_90a", "in the way");
  output = cache({"doctor", "--json"});
  EXPECT_EQ(output.exit_code, 5);
  EXPECT_TRUE(contains(document(output)["cache"]["problem"], target)) << output.out;
  std::filesystem::remove(target);
  std::filesystem::create_directory(target);
  EXPECT_EQ(cache({"doctor"}).exit_code, 0);
}

}  // namespace
}  // namespace gemvjit::test
