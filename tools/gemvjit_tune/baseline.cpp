#include "tools/gemvjit_tune/baseline.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "src/base/files.h"
#include "src/base/json_depth.h"
#include "tools/measure/samples.h"

namespace gemvjit::tools {
namespace {

constexpr std::size_t kFileLimit = 64u << 20;

}  // namespace

Result<Baseline> Baseline::parse(const std::string& text) {
  if (json_nests_deeper_than(text, kMaxJsonLevels)) {
    return Status(StatusCode::invalid_argument, fmt::format("nested more than {} levels deep", kMaxJsonLevels));
  }
  Baseline made;
  std::size_t at = 0;
  try {
    const auto list = nlohmann::ordered_json::parse(text);
    if (!list.is_array()) return Status(StatusCode::invalid_argument, "a baseline is a list");
    for (const auto& one : list) {
      nlohmann::ordered_json as_case = one;
      const bool by_m = one.contains("m");
      if (by_m) as_case["nt"] = 1;  // any: replaced below
      GEMVJIT_TRY_ASSIGN(const TuneCase c, case_from_json(as_case));
      const auto m = by_m ? whole_number(one.at("m")) : 0;
      if (!m) return Status(StatusCode::invalid_argument, fmt::format("[{}]: \"m\" is no whole number", at));
      Row row{c, *m, {one.at("us").get<double>(), one.at("name")}};
      if (by_m) row.tune_case.nt = 0;
      if (!(row.time.us > 0))
        return Status(StatusCode::invalid_argument, fmt::format("[{}]: \"us\" must be a time", at));
      made.rows_.push_back(row);
      ++at;
    }
  } catch (const nlohmann::json::exception& e) {
    return Status(StatusCode::invalid_argument, fmt::format("[{}]: {}", at, json_error_text(e.what())));
  }
  return made;
}

Result<Baseline> Baseline::read(const std::string& path) {
  GEMVJIT_TRY_ASSIGN(const Bytes bytes, read_file(path, kFileLimit));
  auto parsed = parse(std::string(bytes.begin(), bytes.end()));
  if (parsed) return parsed;
  return Status(parsed.status().code(), fmt::format("baseline {}: {}", path, parsed.status().message()));
}

std::optional<BaselineTime> Baseline::fastest(const TuneCase& c) const {
  const std::vector<std::int64_t> tokens = c.tokens();
  std::optional<BaselineTime> best;
  const auto offer = [&](const BaselineTime& time) {
    if (!best || time.us < best->us) best = time;
  };
  std::map<std::string, std::vector<double>> by_name;
  for (const Row& row : rows_) {
    TuneCase of = row.tune_case;
    if (of.nt == 0) of.nt = c.nt;
    if (!(of == c)) continue;
    if (row.tune_case.nt != 0) {
      offer(row.time);
    } else if (std::find(tokens.begin(), tokens.end(), row.m) != tokens.end()) {
      by_name[row.time.name].push_back(row.time.us);
    }
  }
  for (const auto& [name, times] : by_name) offer({geometric_mean(times), name});
  return best;
}

}  // namespace gemvjit::tools
