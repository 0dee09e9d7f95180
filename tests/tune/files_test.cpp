// What the tuner reads and writes: samples, tables, baselines, lists of shapes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/support/temp_dir.h"
#include "tools/gemvjit_tune/baseline.h"
#include "tools/gemvjit_tune/sample_book.h"
#include "tools/gemvjit_tune/shape_sources.h"
#include "tools/gemvjit_tune/table_file.h"

namespace gemvjit::tools {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

const TuneCase kCase{Family::nvfp4_gemv, 4096, 4096, false, 1};

CandidateSample sample(const TuneCase& c, unsigned warps_k, double us, bool final = false) {
  CandidateSample made;
  made.tune_case = c;
  made.configuration = {default_tile(), true};
  made.configuration.tile.warps_k = warps_k;
  made.gpu = "GPU", made.compiler = "NVRTC 13.0", made.recipe = "abcd", made.final = final;
  made.samples_us.assign(c.tokens().size(), {us, us, us * 1.01});
  return made;
}

TEST(Samples, TheScoreIsTheGeometricMeanOverTokens) {
  CandidateSample one = sample(kCase, 8, 1);
  one.samples_us = {{2, 2, 2, 2}, {8, 8, 8, 8, 8}};
  EXPECT_NEAR(one.outcome().us, 4, 1e-12);
  EXPECT_DOUBLE_EQ(one.outcome().spread_us, 0);
  EXPECT_EQ(one.outcome().samples, 4);
  one.samples_us = {{1, 2, 3}, {1, 2, 3}};  // quartiles 1.5 and 2.5
  EXPECT_NEAR(one.outcome().spread_us, 0.5, 1e-12);
}

TEST(Samples, AreFoundAgainByTheNextRun) {
  test::TempDir dir;
  const std::string path = dir.path("samples.jsonl");
  {
    const auto book = SampleBook::open(path);
    ASSERT_TRUE(book);
    ASSERT_TRUE((*book)->add(sample(kCase, 8, 5)));
    CandidateSample failed = sample(kCase, 4, 5);
    failed.samples_us.clear();
    failed.failure = "wrong numbers";
    ASSERT_TRUE((*book)->add(failed));
    AlternativeSample other;
    other.tune_case = kCase, other.gpu = "GPU", other.compiler = "cublasLt 13", other.us = 9;
    ASSERT_TRUE((*book)->add(other));
  }
  const auto book = SampleBook::open(path);
  ASSERT_TRUE(book);
  EXPECT_EQ((*book)->damaged_lines(), 0u);
  const auto found = (*book)->find(sample(kCase, 8, 0));
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->outcome().us, 5, 1e-9);
  EXPECT_EQ((*book)->find(sample(kCase, 4, 0))->failure, "wrong numbers");
  // Another phase, recipe, GPU or compiler is another measurement.
  EXPECT_FALSE((*book)->find(sample(kCase, 8, 0, true)));
  for (std::string CandidateSample::*part :
       {&CandidateSample::recipe, &CandidateSample::gpu, &CandidateSample::compiler}) {
    CandidateSample other = sample(kCase, 8, 0);
    other.*part = "another";
    EXPECT_FALSE((*book)->find(other));
  }
  AlternativeSample of_bf16;
  of_bf16.tune_case = kCase, of_bf16.tune_case.family = Family::bf16_gemv;
  of_bf16.gpu = "GPU", of_bf16.compiler = "cublasLt 13";
  ASSERT_TRUE((*book)->find(of_bf16));
  EXPECT_DOUBLE_EQ((*book)->find(of_bf16)->us, 9);
}

TEST(Samples, ALineCutShortCostsOnlyItself) {
  test::TempDir dir;
  const std::string path = dir.path("samples.jsonl");
  { ASSERT_TRUE((*SampleBook::open(path))->add(sample(kCase, 8, 5))); }
  const std::string whole = test::read_text(path);
  dir.write("samples.jsonl", whole + whole.substr(0, whole.size() / 2));
  {
    const auto book = SampleBook::open(path);
    EXPECT_EQ((*book)->damaged_lines(), 1u);
    ASSERT_TRUE((*book)->add(sample(kCase, 4, 6)));
  }
  const auto book = SampleBook::open(path);
  EXPECT_EQ((*book)->damaged_lines(), 1u);
  EXPECT_TRUE((*book)->find(sample(kCase, 8, 0)));
  EXPECT_TRUE((*book)->find(sample(kCase, 4, 0)));
}

