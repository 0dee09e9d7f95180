#include "src/tuning/table_data.h"

#include <fmt/format.h>

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "src/catalog/kernel_flags.h"

namespace gemvjit {
namespace {

using nlohmann::json;

// Thrown and caught in this file only: the JSON library reports its own type errors the same way.
[[noreturn]] void fail(const std::string& place, const std::string& what) {
  throw std::runtime_error(fmt::format("{}: {}", place, what));
}

void require_known_fields(const json& object, const std::string& place, std::initializer_list<std::string_view> known) {
  if (!object.is_object()) fail(place, "must be an object");
  for (const auto& [name, value] : object.items()) {
    bool found = false;
    for (const std::string_view one : known) found = found || one == name;
    if (!found) fail(place, fmt::format("unknown field \"{}\"", name));
  }
}

template <typename T>
T field(const json& object, const std::string& place, const char* name) {
  if (!object.contains(name)) fail(place, fmt::format("\"{}\" is missing", name));
  try {
    return object.at(name).get<T>();
  } catch (const json::exception& e) {
    fail(place, fmt::format("\"{}\": {}", name, e.what()));
  }
}

template <typename T>
T field_or(const json& object, const std::string& place, const char* name, T otherwise) {
  return object.contains(name) ? field<T>(object, place, name) : otherwise;
}

Family parse_family(const json& object, const std::string& place) {
  const auto name = field<std::string>(object, place, "family");
  const FamilyRow* row = find_family(name);
  if (row == nullptr || !row->has_tokens)
    fail(place, fmt::format("\"{}\" is no family with a tile configuration", name));
  return row->family;
}

TileConfig parse_tile(const json& object, const std::string& place) {
  TileConfig tile;
  for (const TileField& tile_field : tile_fields()) {
    for (const FlagField& flag : flag_fields()) {
      if (std::string_view(flag.name) == tile_field.name) tile.*tile_field.member = flag.default_value;
    }
  }
  if (!object.is_object()) fail(place, "must be an object");
  for (const auto& [name, value] : object.items()) {
    const TileField* found = nullptr;
    for (const TileField& tile_field : tile_fields()) {
      if (name == tile_field.name) found = &tile_field;
    }
    if (found == nullptr) fail(place, fmt::format("unknown field \"{}\"", name));
    if (!value.is_number_unsigned()) fail(place, fmt::format("\"{}\" must be a number that is not negative", name));
    tile.*found->member = value.get<unsigned>();
  }
  return tile;
}

std::string parse_provenance(const json& table, const std::string& id, const std::string& place) {
  const json& measurements = table.at("measurements");
  if (!measurements.contains(id)) fail(place, fmt::format("measurement \"{}\" is not in \"measurements\"", id));
  const json& one = measurements.at(id);
  return fmt::format("{}, driver {}, {}, {}", field<std::string>(one, id, "gpu"), field<std::string>(one, id, "driver"),
                     field<std::string>(one, id, "compiler"), field<std::string>(one, id, "date"));
}

TunedEntry parse_entry(const json& table, const json& object, const std::string& place) {
  require_known_fields(
      object, place, {"family", "n", "k", "nt", "silu_mul", "tile", "pdl", "time_us", "alternative_us", "measurement"});
  TunedEntry entry;
  entry.family = parse_family(object, place);
  entry.n = field<std::int64_t>(object, place, "n");
  entry.k = field<std::int64_t>(object, place, "k");
  entry.nt = field<int>(object, place, "nt");
  entry.silu_mul = field_or<bool>(object, place, "silu_mul", false);
  entry.tile = parse_tile(field<json>(object, place, "tile"), place + ".tile");
  entry.pdl = field_or<bool>(object, place, "pdl", true);
  entry.time_us = field<double>(object, place, "time_us");
  entry.alternative_us = field_or<double>(object, place, "alternative_us", 0);
  if (!(entry.time_us > 0)) fail(place, "\"time_us\" must be a measured time");
  entry.provenance = parse_provenance(table, field<std::string>(object, place, "measurement"), place);
  return entry;
}

DefaultRow parse_default(const json& object, const std::string& place) {
  require_known_fields(object, place, {"family", "nt", "silu_mul", "min_n", "max_n", "min_k", "max_k", "tile", "pdl"});
  DefaultRow row;
  row.family = parse_family(object, place);
  row.nt = field_or<int>(object, place, "nt", -1);
  row.silu_mul = object.contains("silu_mul") ? (field<bool>(object, place, "silu_mul") ? 1 : 0) : -1;
  row.min_n = field_or<std::int64_t>(object, place, "min_n", 0);
  row.max_n = field_or<std::int64_t>(object, place, "max_n", 0);
  row.min_k = field_or<std::int64_t>(object, place, "min_k", 0);
  row.max_k = field_or<std::int64_t>(object, place, "max_k", 0);
  row.tile = parse_tile(field<json>(object, place, "tile"), place + ".tile");
  row.pdl = field_or<bool>(object, place, "pdl", true);
  return row;
}

TableData parse_document(const std::string& name, const json& table) {
  require_known_fields(table, "table", {"schema", "archs", "measurements", "entries", "defaults"});
  if (field<int>(table, "table", "schema") != 1) fail("table", "\"schema\" must be 1");
  TableData data;
  data.name = name;
  data.archs = field<std::vector<std::string>>(table, "table", "archs");
  for (const std::string& arch : data.archs) {
    if (arch == "*") continue;
    if (const auto parsed = Arch::parse(arch); !parsed) fail("archs", parsed.status().message());
  }
  const auto entries = field<std::vector<json>>(table, "table", "entries");
  for (std::size_t i = 0; i < entries.size(); ++i) {
    data.entries.push_back(parse_entry(table, entries[i], fmt::format("entries[{}]", i)));
  }
  const auto defaults = field<std::vector<json>>(table, "table", "defaults");
  for (std::size_t i = 0; i < defaults.size(); ++i) {
    data.defaults.push_back(parse_default(defaults[i], fmt::format("defaults[{}]", i)));
  }
  return data;
}

}  // namespace

bool DefaultRow::fits(const Problem& problem, int problem_nt) const {
  return family == problem.family && (nt < 0 || nt == problem_nt) &&
         (silu_mul < 0 || (silu_mul == 1) == problem.silu_mul) && problem.n >= min_n &&
         (max_n == 0 || problem.n <= max_n) && problem.k >= min_k && (max_k == 0 || problem.k <= max_k);
}

bool TableData::serves(const std::string& arch) const {
  for (const std::string& one : archs) {
    if (one == arch) return true;
  }
  return false;
}

Result<TableData> parse_table(const std::string& name, std::string_view text) {
  try {
    return parse_document(name, json::parse(text));
  } catch (const std::exception& e) {
    return Status(StatusCode::invalid_argument, fmt::format("tuning table {}: {}", name, e.what()));
  }
}

}  // namespace gemvjit
