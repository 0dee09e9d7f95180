#include "src/tuning/table_data.h"

#include <fmt/format.h>

#include <initializer_list>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <tuple>

#include "src/base/json_depth.h"
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
    fail(place, fmt::format("\"{}\": {}", name, json_error_text(e.what())));
  }
}

template <typename T>
T field_or(const json& object, const std::string& place, const char* name, T otherwise) {
  return object.contains(name) ? field<T>(object, place, name) : otherwise;
}

// A whole number within bounds, both included. The JSON library would cut a number to the type that is asked for.
std::int64_t integer(const json& value, const std::string& place, const std::string& name, std::int64_t least,
                     std::int64_t most) {
  const bool too_large = value.is_number_unsigned() && value.get<std::uint64_t>() > static_cast<std::uint64_t>(most);
  if (!value.is_number_integer() || too_large || value.get<std::int64_t>() < least ||
      value.get<std::int64_t>() > most) {
    fail(place, fmt::format("\"{}\" is {}; it must be a whole number from {} to {}", name, value.dump(), least, most));
  }
  return value.get<std::int64_t>();
}

constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();

std::int64_t integer_field(const json& object, const std::string& place, const char* name, std::int64_t least,
                           std::int64_t most) {
  return integer(field<json>(object, place, name), place, name, least, most);
}

// 0, which stands for "any", if the field is not there.
std::int64_t bound(const json& object, const std::string& place, const char* name) {
  return object.contains(name) ? integer_field(object, place, name, 0, largest) : 0;
}

int parse_nt(const json& object, const std::string& place, Family family) {
  const auto nt = static_cast<int>(integer_field(object, place, "nt", 1, 4));
  for (const int accepted : nt_values(family)) {
    if (nt == accepted) return nt;
  }
  fail(place, fmt::format("\"nt\" is {}; 1, 2 and 4 are accepted", nt));
}

Family parse_family(const json& object, const std::string& place) {
  const auto name = field<std::string>(object, place, "family");
  const FamilyRow* row = find_family(name);
  if (row == nullptr || !row->has_tokens)
    fail(place, fmt::format("\"{}\" is no family with a tile configuration", name));
  return row->family;
}

const FlagField& flag_of(const TileField& tile_field) {
  for (const FlagField& flag : flag_fields()) {
    if (std::string_view(flag.name) == tile_field.name) return flag;
  }
  fail(tile_field.name, "no field of the flags word");  // not reached: a test of the catalog holds the tables together
}

TileConfig parse_tile(const json& object, const std::string& place) {
  TileConfig tile;
  for (const TileField& tile_field : tile_fields()) tile.*tile_field.member = flag_of(tile_field).default_value;
  if (!object.is_object()) fail(place, "must be an object");
  for (const auto& [name, value] : object.items()) {
    const TileField* found = nullptr;
    for (const TileField& tile_field : tile_fields()) {
      if (name == tile_field.name) found = &tile_field;
    }
    if (found == nullptr) fail(place, fmt::format("unknown field \"{}\"", name));
    const std::int64_t most = (std::int64_t{1} << flag_of(*found).width) - 1;
    tile.*found->member = static_cast<unsigned>(integer(value, place, name, 0, most));
  }
  return tile;
}

std::string text_field(const json& object, const std::string& place, const char* name) {
  std::string text = field<std::string>(object, place, name);
  if (text.empty()) fail(place, fmt::format("\"{}\" is empty", name));
  return text;
}