// Of another user, who may write in the folder: what he leads to is not written to, and a FIFO is not waited for.
TEST(Samples, AreNotAddedToWhatANameLeadsTo) {
  test::TempDir dir;
  dir.write("private", "mine\n");
  ASSERT_EQ(::symlink("private", dir.path("link").c_str()), 0);
  ASSERT_EQ(::symlink("nothing", dir.path("dangling").c_str()), 0);
  ASSERT_EQ(::link(dir.path("private").c_str(), dir.path("hard").c_str()), 0);
  ASSERT_EQ(::mkfifo(dir.path("fifo").c_str(), 0600), 0);
  for (const char* name : {"link", "dangling", "hard", "fifo"}) {
    const auto book = SampleBook::open(dir.path(name));
    ASSERT_FALSE(book) << name;
    EXPECT_EQ(book.status().code(), StatusCode::io_error) << name;
  }
  EXPECT_EQ(test::read_text(dir.path("private")), "mine\n");
  EXPECT_NE(::access(dir.path("nothing").c_str(), F_OK), 0);
}

TEST(Samples, LinesThatMakeNoSenseAreNotUsed) {
  test::TempDir dir;
  const std::string path = dir.path("samples.jsonl");
  { ASSERT_TRUE((*SampleBook::open(path))->add(sample(kCase, 8, 5))); }
  auto line = nlohmann::ordered_json::parse(test::read_text(path));
  std::string text;
  for (const auto& [field, value] : std::vector<std::pair<std::string, nlohmann::ordered_json>>{
           {"samples_us", {{5.0}}}, {"samples_us", {{5.0}, {-1.0}}}, {"nt", 3}, {"family", "fp8"}, {"kind", "what"}}) {
    auto bad = line;
    bad[field] = value;
    text += bad.dump() + "\n";
  }
  dir.write("bad.jsonl", text + "[]\n\n");
  EXPECT_EQ((*SampleBook::open(dir.path("bad.jsonl")))->damaged_lines(), 6u);
  EXPECT_FALSE(SampleBook::open(dir.path("no/such/folder/x.jsonl")));
}

TEST(Samples, LinesThatWouldStopTheProgramAreNotUsed) {
  test::TempDir dir;
  const std::string path = dir.path("samples.jsonl");
  {
    const auto book = SampleBook::open(path);
    ASSERT_TRUE((*book)->add(sample(kCase, 8, 5)));
    AlternativeSample other;
    other.tune_case = kCase, other.gpu = "GPU", other.compiler = "cublasLt 13", other.us = 9;
    ASSERT_TRUE((*book)->add(other));
  }
  std::string text = std::string(200000, '[') + "\n";
  std::size_t lines = 1;
  const auto whole = test::read_text(path);
  const std::size_t end = whole.find('\n');
  for (const std::string& good : {whole.substr(0, end), whole.substr(end + 1)}) {
    for (const auto& [field, value] :
         std::vector<std::pair<std::string, nlohmann::ordered_json>>{{"n", 4096.5},
                                                                     {"k", 1e30},
                                                                     {"n", std::uint64_t{1} << 63},
                                                                     {"k", std::int64_t{1} << 40},
                                                                     {"nt", (std::int64_t{1} << 32) + 1}}) {
      auto bad = nlohmann::ordered_json::parse(good);
      bad[field] = value;
      text += bad.dump() + "\n", ++lines;
    }
  }
  for (const char* divisor : {"warps_k", "warps_n", "cluster_k", "row_tiles", "stages", "min_ctas", "rounds"}) {
    auto bad = nlohmann::ordered_json::parse(whole.substr(0, end));
    bad["tile"][divisor] = 0;
    text += bad.dump() + "\n", ++lines;
  }
  dir.write("bad.jsonl", text);
  EXPECT_EQ((*SampleBook::open(dir.path("bad.jsonl")))->damaged_lines(), lines);
}

TEST(Samples, NearestShapesTeach) {
  auto opened = SampleBook::open("");
  const auto book = std::move(*opened);
  const auto add = [&](std::int64_t n, std::int64_t k, unsigned warps_k, double us,
                       Family family = Family::nvfp4_gemv) {
    ASSERT_TRUE(book->add(sample({family, n, k, false, 1}, warps_k, us)));
  };
  add(8192, 4096, 8, 5), add(8192, 4096, 4, 6);  // one octave away
  add(4096, 65536, 16, 3);                       // four
  add(65536, 65536, 2, 1);                       // farther: not among two
  add(4096, 4096, 1, 0.5, Family::bf16_gemv);    // another family
  std::vector<unsigned> warps;
  for (const Configuration& one : book->nearest(kCase, 2, 2, {})) warps.push_back(one.tile.warps_k);
  EXPECT_THAT(warps, ElementsAre(8u, 16u, 4u));
  // A table's entry counts like a measurement: here the nearest shape of all.
  const std::vector<Known> table = {{kCase, sample(kCase, 12, 0).configuration, 4}};
  warps.clear();
  for (const Configuration& one : book->nearest(kCase, 2, 2, table)) warps.push_back(one.tile.warps_k);
  EXPECT_THAT(warps, ElementsAre(12u, 8u, 4u));
}

