// gemvjit-cache with bundles and read-only layers: export, import, explain, verify --deep, stats --prometheus, doctor.
#include <sys/stat.h>

#include "cache/bundle.h"
#include "cache/layout.h"
#include "cache/store.h"
#include "cache/usage_ledger.h"
#include "src/compile/specialize.h"
#include "tests/tools/cli_fixture.h"

namespace gemvjit::test {
namespace {

using nlohmann::json;

class BundleCli : public CliTest {
 protected:
  // A key that this version makes.
  static KernelKey key(std::int64_t n = 64, int sm = 90) {
    KernelKey parsed = *KernelKey::parse("n64-k4096-nt1-f0000410208848021-sm_90a");
    parsed.n = n;
    parsed.arch.sm = sm;
    return parsed;
  }
  static Entry entry(const KernelKey& of, std::uint8_t answer = 1) {
    Entry made;
    made.id.key = of;
    if (const auto recipe = specialize(of)) made.id = recipe->id();
    made.created_unix_seconds = 1700000000;
    made.cubin.bytes = {answer, 2, 3};
    made.cubin.entry_name = "kernel";
    made.cubin.compiler_version = "NVRTC 0.0";
    return made;
  }
  void put(const Entry& made, const std::string& root) const {
    const Status status = make_dir_store(root, Log::silent())->put(made);
    ASSERT_TRUE(status) << status.message();
  }
  void fill() const {
    for (const auto& of : {key(64), key(128), key(64, 120)}) put(entry(of), cache_dir_);
  }
  std::string bundle(const std::string& name, const std::vector<Entry>& entries) const {
    std::vector<const Entry*> pointers;
    for (const Entry& one : entries) pointers.push_back(&one);
    EXPECT_TRUE(write_bundle(folder_.path(name), pointers));
    return folder_.path(name);
  }

  std::string file_ = folder_.path("out.gjb");
};

// `ulimit -f`: an error like that of a full disk, not a signal.
TEST_F(BundleCli, AnExportBeyondTheLimitOfAFilesSizeFails) {
  Entry large = entry(key());
  large.cubin.bytes.assign(20'000, 1);
  put(large, cache_dir_);
  const auto limited = run_program(
      {"/bin/sh", "-c", "ulimit -f 8; exec \"$0\" \"$@\"", GEMVJIT_CACHE_BINARY, "export", file_}, environment_);
  EXPECT_LT(limited.exit_code, 128) << limited.err;
  EXPECT_NE(limited.exit_code, 0);
  EXPECT_TRUE(contains(limited.err, "File too large")) << limited.err;
  EXPECT_FALSE(std::filesystem::exists(file_));
}

TEST_F(BundleCli, BadUsageIsTwo) {
  fill();
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"export"},
                                                    {"import"},
                                                    {"import", file_, "more"},
                                                    {"explain"},
                                                    {"explain", "neither-key-nor-digest"},
                                                    {"verify", "--repair"},
                                                    {"stats", "--prometheus", "--json"},
                                                    {"export", file_, "--arch", "sm_x"},
                                                    {"export", file_, "neither-key-nor-digest"}}) {
    const ProgramOutput output = cache(arguments);
    EXPECT_EQ(output.exit_code, 2) << arguments.front() << "\n" << output.out << output.err;
    EXPECT_NE(output.err, "");
    EXPECT_FALSE(std::filesystem::exists(file_));
  }
}

TEST_F(BundleCli, ExportGivesTheSameBytesTwiceAndImportsElsewhere) {
  fill();
  const json written = document(cache({"export", file_, "--json"}));
  EXPECT_EQ(written["entries"], 3);
  EXPECT_EQ(written["bytes"], std::filesystem::file_size(file_));
  EXPECT_EQ(written["left_out"], json::array());
  const std::string first = read_text(file_);
  EXPECT_EQ(cache({"export", file_}).exit_code, 0);
  EXPECT_EQ(read_text(file_), first);

  const std::string other = folder_.path("other");
  const json imported = document(cache({"import", file_, "--cache-dir", other, "--json"}));
  EXPECT_EQ(imported["imported"], 3);
  EXPECT_EQ(imported["kept"], 0);
  EXPECT_EQ(document(cache({"import", file_, "--cache-dir", other, "--json"}))["kept"], 3);
  const std::string again = folder_.path("again.gjb");
  EXPECT_EQ(cache({"export", again, "--cache-dir", other}).exit_code, 0);
  EXPECT_EQ(read_text(again), first);
}

