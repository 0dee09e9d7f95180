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
  void put_entry(std::int64_t n, std::array<std::uint8_t, 3> first) const {
    Entry entry;
    entry.id.key = {.n = n, .k = 64, .nt = 1, .flags = 0xf, .arch = {.sm = 90, .suffix = 'a'}};
    std::copy(first.begin(), first.end(), entry.id.digest.begin());
    entry.created_unix_seconds = 1700000000;
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
  EXPECT_EQ(cache({"ls"}).out, "0 entries, 0 damaged, 0 B\n");
  EXPECT_EQ(listed()["entries"], json::array());
  EXPECT_EQ(cache({"verify"}).exit_code, 0);
  EXPECT_EQ(document(cache({"stats", "--json"}))["entries"], 0);
  EXPECT_EQ(cache({"show", "0123456789"}).exit_code, 4);
  EXPECT_EQ(cache({"rm", "0123456789"}).exit_code, 4);
  EXPECT_EQ(cache({"rm", "--all"}).exit_code, 0);
  EXPECT_FALSE(std::filesystem::exists(cache_dir_));
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

}  // namespace
}  // namespace gemvjit::test