// Where and when something was measured, as one line: "GPU, 132 SMs, SM 1980 MHz, ..., driver ..., compiler, date,
// ...".
std::string parse_measurement(const json& one, const std::string& place) {
  require_known_fields(one, place,
                       {"gpu", "driver", "compiler", "date", "sm_count", "sm_clock_mhz", "memory_clock_mhz", "commit",
                        "replays", "tool"});
  constexpr int most = std::numeric_limits<int>::max();
  std::string text = text_field(one, place, "gpu");
  const auto add_number = [&](const char* name, const char* format) {
    if (one.contains(name)) text += fmt::format(fmt::runtime(format), integer_field(one, place, name, 1, most));
  };
  const auto add_text = [&](const char* name, const char* format) {
    if (one.contains(name)) text += fmt::format(fmt::runtime(format), text_field(one, place, name));
  };
  add_number("sm_count", ", {} SMs");
  add_number("sm_clock_mhz", ", SM {} MHz");
  add_number("memory_clock_mhz", ", memory {} MHz");
  text += fmt::format(", driver {}, {}, {}", text_field(one, place, "driver"), text_field(one, place, "compiler"),
                      text_field(one, place, "date"));
  add_number("replays", ", {} replays");
  add_text("tool", ", {}");
  add_text("commit", ", commit {}");
  return text;
}

using Measurements = std::map<std::string, std::string>;  // provenance by id

Measurements parse_measurements(const json& table) {
  Measurements measurements;
  const json objects = field_or<json>(table, "table", "measurements", json::object());
  if (!objects.is_object()) fail("measurements", "must be an object");
  for (const auto& [id, one] : objects.items()) measurements[id] = parse_measurement(one, "measurements." + id);
  return measurements;
}

// What was measured of an entry.
void parse_times(const Measurements& measurements, const json& object, const std::string& place, TunedEntry& entry) {
  entry.time_us = field<double>(object, place, "time_us");
  entry.alternative_us = field_or<double>(object, place, "alternative_us", 0);
  entry.spread_us = field_or<double>(object, place, "spread_us", 0);
  entry.alternative = field_or<std::string>(object, place, "alternative", "");
  if (!(entry.time_us > 0)) fail(place, "\"time_us\" must be a measured time");
  if (!(entry.alternative_us >= 0)) fail(place, "\"alternative_us\" must be a measured time, or 0 for none");
  if (!(entry.spread_us >= 0)) fail(place, "\"spread_us\" must be 0 or more");
  if (!entry.alternative.empty() && !(entry.alternative_us > 0)) {
    fail(place, "\"alternative\" names something without a time in \"alternative_us\"");
  }
  if (object.contains("samples")) entry.samples = integer_field(object, place, "samples", 1, largest);
  if (object.contains("candidates")) entry.candidates = integer_field(object, place, "candidates", 1, largest);
  const auto id = field<std::string>(object, place, "measurement");
  const auto found = measurements.find(id);
  if (found == measurements.end()) fail(place, fmt::format("measurement \"{}\" is not in \"measurements\"", id));
  entry.provenance = found->second;
}

TunedEntry parse_entry(const Measurements& measurements, const json& object, const std::string& place) {
  constexpr const char* of_measured[] = {"time_us", "alternative_us", "alternative", "spread_us",
                                         "samples", "candidates",     "measurement"};
  require_known_fields(object, place,
                       {"family", "n", "k", "nt", "silu_mul", "tile", "pdl", "predicted", "time_us", "alternative_us",
                        "alternative", "spread_us", "samples", "candidates", "measurement"});
  TunedEntry entry;
  entry.family = parse_family(object, place);
  entry.n = integer_field(object, place, "n", 1, largest);
  entry.k = integer_field(object, place, "k", 1, largest);
  entry.nt = parse_nt(object, place, entry.family);
  entry.silu_mul = field_or<bool>(object, place, "silu_mul", false);
  entry.tile = parse_tile(field<json>(object, place, "tile"), place + ".tile");
  entry.pdl = field_or<bool>(object, place, "pdl", true);
  entry.predicted = field_or<bool>(object, place, "predicted", false);
  if (!entry.predicted) {
    parse_times(measurements, object, place, entry);
    return entry;
  }
  for (const char* name : of_measured) {
    if (object.contains(name)) fail(place, fmt::format("\"predicted\" and \"{}\" exclude each other", name));
  }
  entry.provenance = "predicted, not measured";
  return entry;
}