TEST_F(BundleCli, ExportChoosesByNameAndTarget) {
  fill();
  EXPECT_EQ(document(cache({"export", file_, "--arch", "sm_90a", "--json"}))["entries"], 2);
  const std::string name = key(128).text();
  EXPECT_EQ(document(cache({"export", file_, name, name, "--json"}))["entries"], 1);
  EXPECT_EQ((*Bundle::open(file_))->items().at(0).id, entry(key(128)).id);
  const std::string before = read_text(file_);
  EXPECT_EQ(cache({"export", file_, key(4096).text()}).exit_code, 4);
  EXPECT_EQ(cache({"export", file_, name, "--arch", "sm_120a"}).exit_code, 4);
  EXPECT_EQ(cache({"export", folder_.path("absent/x.gjb")}).exit_code, 6);
  EXPECT_EQ(read_text(file_), before);
}

TEST_F(BundleCli, ExportLeavesOutWhatIsDamagedAndSaysSo) {
  fill();
  const std::string path = entry_path(cache_dir_, entry(key(128)).id);
  damage(path);
  const ProgramOutput output = cache({"export", file_});
  EXPECT_EQ(output.exit_code, 7);
  EXPECT_TRUE(contains(output.err, path)) << output.err;
  EXPECT_EQ((*Bundle::open(file_))->items().size(), 2u);
}

// Every entry is verified before the first is put.
TEST_F(BundleCli, ImportOfADamagedBundleChangesNothing) {
  bundle("out.gjb", {entry(key(64)), entry(key(128)), entry(key(192))});
  const std::string whole = read_text(file_);
  std::size_t at = 0;
  {
    const auto opened = Bundle::open(file_);
    at = (*opened)->items().back().offset + 50;
  }
  for (const std::size_t position : {at, std::size_t{3}, whole.size() - 100, whole.size() - 1}) {
    std::string bad = whole;
    bad[position] = static_cast<char>(bad[position] ^ 1);
    std::ofstream(file_, std::ios::binary | std::ios::trunc) << bad;
    const ProgramOutput output = cache({"import", file_});
    EXPECT_EQ(output.exit_code, 7) << position;
    EXPECT_TRUE(contains(output.err, "nothing was imported")) << output.err;
    EXPECT_FALSE(std::filesystem::exists(cache_dir_));
  }
  EXPECT_EQ(cache({"import", folder_.path("absent.gjb")}).exit_code, 4);
  EXPECT_EQ(cache({"import", folder_.path()}).exit_code, 5);
}

// B31: an import leaves what is there; two answers of one compiler are said.
TEST_F(BundleCli, ImportLeavesWhatIsThere) {
  put(entry(key(64), 9), cache_dir_);
  bundle("out.gjb", {entry(key(64), 1), entry(key(128), 1)});
  const std::string local = read_text(entry_path(cache_dir_, entry(key(64)).id));
  const ProgramOutput output = cache({"import", file_, "--json"});
  EXPECT_EQ(output.exit_code, 0);
  EXPECT_EQ(document(output)["imported"], 1);
  EXPECT_EQ(document(output)["kept"], 1);
  EXPECT_EQ(document(output)["differs"].size(), 1u);
  EXPECT_TRUE(contains(output.err, "differs from the bundle's")) << output.err;
  EXPECT_EQ(read_text(entry_path(cache_dir_, entry(key(64)).id)), local);
}