constexpr const char* kTable = R"({
  "schema": 1,
  "archs": ["sm_90a", "sm_90"],
  "measurements": {"m1": {"gpu": "G", "driver": "D", "compiler": "C", "date": "2020-01-01"}},
  "entries": [
    {"family": "nvfp4_gemv", "n": 4096, "k": 4096, "nt": 1, "silu_mul": false, "tile": {"warps_k": 16}, "pdl": false,
     "time_us": 6.5, "measurement": "m1"},
    {"family": "bf16_gemv", "n": 64, "k": 64, "nt": 2, "tile": {"warps_k": 2}, "predicted": true}
  ],
  "defaults": [{"family": "nvfp4_gemv", "nt": 1, "tile": {"warps_k": 4, "stages": 2}}, {"family": "nvfp4_gemv", "tile": {"warps_k": 8}}]
})";

MeasuredEntry entry(const TuneCase& c) {
  MeasuredEntry made;
  made.tune_case = c;
  made.configuration = {default_tile(), true};
  made.configuration.tile.warps_k = 8, made.configuration.tile.stages = 2;
  made.time_us = 5.12345, made.spread_us = 0.1, made.samples = 15, made.candidates = 64;
  made.alternative_us = 9, made.alternative = "cublasLt bf16";
  made.provenance = {"GPU", "580", "NVRTC 13.0", "2026-01-02", "abc", "gemvjit-tune", 132, 1980, 3201, 15};
  return made;
}

TEST(Table, KnowsItsChoices) {
  const auto table = TableFile::parse("t", kTable);
  ASSERT_TRUE(table) << table.status().text();
  const auto present = table->present(kCase);
  ASSERT_TRUE(present);
  EXPECT_EQ(present->tile.warps_k, 16u);
  EXPECT_FALSE(present->pdl);
  EXPECT_TRUE(table->present({Family::bf16_gemv, 64, 64, false, 2}));  // predicted
  EXPECT_FALSE(table->present({Family::nvfp4_gemv, 4096, 4096, true, 1}));
  EXPECT_EQ(table->known().size(), 1u);  // not what was never measured
}

TEST(Table, MergingReplacesItsCaseAndLeavesTheRest) {
  auto table = TableFile::parse("t", kTable);
  ASSERT_TRUE(table);
  const TuneCase added{Family::nvfp4_gemv, 1024, 4096, true, 4};
  table->merge({entry(kCase), entry(added)});
  const auto json = nlohmann::json::parse(table->text());
  ASSERT_EQ(json["entries"].size(), 3u);
  const auto before = nlohmann::json::parse(kTable);
  EXPECT_EQ(json["defaults"], before["defaults"]);
  EXPECT_EQ(json["archs"], before["archs"]);
  EXPECT_EQ(json["entries"][2], before["entries"][1]);
  const auto& merged = json["entries"][0];
  EXPECT_EQ(merged["n"], 4096);
  EXPECT_EQ(merged["tile"], (nlohmann::json{{"warps_k", 8}, {"stages", 2}}));
  EXPECT_EQ(merged["pdl"], true);
  EXPECT_DOUBLE_EQ(merged["time_us"], 5.123);
  EXPECT_EQ(merged["alternative"], "cublasLt bf16");
  EXPECT_EQ(merged["candidates"], 64);
  // m1 is nobody's any more; both new entries share one measurement.
  ASSERT_EQ(json["measurements"].size(), 1u);
  const auto& measurement = json["measurements"][merged["measurement"].get<std::string>()];
  EXPECT_EQ(measurement["sm_count"], 132);
  EXPECT_EQ(measurement["commit"], "abc");
  EXPECT_EQ(json["entries"][1]["measurement"], merged["measurement"]);
  // The same again changes nothing.
  const std::string text = table->text();
  auto again = TableFile::parse("t", text);
  again->merge({entry(kCase), entry(added)});
  EXPECT_EQ(again->text(), text);
  EXPECT_THAT(text, HasSubstr("\n    {\"family\": \"nvfp4_gemv\", \"n\": 4096, "));
}