DefaultRow parse_default(const json& object, const std::string& place) {
  require_known_fields(object, place, {"family", "nt", "silu_mul", "min_n", "max_n", "min_k", "max_k", "tile", "pdl"});
  DefaultRow row;
  row.family = parse_family(object, place);
  row.nt = object.contains("nt") ? parse_nt(object, place, row.family) : -1;
  row.silu_mul = object.contains("silu_mul") ? (field<bool>(object, place, "silu_mul") ? 1 : 0) : -1;
  row.min_n = bound(object, place, "min_n");
  row.max_n = bound(object, place, "max_n");
  row.min_k = bound(object, place, "min_k");
  row.max_k = bound(object, place, "max_k");
  row.tile = parse_tile(field<json>(object, place, "tile"), place + ".tile");
  row.pdl = field_or<bool>(object, place, "pdl", true);
  return row;
}

// Every target that the table lists can have the kernel.
void require_key(const TableData& data, const Problem& problem, int nt, const TileConfig& tile, bool pdl,
                 const std::string& place) {
  if (const Status shape = check_problem(problem); !shape) fail(place, shape.message());  // "*" names no target to ask
  for (const std::string& name : data.archs) {
    if (name == "*") continue;
    const Result<Arch> arch = Arch::parse(name);
    if (!arch) fail("archs", arch.status().message());
    if (const auto key = make_key(problem, nt, tile, pdl, *arch); !key) fail(place, key.status().message());
  }
}

// Whether a row before this one serves every shape that would come to it.
bool is_shadowed(const std::vector<DefaultRow>& rows, std::size_t row, const Problem& problem, int nt) {
  for (std::size_t i = 0; i < row; ++i) {
    if (rows[i].is_unbounded() && rows[i].fits(problem, nt)) return true;
  }
  return false;
}

// What each row gives is possible for some shape that it serves, and no shape goes without: the rules for a direct tile
// know a shape by its grid only, so that one shape stands for all, and a row of another kind does not count as the
// last.
void check_defaults(const TableData& data) {
  for (const FamilyRow& family : families()) {
    for (const bool silu_mul : {false, true}) {
      if (!family.has_tokens || (silu_mul && !family.can_silu_mul)) continue;
      for (const int nt : nt_values(family.family)) {
        const Problem problem{family.family, 128, 128, silu_mul, true};
        for (std::size_t i = 0; i < data.defaults.size(); ++i) {
          const DefaultRow& row = data.defaults[i];
          if (!row.serves(problem, nt) || is_shadowed(data.defaults, i, problem, nt)) continue;
          require_key(data, problem, nt, row.tile, row.pdl, fmt::format("defaults[{}].tile", i));
        }
        if (is_shadowed(data.defaults, data.defaults.size(), problem, nt)) continue;
        fail("defaults",
             fmt::format("no row fits every {} of nt {}{}: end the family's rows with one that has no bounds",
                         family.name, nt, silu_mul ? " with silu_mul" : ""));
      }
    }
  }
}

void parse_entries(const json& table, TableData& data) {
  const Measurements measurements = parse_measurements(table);
  const auto entries = field<std::vector<json>>(table, "table", "entries");
  std::map<std::tuple<Family, std::int64_t, std::int64_t, int, bool, bool>, std::size_t> seen;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::string place = fmt::format("entries[{}]", i);
    const TunedEntry& entry = data.entries.emplace_back(parse_entry(measurements, entries[i], place));
    require_key(data, {entry.family, entry.n, entry.k, entry.silu_mul, true}, entry.nt, entry.tile, entry.pdl, place);
    const auto [other, is_new] =
        seen.try_emplace({entry.family, entry.n, entry.k, entry.nt, entry.silu_mul, entry.predicted}, i);
    if (!is_new) fail(place, fmt::format("the same shape and nt as entries[{}]", other->second));
  }
}