TEST_F(BundleCli, ExplainNamesTheLayerOfAHit) {
  put(entry(key(64)), cache_dir_);
  const std::string image = bundle("image.gjb", {entry(key(64)), entry(key(128))});
  environment_["GEMVJIT_CACHE_RO"] = folder_.path("absent") + ":" + image;
  const json local = document(cache({"explain", key(64).text(), "--json"}));
  EXPECT_EQ(local["result"], "hit");
  EXPECT_EQ(local["layer"], cache_dir_);
  const ProgramOutput layered = cache({"explain", key(128).text(), "--json"});
  EXPECT_EQ(layered.exit_code, 0);
  EXPECT_EQ(document(layered)["layer"], image);
  EXPECT_EQ(document(layered)["layers"].size(), 3u);
  EXPECT_TRUE(contains(document(layered)["layers"][1]["problem"], "absent"));
  EXPECT_EQ(document(cache({"explain", to_hex(entry(key(64)).id.digest).substr(0, 12), "--json"}))["result"], "hit");
}

// B74: the report of a miss names the field that differs.
TEST_F(BundleCli, ExplainNamesTheFirstDifferingFieldOfAMiss) {
  put(entry(key(64)), cache_dir_);
  KernelKey rounds = key(64);
  rounds.flags += std::uint64_t{1} << 40;
  KernelKey both = rounds;
  both.n = 128;
  struct Case {
    KernelKey wanted;
    const char* field;
    std::size_t differences;
  };
  for (const Case& c :
       {Case{key(128), "n", 1}, Case{key(64, 120), "arch", 1}, Case{rounds, "rounds", 1}, Case{both, "n", 2}}) {
    const ProgramOutput output = cache({"explain", c.wanted.text(), "--json"});
    EXPECT_EQ(output.exit_code, 9) << c.wanted.text() << output.err;
    const json report = document(output);
    EXPECT_EQ(report["result"], "miss");
    ASSERT_EQ(report["nearest"]["differs"].size(), c.differences) << report.dump();
    EXPECT_EQ(report["nearest"]["differs"][0]["field"], c.field);
    EXPECT_EQ(report["nearest"]["key"], key(64).text());
    EXPECT_TRUE(contains(cache({"explain", c.wanted.text()}).out, std::string("first differing field: ") + c.field));
  }
}

// The same key of other kernel sources, as after an upgrade.
TEST_F(BundleCli, ExplainTellsAnotherRecipe) {
  Entry older = entry(key(64));
  older.id.digest[0] ^= 1;
  put(older, cache_dir_);
  const ProgramOutput output = cache({"explain", key(64).text()});
  EXPECT_EQ(output.exit_code, 9);
  EXPECT_TRUE(contains(output.out, "first differing field: recipe")) << output.out;
}

TEST_F(BundleCli, ExplainOfNothingAndOfADamagedEntry) {
  EXPECT_TRUE(contains(cache({"explain", key(64).text()}).out, "no layer has a whole entry"));
  EXPECT_EQ(cache({"explain", "n64-k64-nt1-f000000000000000f-sm_90a"}).exit_code, 4);
  put(entry(key(64)), cache_dir_);
  damage(entry_path(cache_dir_, entry(key(64)).id));
  const ProgramOutput output = cache({"explain", key(64).text(), "--json"});
  EXPECT_EQ(output.exit_code, 7);
  EXPECT_EQ(document(output)["result"], "damaged");
  EXPECT_EQ(cache({"explain", key(64).text(), "--cache-dir", cache_dir_ + "/"}).exit_code, 7);
  environment_["GEMVJIT_CACHE_RO"] = bundle("image.gjb", {entry(key(64))});
  const ProgramOutput served = cache({"explain", key(64).text(), "--json"});
  EXPECT_EQ(served.exit_code, 0);
  EXPECT_EQ(document(served)["damaged"].size(), 1u) << "the layer serves what the folder cannot";
}

