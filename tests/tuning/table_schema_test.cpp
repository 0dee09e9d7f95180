// The fields of measurements and entries: what is accepted, what it becomes, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/tuning/table_data.h"

namespace gemvjit {
namespace {

using testing::HasSubstr;

constexpr const char* kMeasurement = R"("gpu": "G", "driver": "1", "compiler": "C", "date": "2026-01-02")";
constexpr const char* kShape = R"("family": "nvfp4_gemv", "n": 64, "k": 128, "nt": 1, "tile": {})";
constexpr const char* kMeasured = R"("time_us": 2, "measurement": "m")";

std::string object(const std::string& fields, const std::string& more = "") {
  return "{" + fields + (more.empty() || fields.empty() ? "" : ", ") + more + "}";
}

Result<TableData> parse(const std::string& measurement, const std::string& entries) {
  return parse_table("my.json", R"({"schema": 1, "archs": ["sm_90a"], "measurements": {"m": )" + measurement +
                                    R"(}, "entries": [)" + entries + R"(], "defaults": [
                                      {"family": "nvfp4_gemv", "tile": {}}, {"family": "bf16_gemv", "tile": {}}]})");
}

Result<TableData> with_measurement(const std::string& more) {
  return parse(object(kMeasurement, more), object(kShape, kMeasured));
}

Result<TableData> with_entry(const std::string& more) { return parse(object(kMeasurement), object(kShape, more)); }

std::string measured(const std::string& more) { return std::string(kMeasured) + ", " + more; }

void expect_refused(const Result<TableData>& parsed, const std::string& message) {
  ASSERT_FALSE(parsed) << message;
  EXPECT_EQ(parsed.status().code(), StatusCode::invalid_argument);
  EXPECT_THAT(parsed.status().message(), HasSubstr("my.json"));
  EXPECT_THAT(parsed.status().message(), HasSubstr(message));
}

TEST(Document, NestedTooDeepIsRefusedBeforeAParserRecurses) {
  for (const std::string& text : {std::string(200000, '['), std::string(200000, '[') + std::string(200000, ']'),
                                  R"({"schema": )" + std::string(65, '[') + std::string(65, ']') + "}"}) {
    expect_refused(parse_table("my.json", text), "nested more than 64 levels deep");
  }
}

TEST(Measurement, BecomesOneLine) {
  const auto shortest = with_measurement("");
  ASSERT_TRUE(shortest) << shortest.status().message();
  EXPECT_EQ(shortest->entries.at(0).provenance, "G, driver 1, C, 2026-01-02");
  const auto all = with_measurement(
      R"("sm_count": 132, "sm_clock_mhz": 1980, "memory_clock_mhz": 3201, "commit": "abc", "replays": 15, "tool": "T 1")");
  ASSERT_TRUE(all) << all.status().message();
  EXPECT_EQ(all->entries.at(0).provenance,
            "G, 132 SMs, SM 1980 MHz, memory 3201 MHz, driver 1, C, 2026-01-02, 15 replays, T 1, commit abc");
}

TEST(Measurement, IsHeldToItsFieldsAlsoWhereNoEntryNamesIt) {
  const std::pair<const char*, const char*> cases[] = {
      {R"("sm_count": 0)", "measurements.m: \"sm_count\" is 0"},
      {R"("sm_count": 1.5)", "whole number"},
      {R"("sm_clock_mhz": -1)", "sm_clock_mhz"},
      {R"("memory_clock_mhz": "fast")", "memory_clock_mhz"},
      {R"("replays": 0)", "replays"},
      {R"("commit": 12)", "commit"},
      {R"("commit": "")", "\"commit\" is empty"},
      {R"("tool": false)", "tool"},
      {R"("temperature": 50)", "unknown field \"temperature\""},
  };
  for (const auto& [fields, message] : cases) {
    expect_refused(with_measurement(fields), message);
    expect_refused(parse(object(kMeasurement, fields), ""), message);
  }
  expect_refused(parse(R"({"gpu": "G", "driver": "1", "compiler": "C"})", ""), "\"date\" is missing");
  expect_refused(parse(R"({"gpu": "", "driver": "1", "compiler": "C", "date": "d"})", ""), "\"gpu\" is empty");
  expect_refused(parse("3", ""), "measurements.m: must be an object");
}