TEST(Table, AnEntryWithoutAlternativeHasNone) {
  auto table = TableFile::fresh("sm_90a");
  MeasuredEntry bare = entry(kCase);
  bare.alternative_us = 0;
  table.merge({bare});
  EXPECT_THAT(table.text(), Not(HasSubstr("alternative")));
}

TEST(Table, RefusesWhatIsNone) {
  EXPECT_FALSE(TableFile::parse("t", "{"));
  EXPECT_FALSE(TableFile::parse("t", "[]"));
  EXPECT_FALSE(TableFile::parse("t", R"({"schema": 2, "archs": [], "entries": [], "defaults": []})"));
  EXPECT_FALSE(TableFile::parse("t", R"({"schema": 1, "archs": [], "entries": [{"n": 1}], "defaults": []})"));
  test::TempDir dir;
  const std::string path = dir.write("table.json", kTable);
  EXPECT_TRUE(TableFile::read(path, "sm_90a"));
  const auto other = TableFile::read(path, "sm_100a");
  ASSERT_FALSE(other);
  EXPECT_THAT(other.status().message(), HasSubstr("sm_100a"));
}

std::string table_with(const std::string& more) {
  return R"({"schema": 1, "archs": ["sm_90a"], "defaults": [], "entries": [
    {"family": "nvfp4_gemv", "n": 64, "k": 64, "nt": 1, )" +
         more + "}]}";
}

TEST(Table, RefusalsNameTheFileAndTheEntry) {
  const std::pair<std::string, const char*> cases[] = {
      {table_with(R"("pdl": "x")"), "t.json: entries[0]: \"pdl\" is neither true nor false"},
      {table_with(R"("time_us": 0)"), "t.json: entries[0]: \"time_us\""},
      {table_with(R"("silu_mul": 1)"), "t.json: entries[0]: "},
      {std::string(200000, '['), "t.json: nested more than 64 levels deep"},
  };
  for (const auto& [text, message] : cases) {
    const auto table = TableFile::parse("t.json", text);
    ASSERT_FALSE(table) << message;
    EXPECT_THAT(table.status().message(), HasSubstr(message));
  }
}

TEST(Table, ATileThatDividesByZeroIsNoChoice) {
  for (const char* field : {"warps_k", "warps_n", "cluster_k", "row_tiles", "stages", "min_ctas", "rounds"}) {
    const auto table =
        TableFile::parse("t", table_with("\"time_us\": 1, \"tile\": {\"" + std::string(field) + "\": 0}"));
    ASSERT_TRUE(table) << table.status().text();
    EXPECT_TRUE(table->known().empty()) << field;
  }
  EXPECT_EQ(TableFile::parse("t", table_with(R"("time_us": 1, "tile": {"x_path": 0})"))->known().size(), 1u);
}

TEST(Table, AFreshOneIsWrittenAndReadBack) {
  test::TempDir dir;
  const std::string path = dir.path("table.json");
  auto table = TableFile::read(path, "sm_90a");
  ASSERT_TRUE(table);
  table->merge({entry(kCase)});
  ASSERT_TRUE(table->write(path));
  const auto again = TableFile::read(path, "sm_90");
  ASSERT_TRUE(again) << again.status().text();
  EXPECT_EQ(again->text(), table->text());
  EXPECT_TRUE(again->present(kCase));
}

TEST(Baseline, TheFastestKernelCounts) {
  const auto baseline = Baseline::parse(R"([
    {"family": "nvfp4", "n": 4096, "k": 4096, "m": 1, "us": 4, "name": "a"},
    {"family": "nvfp4", "n": 4096, "k": 4096, "m": 8, "us": 9, "name": "a"},
    {"family": "nvfp4", "n": 4096, "k": 4096, "nt": 1, "us": 7, "name": "b"},
    {"family": "nvfp4", "n": 4096, "k": 4096, "m": 16, "silu_mul": false, "us": 1, "name": "c"},
    {"family": "nvfp4", "n": 4096, "k": 4096, "m": 5, "us": 1, "name": "d"},
    {"family": "nvfp4", "n": 4096, "k": 4096, "m": 1, "silu_mul": true, "us": 2, "name": "e"}])");
  ASSERT_TRUE(baseline) << baseline.status().text();
  TuneCase c = kCase;
  EXPECT_NEAR(baseline->fastest(c)->us, 6, 1e-12);
  EXPECT_EQ(baseline->fastest(c)->name, "a");
  c.nt = 2;
  EXPECT_EQ(baseline->fastest(c)->name, "c");
  c.nt = 4;
  EXPECT_FALSE(baseline->fastest(c));
  EXPECT_FALSE(Baseline::parse(R"([{"family": "nvfp4", "n": 8, "k": 16, "us": 1, "name": "a"}])"));
  EXPECT_FALSE(Baseline::parse(R"([{"family": "nvfp4", "n": 8, "k": 16, "m": 1, "us": 0, "name": "a"}])"));
  EXPECT_FALSE(Baseline::parse("{}"));
  EXPECT_FALSE(Baseline::parse(R"([{"family": "nvfp4", "n": 8, "k": 16, "m": 1.5, "us": 1, "name": "a"}])"));
  test::TempDir dir;
  const auto deep = Baseline::read(dir.write("deep.json", std::string(200000, '[')));
  ASSERT_FALSE(deep);
  EXPECT_THAT(deep.status().message(), HasSubstr("deep.json: nested more than 64 levels deep"));
}

