#include "tools/gemvjit_tune/table_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "src/base/files.h"
#include "src/base/json_depth.h"

namespace gemvjit::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kTableLimit = 64u << 20;

Status bad(const std::string& name, const std::string& what) {
  return {StatusCode::invalid_argument, fmt::format("tuning table {}: {}", name, what)};
}

// One line with spaces after commas and colons, as people write it.
std::string spaced(const Json& value) {
  if (!value.is_structured()) return value.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string text;
  for (const auto& [name, item] : value.items()) {
    if (!text.empty()) text += ", ";
    if (value.is_object()) text += Json(name).dump() + ": ";
    text += spaced(item);
  }
  return value.is_object() ? "{" + text + "}" : "[" + text + "]";
}

// `value` with each of its members on a line.
std::string lines(const Json& value) {
  if (!value.is_structured() || value.empty()) return spaced(value);
  std::string text;
  for (const auto& [name, item] : value.items()) {
    if (!text.empty()) text += ",\n";
    text += "    " + (value.is_object() ? Json(name).dump() + ": " : "") + spaced(item);
  }
  return (value.is_object() ? "{\n" : "[\n") + text + (value.is_object() ? "\n  }" : "\n  ]");
}

double rounded(double us) { return std::round(us * 1e3) / 1e3; }

Json provenance_json(const Provenance& p) {
  Json made = {{"gpu", p.gpu}, {"driver", p.driver}, {"compiler", p.compiler}, {"date", p.date}};
  if (p.sm_count > 0) made["sm_count"] = p.sm_count;
  if (p.sm_clock_mhz > 0) made["sm_clock_mhz"] = p.sm_clock_mhz;
  if (p.memory_clock_mhz > 0) made["memory_clock_mhz"] = p.memory_clock_mhz;
  if (!p.commit.empty()) made["commit"] = p.commit;
  if (p.replays > 0) made["replays"] = p.replays;
  if (!p.tool.empty()) made["tool"] = p.tool;
  return made;
}

Json entry_json(const MeasuredEntry& entry, const std::string& measurement) {
  Json made = case_to_json(entry.tune_case);
  made["tile"] = tile_to_json(entry.configuration.tile);
  made["pdl"] = entry.configuration.pdl;
  made["time_us"] = rounded(entry.time_us);
  made["spread_us"] = rounded(entry.spread_us);
  made["samples"] = std::max(entry.samples, 1);
  made["candidates"] = std::max(entry.candidates, 1);
  if (entry.alternative_us > 0) {
    made["alternative_us"] = rounded(entry.alternative_us);
    made["alternative"] = entry.alternative;
  }
  made["measurement"] = measurement;
  return made;
}

// Of the GPU that measured an entry; 0 if the table does not say.
int sm_count_of(const Json& table, const Json& entry) {
  const Json id = entry.value("measurement", Json());
  if (!id.is_string() || !table["measurements"].contains(id.get<std::string>())) return 0;
  const Json& measurement = table["measurements"][id.get<std::string>()];
  const Json count = measurement.is_object() ? measurement.value("sm_count", Json()) : Json();
  return count.is_number_unsigned() && count < 100000 ? count.get<int>() : 0;
}

auto order_of(const TuneCase& c) { return std::make_tuple(c.family, c.silu_mul, c.n, c.k, c.nt); }

}  // namespace

TableFile TableFile::fresh(const std::string& arch) {
  TableFile file;
  Json archs = Json::array({arch});
  // A kernel of the plain target is the same source; a device falls back to it where its compiler has no suffix.
  if (arch.back() == 'a') archs.push_back(arch.substr(0, arch.size() - 1));
  file.table_ = {{"schema", 1},
                 {"archs", archs},
                 {"measurements", Json::object()},
                 {"entries", Json::array()},
                 {"defaults", Json::array()}};
  for (const FamilyRow& row : families()) {
    if (row.has_tokens) file.table_["defaults"].push_back({{"family", row.name}, {"tile", {{"warps_k", 8}}}});
  }
  return file;
}

TableFile TableFile::predicted(const std::vector<std::string>& archs, const std::vector<PredictedEntry>& entries,
                               Json defaults) {
  std::map<decltype(order_of(TuneCase{})), Json> sorted;
  for (const PredictedEntry& entry : entries) {
    Json made = case_to_json(entry.tune_case);
    made["tile"] = tile_to_json(entry.configuration.tile);
    made["pdl"] = entry.configuration.pdl;
    made["predicted"] = true;
    sorted[order_of(entry.tune_case)] = std::move(made);
  }
  TableFile file;
  file.table_ = {{"schema", 1}, {"archs", archs}, {"measurements", Json::object()}, {"entries", Json::array()}};
  for (auto& [order, entry] : sorted) file.table_["entries"].push_back(std::move(entry));
  file.table_["defaults"] = std::move(defaults);
  return file;
}

std::vector<std::string> TableFile::archs() const {
  std::vector<std::string> names;
  for (const Json& name : table_["archs"]) names.push_back(name.is_string() ? name.get<std::string>() : "");
  return names;
}

const Json& TableFile::defaults() const { return table_["defaults"]; }