TEST_F(BundleCli, VerifyDeepLooksIntoLayersAndRepairsOnlyTheFolder) {
  fill();
  const std::string layer = folder_.path("layer"), image = bundle("image.gjb", {entry(key(64)), entry(key(128))});
  put(entry(key(64)), layer);
  environment_["GEMVJIT_CACHE_RO"] = layer + ":" + image;
  json report = document(cache({"verify", "--deep", "--json"}));
  EXPECT_EQ(report["layers"].size(), 2u);
  EXPECT_EQ(report["layers"][1]["whole"], 2);
  EXPECT_EQ(report["differs"], json::array());

  const std::string local_file = entry_path(cache_dir_, entry(key(128)).id);
  const std::string layer_file = entry_path(layer, entry(key(64)).id);
  damage(local_file);
  EXPECT_EQ(cache({"verify", "--deep"}).exit_code, 7);
  EXPECT_TRUE(std::filesystem::exists(local_file));
  EXPECT_EQ(cache({"verify", "--deep", "--repair"}).exit_code, 0);
  EXPECT_FALSE(std::filesystem::exists(local_file));
  EXPECT_EQ(cache({"verify"}).exit_code, 0);

  damage(layer_file);
  const std::string harmed = read_text(layer_file);
  const ProgramOutput output = cache({"verify", "--deep", "--repair", "--json"});
  EXPECT_EQ(output.exit_code, 7);
  EXPECT_EQ(document(output)["layers"][0]["damaged"].size(), 1u);
  EXPECT_EQ(document(output)["removed"], json::array());
  EXPECT_EQ(read_text(layer_file), harmed);
  EXPECT_EQ(cache({"verify"}).exit_code, 0) << "without --deep no layer is looked at";
}

TEST_F(BundleCli, VerifyDeepReportsTwoAnswersToOneRecipe) {
  put(entry(key(64), 9), cache_dir_);
  environment_["GEMVJIT_CACHE_RO"] = bundle("image.gjb", {entry(key(64), 1)});
  const ProgramOutput output = cache({"verify", "--deep", "--json"});
  EXPECT_EQ(output.exit_code, 7);
  ASSERT_EQ(document(output)["differs"].size(), 1u);
  EXPECT_EQ(document(output)["differs"][0]["paths"].size(), 2u);
}

TEST_F(BundleCli, PrometheusText) {
  fill();
  environment_["GEMVJIT_CACHE_RO"] = bundle("image.gjb", {entry(key(64))}) + ":" + folder_.path("ab\"sent");
  const ProgramOutput output = cache({"stats", "--prometheus"});
  EXPECT_EQ(output.exit_code, 0) << output.err;
  for (const std::string& line :
       {std::string("# TYPE gemvjit_cache_entries gauge\n"), std::string("gemvjit_cache_entries{arch=\"sm_90a\""),
        std::string("gemvjit_cache_damaged 0\n"),
        "gemvjit_cache_layer_entries{layer=\"" + folder_.path("image.gjb") + "\",kind=\"bundle\"} 1\n",
        "gemvjit_cache_layer_usable{layer=\"" + folder_.path("ab\\\"sent") + "\",kind=\"none\"} 0\n"}) {
    EXPECT_TRUE(contains(output.out, line)) << line << "\n" << output.out;
  }
}