TableData parse_document(const std::string& name, const json& table) {
  require_known_fields(table, "table", {"schema", "archs", "measurements", "entries", "defaults"});
  if (field<json>(table, "table", "schema") != 1) fail("table", "\"schema\" must be 1");
  TableData data;
  data.name = name;
  data.archs = field<std::vector<std::string>>(table, "table", "archs");
  for (const std::string& arch : data.archs) {
    if (arch == "*") continue;
    if (const auto parsed = Arch::parse(arch); !parsed) fail("archs", parsed.status().message());
  }
  parse_entries(table, data);
  const auto defaults = field<std::vector<json>>(table, "table", "defaults");
  for (std::size_t i = 0; i < defaults.size(); ++i) {
    data.defaults.push_back(parse_default(defaults[i], fmt::format("defaults[{}]", i)));
  }
  check_defaults(data);
  return data;
}

// Takes what the JSON library reads, up to the end of the list "archs" of the outermost object.
class ArchsReader : public nlohmann::json_sax<json> {
 public:
  bool found() const { return found_; }
  std::vector<std::string> take() { return std::move(archs_); }

  bool key(string_t& name) override {
    is_next_ = depth_ == 1 && name == "archs";
    return true;
  }
  bool start_array(std::size_t) override {
    in_list_ = is_next_;
    return enter();
  }
  bool end_array() override {
    found_ = found_ || in_list_;
    return --depth_, !in_list_;  // false ends the reading
  }
  bool string(string_t& text) override {
    if (in_list_) archs_.push_back(text);
    return value();
  }
  bool start_object(std::size_t) override { return enter(); }
  bool end_object() override { return --depth_, true; }
  bool null() override { return value(); }
  bool boolean(bool) override { return value(); }
  bool number_integer(number_integer_t) override { return value(); }
  bool number_unsigned(number_unsigned_t) override { return value(); }
  bool number_float(number_float_t, const string_t&) override { return value(); }
  bool binary(binary_t&) override { return value(); }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }

 private:
  bool enter() { return is_next_ = false, ++depth_, true; }
  bool value() { return is_next_ = false, true; }
  int depth_ = 0;
  bool is_next_ = false, in_list_ = false, found_ = false;
  std::vector<std::string> archs_;
};

}  // namespace

bool DefaultRow::serves(const Problem& problem, int problem_nt) const {
  return family == problem.family && (nt < 0 || nt == problem_nt) &&
         (silu_mul < 0 || (silu_mul == 1) == problem.silu_mul);
}

bool DefaultRow::fits(const Problem& problem, int problem_nt) const {
  return serves(problem, problem_nt) && problem.n >= min_n && (max_n == 0 || problem.n <= max_n) &&
         problem.k >= min_k && (max_k == 0 || problem.k <= max_k);
}

bool DefaultRow::is_unbounded() const {
  return min_n <= 1 && max_n == 0 && min_k <= 1 && max_k == 0 && tile.variant == 0 && tile.x_path == 0;
}

Result<TableData> parse_table(const std::string& name, std::string_view text) {
  try {
    if (json_nests_deeper_than(text, kMaxJsonLevels)) {
      fail("table", fmt::format("nested more than {} levels deep", kMaxJsonLevels));
    }
    return parse_document(name, json::parse(text));
  } catch (const std::exception& e) {
    return Status(StatusCode::invalid_argument, fmt::format("tuning table {}: {}", name, json_error_text(e.what())));
  }
}

Result<std::vector<std::string>> listed_archs(const std::string& name, std::string_view text) {
  ArchsReader reader;
  json::sax_parse(text, &reader);
  if (reader.found()) return reader.take();
  return Status(StatusCode::invalid_argument, fmt::format("tuning table {}: no list \"archs\"", name));
}

}  // namespace gemvjit