TEST(Shapes, OfTheCommandLine) {
  CaseRequest request;
  request.shapes = {"64x128", "64x128:silu", "64x128"};
  request.families = {Family::bf16_gemv};
  request.nt = {1, 4};
  const auto list = make_cases(request);
  ASSERT_TRUE(list);
  ASSERT_EQ(list->cases.size(), 4u);
  EXPECT_EQ(list->cases[3], (TuneCase{Family::bf16_gemv, 64, 128, true, 4}));
  for (const char* bad : {"64", "64x128:bf16", "63x128", "64x128 ", "0x128"}) {
    request.shapes = {bad};
    EXPECT_EQ(make_cases(request).status().code() == StatusCode::ok, false) << bad;
  }
}

TEST(Shapes, OfAFileAreWholeNumbers) {
  test::TempDir dir;
  CaseRequest request;
  request.families = {Family::nvfp4_gemv};
  request.nt = {1};
  const auto refusal = [&](const std::string& text) {
    request.shapes_files = {dir.write("shapes.json", text)};
    return std::string(make_cases(request).status().message());
  };
  const auto with_n = [](const std::string& n) {
    return R"({"models": [{"layers_by_tp": {"tp1": [{"layer": "o", "K": 64, "N": )" + n + "}]}}]}";
  };
  EXPECT_EQ(refusal(with_n("4096")), "");
  for (const char* n : {"4096.7", "1e30", "-1e30", "18446744073709551615", "\"4096\"", "null"}) {
    EXPECT_THAT(refusal(with_n(n)), HasSubstr("shapes.json: \"N\" of a layer is ")) << n;
  }
  EXPECT_THAT(refusal(std::string(200000, '[')), HasSubstr("shapes.json: nested more than 64 levels deep"));
}

TEST(Shapes, OfAFile) {
  test::TempDir dir;
  CaseRequest request;
  request.shapes_files = {dir.write("shapes.json", R"({"models": [
    {"layers_by_tp": {"tp1": [{"layer": "mlp.gate_up_proj", "N": 256, "K": 64}, {"layer": "router", "N": 60, "K": 64}],
                      "tp2": [{"layer": "mlp.down_proj", "N": 64, "K": 128}]}},
    {"layers_by_tp": {"tp1": [{"layer": "mlp.gate_up_proj", "N": 256, "K": 64}]}}]})")};
  request.families = {Family::nvfp4_gemv};
  request.nt = {1};
  const auto all = make_cases(request);
  ASSERT_TRUE(all) << all.status().text();
  EXPECT_EQ(all->cases.size(), 3u);  // gate_up plain and with silu_mul, down
  EXPECT_TRUE(all->cases[1].silu_mul);
  EXPECT_EQ(all->refused, 1u);
  request.tensor_parallel = {2};
  EXPECT_EQ(make_cases(request)->cases.size(), 1u);
  request.shapes_files = {dir.write("bad.json", R"({"models": [{}]})")};
  EXPECT_EQ(make_cases(request).status().code(), StatusCode::invalid_argument);
  request.shapes_files = {dir.path("none.json")};
  EXPECT_EQ(make_cases(request).status().code(), StatusCode::not_found);
}

TEST(Table, ALinkIsNotReplacedByATable) {
  const test::TempDir dir;
  const std::string target = dir.write("somewhere.json", "as it was"), link = dir.path("sm_90a.json");
  std::filesystem::create_symlink(target, link);
  const Status written = TableFile::fresh("sm_90a").write(link);
  EXPECT_EQ(written.code(), StatusCode::io_error);
  EXPECT_THAT(written.message(), HasSubstr("it is not replaced"));
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_EQ(test::read_text(target), "as it was");
}

}  // namespace
}  // namespace gemvjit::tools