Result<TableFile> TableFile::read(const std::string& path, const std::string& arch) {
  const auto bytes = read_file(path, kTableLimit);
  if (!bytes && bytes.status().code() == StatusCode::not_found) return fresh(arch);
  if (!bytes) return bytes.status();
  GEMVJIT_TRY_ASSIGN(TableFile file, parse(path, std::string(bytes->begin(), bytes->end())));
  const Json& archs = file.table_["archs"];
  if (std::find(archs.begin(), archs.end(), arch) != archs.end()) return file;
  return bad(path, fmt::format("it is for {}, not for {}", spaced(archs), arch));
}

Result<TableFile> TableFile::parse(const std::string& name, const std::string& text) {
  if (json_nests_deeper_than(text, kMaxJsonLevels)) {
    return bad(name, fmt::format("nested more than {} levels deep", kMaxJsonLevels));
  }
  TableFile file;
  try {
    file.table_ = Json::parse(text);
  } catch (const nlohmann::json::exception& e) {
    return bad(name, json_error_text(e.what()));
  }
  if (!file.table_.is_object() || file.table_.value("schema", Json()) != 1) return bad(name, "\"schema\" must be 1");
  for (const char* list : {"archs", "entries", "defaults"}) {
    if (!file.table_.contains(list) || !file.table_[list].is_array()) {
      return bad(name, fmt::format("\"{}\" must be a list", list));
    }
  }
  if (!file.table_.contains("measurements")) file.table_["measurements"] = Json::object();
  if (!file.table_["measurements"].is_object()) return bad(name, "\"measurements\" must be an object");
  for (std::size_t i = 0; i < file.table_["entries"].size(); ++i) {
    GEMVJIT_TRY(file.remember(name, i));
  }
  return file;
}

Status TableFile::remember(const std::string& name, std::size_t at) {
  const Json& entry = table_["entries"][at];
  const auto refuse = [&](std::string_view why) { return bad(name, fmt::format("entries[{}]: {}", at, why)); };
  const auto c = case_from_json(entry);
  if (!c) return refuse(c.status().message());
  const Json pdl = entry.value("pdl", Json(true));
  if (!pdl.is_boolean()) return refuse("\"pdl\" is neither true nor false");
  const auto tile = tile_from_json(entry.value("tile", Json::object()));
  if (!tile) return Status::ok();  // of another version's kernels: it stays until its case is measured
  const Configuration configuration{*tile, pdl.get<bool>()};
  present_.insert_or_assign(*c, configuration);
  if (!entry.contains("time_us") || !entry["time_us"].is_number()) return Status::ok();
  const auto us = entry["time_us"].get<double>();
  if (!(us > 0)) return refuse("\"time_us\" must be a measured time");
  known_.push_back({*c, configuration, us, sm_count_of(table_, entry)});
  return Status::ok();
}

std::optional<Configuration> TableFile::present(const TuneCase& c) const {
  const auto found = present_.find(c);
  if (found == present_.end()) return std::nullopt;
  return found->second;
}

// The id of an equal measurement, or a new one.
std::string TableFile::measurement_id(const Provenance& provenance) {
  Json& measurements = table_["measurements"];
  const Json wanted = provenance_json(provenance);
  for (const auto& [id, one] : measurements.items()) {
    if (one == wanted) return id;
  }
  for (int number = 1;; ++number) {
    const std::string id = fmt::format("m{}", number);
    if (measurements.contains(id)) continue;
    measurements[id] = wanted;
    return id;
  }
}

void TableFile::merge(const std::vector<MeasuredEntry>& entries) {
  std::map<TuneCase, Json> by_case;
  for (const Json& entry : table_["entries"]) by_case[*case_from_json(entry)] = entry;
  for (const MeasuredEntry& entry : entries) {
    by_case[entry.tune_case] = entry_json(entry, measurement_id(entry.provenance));
  }
  std::vector<TuneCase> cases;
  for (const auto& [c, entry] : by_case) cases.push_back(c);
  std::sort(cases.begin(), cases.end(), [](const TuneCase& a, const TuneCase& b) { return order_of(a) < order_of(b); });
  Json merged = Json::array();
  std::set<std::string> used;
  for (const TuneCase& c : cases) {
    const Json& entry = by_case[c];
    if (entry.contains("measurement") && entry["measurement"].is_string()) {
      used.insert(entry["measurement"].get<std::string>());
    }
    merged.push_back(entry);
  }
  table_["entries"] = std::move(merged);
  Json kept = Json::object();
  for (const auto& [id, one] : table_["measurements"].items()) {
    if (used.contains(id)) kept[id] = one;
  }
  table_["measurements"] = std::move(kept);
}

std::string TableFile::text() const {
  std::string text;
  for (const auto& [name, value] : table_.items()) {
    const bool list = name == "measurements" || name == "entries" || name == "defaults";
    text +=
        fmt::format("{}  {}: {}", text.empty() ? "" : ",\n", Json(name).dump(), list ? lines(value) : spaced(value));
  }
  return "{\n" + text + "\n}\n";
}

Status TableFile::write(const std::string& path) const {
  const std::string content = text();
  const auto [folder, name] = split_path(path);
  GEMVJIT_TRY(check_replaceable(path));
  return publish_file(folder, name, content.data(), content.size());
}

}  // namespace gemvjit::tools