// An import keeps to the cap that the library keeps to, and what it wrote stands in the ledger at once.
TEST_F(BundleCli, AnImportStaysBelowTheCap) {
  constexpr std::uint64_t cap = std::uint64_t{1} << 20;
  std::vector<Entry> entries;
  for (int i = 0; i < 16; ++i) {
    entries.push_back(entry(key(64 + 64 * i)));
    entries.back().cubin.bytes.assign(200'000, static_cast<std::uint8_t>(i));
  }
  const std::string large = bundle("large.gjb", entries);
  environment_["GEMVJIT_CACHE_MAX_BYTES"] = std::to_string(cap);
  const ProgramOutput output = cache({"import", large, "--json"});
  EXPECT_EQ(output.exit_code, 0) << output.err;
  const json report = document(output);
  EXPECT_EQ(report["imported"], 16);
  std::uint64_t bytes = 0;
  const auto files = entry_files(cache_dir_);
  for (const auto& file : files) bytes += std::filesystem::file_size(file);
  EXPECT_LE(bytes, cap);
  EXPECT_GE(bytes, cap / 2);
  EXPECT_EQ(report["evicted"], 16 - files.size());
  EXPECT_TRUE(contains(output.err, "GEMVJIT_CACHE_MAX_BYTES")) << output.err;
  const Usage usage = UsageLedger(cache_dir_).read();
  EXPECT_GE(usage.total_bytes, bytes);
  EXPECT_LE(usage.total_bytes, cap);
  EXPECT_NE(usage.scanned_at, 0);
  EXPECT_TRUE(contains(cache({"stats", "--prometheus"}).out,
                       "gemvjit_cache_recent_evictions " + report["evicted"].dump() + "\n"));
  environment_["GEMVJIT_CACHE_MAX_BYTES"] = "many";
  EXPECT_EQ(cache({"import", large}).exit_code, 2);
}

TEST_F(BundleCli, StatsCountsTheQuarantine) {
  fill();
  damage(entry_path(cache_dir_, entry(key(64)).id));
  EXPECT_FALSE(make_dir_store(cache_dir_, Log::silent())->get(entry(key(64)).id));
  const json stats = document(cache({"stats", "--json"}));
  EXPECT_EQ(stats["quarantine_files"], 1);
  EXPECT_GT(stats["quarantine_bytes"], 0);
  EXPECT_EQ(stats["recent_evictions"], 0);
  EXPECT_TRUE(contains(cache({"stats", "--prometheus"}).out, "gemvjit_cache_quarantine_files 1\n"));
}

TEST_F(BundleCli, DoctorListsTheLayers) {
  fill();
  const std::string image = bundle("image.gjb", {entry(key(64))});
  environment_["GEMVJIT_CACHE_RO"] = image + ":" + folder_.path("absent");
  ASSERT_EQ(::chmod(cache_dir_.c_str(), 0700), 0);
  const json layers = document(cache({"doctor", "--json"}))["layers"];
  ASSERT_EQ(layers.size(), 3u);
  EXPECT_EQ(layers[0]["kind"], "writable");
  EXPECT_EQ(layers[0]["named_by"], "GEMVJIT_CACHE_DIR");
  EXPECT_EQ(layers[0]["mode"], "0700");
  EXPECT_TRUE(layers[0]["free_bytes"].is_number());
  EXPECT_TRUE(layers[0]["owner"].is_string());
  EXPECT_EQ(layers[1]["kind"], "bundle");
  EXPECT_EQ(layers[1]["named_by"], "GEMVJIT_CACHE_RO");
  EXPECT_EQ(layers[1]["entries"], 1);
  EXPECT_EQ(layers[2]["exists"], false);
  EXPECT_TRUE(contains(layers[2]["problem"], "absent"));
  EXPECT_TRUE(contains(cache({"doctor"}).out, "Layers, in the order they are asked\n"));
}

// B49, B74: an image is built without a GPU; a container of it, which writes elsewhere or nowhere, misses nothing, and
// neither does the next. `check` says so before anything runs.
TEST_F(BundleCli, AnImagesBundleServesEveryContainer) {
  ASSERT_EQ(warm_one_kernel({"-q"}).exit_code, 0);
  ASSERT_EQ(cache({"export", file_}).exit_code, 0);
  EXPECT_EQ(warm_one_kernel({"--check"}).exit_code, 0);
  environment_["GEMVJIT_NVRTC"] = folder_.path("none.so");  // what compiles here fails
  const std::string before = read_text(file_);
  for (const char* container : {"first", "second"}) {
    environment_["GEMVJIT_CACHE_DIR"] = folder_.path(container);
    environment_["GEMVJIT_CACHE_RO"] = "";
    EXPECT_EQ(warm_one_kernel({"--check"}).exit_code, 9) << "without the bundle it is not warm";
    environment_["GEMVJIT_CACHE_RO"] = file_;
    EXPECT_EQ(warm_one_kernel({"--check"}).exit_code, 0);
    const ProgramOutput output = warm_one_kernel();
    EXPECT_EQ(output.exit_code, 0) << output.err;
    EXPECT_FALSE(std::filesystem::exists(folder_.path(container))) << "a hit needs no folder";
  }
  EXPECT_EQ(read_text(file_), before);
}

}  // namespace
}  // namespace gemvjit::test