TEST(Entry, KeepsWhatWasMeasured) {
  const auto parsed = with_entry(measured(
      R"("alternative_us": 3.5, "alternative": "cublasLt bf16", "spread_us": 0.25, "samples": 15, "candidates": 200)"));
  ASSERT_TRUE(parsed) << parsed.status().message();
  const TunedEntry& entry = parsed->entries.at(0);
  EXPECT_FALSE(entry.predicted);
  EXPECT_EQ(entry.time_us, 2);
  EXPECT_EQ(entry.alternative_us, 3.5);
  EXPECT_EQ(entry.alternative, "cublasLt bf16");
  EXPECT_EQ(entry.spread_us, 0.25);
  EXPECT_EQ(entry.samples, 15);
  EXPECT_EQ(entry.candidates, 200);
  EXPECT_TRUE(with_entry(measured(R"("spread_us": 0, "alternative": "", "predicted": false)")));
}

TEST(Entry, RefusesWhatIsNoMeasurement) {
  const std::pair<const char*, const char*> cases[] = {
      {R"("spread_us": -0.1)", "\"spread_us\" must be 0 or more"},
      {R"("spread_us": "small")", "spread_us"},
      {R"("samples": 0)", "\"samples\" is 0"},
      {R"("samples": 2.5)", "whole number"},
      {R"("candidates": 0)", "\"candidates\" is 0"},
      {R"("alternative": 5, "alternative_us": 3)", "alternative"},
      {R"("alternative": "cublasLt bf16")", "without a time"},
      {R"("alternative": "cublasLt bf16", "alternative_us": 0)", "without a time"},
      {R"("predicted": 1)", "predicted"},
      {R"("sample": 1)", "unknown field \"sample\""},
  };
  for (const auto& [fields, message] : cases) expect_refused(with_entry(measured(fields)), message);
  expect_refused(with_entry(R"("time_us": 2)"), "\"measurement\" is missing");
}

TEST(Entry, APredictedOneHasNoTimes) {
  const auto parsed = with_entry(R"("predicted": true)");
  ASSERT_TRUE(parsed) << parsed.status().message();
  EXPECT_TRUE(parsed->entries.at(0).predicted);
  EXPECT_EQ(parsed->entries.at(0).time_us, 0);
  EXPECT_EQ(parsed->entries.at(0).provenance, "predicted, not measured");
  for (const char* field : {R"("time_us": 2)", R"("measurement": "m")", R"("alternative_us": 2)",
                            R"("alternative": "x")", R"("spread_us": 1)", R"("samples": 3)", R"("candidates": 3)"}) {
    expect_refused(with_entry(std::string(R"("predicted": true, )") + field), "exclude each other");
  }
  expect_refused(with_entry(R"("predicted": false)"), "\"time_us\" is missing");
  expect_refused(with_entry(""), "\"time_us\" is missing");
}

TEST(Entry, OneOfAKindForAShape) {
  const std::string one = object(kShape, kMeasured), guess = object(kShape, R"("predicted": true)");
  EXPECT_TRUE(parse(object(kMeasurement), one + ", " + guess));
  expect_refused(parse(object(kMeasurement), one + ", " + guess + ", " + one),
                 "entries[2]: the same shape and nt as entries[0]");
  expect_refused(parse(object(kMeasurement), guess + ", " + guess), "entries[1]: the same shape and nt as entries[0]");
  EXPECT_TRUE(parse(object(kMeasurement), one + ", " + object(kShape, measured(R"("silu_mul": true)"))));
}

TEST(Entry, OfEveryTargetMustStillBeAPossibleShape) {
  const std::string all = R"({"schema": 1, "archs": ["*"], "entries": [{"family": "nvfp4_gemv", "n": 60, "k": 128,
    "nt": 1, "tile": {}, "predicted": true}], "defaults": []})";
  expect_refused(parse_table("my.json", all), "multiple of 8");
}

}  // namespace
}  // namespace gemvjit
