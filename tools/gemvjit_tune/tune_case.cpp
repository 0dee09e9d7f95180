#include "tools/gemvjit_tune/tune_case.h"

#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "src/base/json_depth.h"
#include "src/catalog/kernel_flags.h"

namespace gemvjit::tools {
namespace {

constexpr std::int64_t kLargestSide = std::int64_t{1} << 31;

const FlagField* flag_named(std::string_view name) {
  for (const FlagField& field : flag_fields()) {
    if (field.name == name) return &field;
  }
  return nullptr;
}

Status bad(const std::string& what) { return {StatusCode::invalid_argument, what}; }

}  // namespace

std::vector<std::int64_t> TuneCase::tokens() const {
  if (nt == 1) return {1, 8};
  return {nt * 8};
}

std::string TuneCase::text() const {
  return fmt::format("{} {}x{}{} nt {}", family_row(family).short_name, n, k, silu_mul ? ":silu" : "", nt);
}

std::string Configuration::text() const {
  std::string text;
  for (const TileField& field : tile_fields()) text += fmt::format("{}={} ", field.name, tile.*field.member);
  return text + fmt::format("pdl={}", pdl ? 1 : 0);
}

TileConfig default_tile() {
  TileConfig tile;
  for (const TileField& field : tile_fields()) tile.*field.member = flag_named(field.name)->default_value;
  return tile;
}

unsigned TileConfig::*tile_member(std::string_view name) {
  for (const TileField& field : tile_fields()) {
    if (field.name == name) return field.member;
  }
  return nullptr;
}

nlohmann::ordered_json tile_to_json(const TileConfig& tile) {
  nlohmann::ordered_json object = {{"warps_k", tile.warps_k}};
  const TileConfig otherwise = default_tile();
  for (const TileField& field : tile_fields()) {
    if (tile.*field.member != otherwise.*field.member) object[field.name] = tile.*field.member;
  }
  return object;
}

Result<TileConfig> tile_from_json(const nlohmann::ordered_json& object) {
  if (!object.is_object()) return bad("a tile must be an object");
  TileConfig tile = default_tile();
  for (const auto& [name, value] : object.items()) {
    unsigned TileConfig::*const member = tile_member(name);
    if (member == nullptr) return bad(fmt::format("\"{}\" is no field of a tile", name));
    const FlagField& field = *flag_named(name);
    const auto number = whole_number(value);
    const std::int64_t least = field.default_value > 0 ? 1 : 0;
    if (!number || *number < least || *number >= std::int64_t{1} << field.width) {
      return bad(fmt::format("\"{}\" of a tile is {}", name, value.dump()));
    }
    tile.*member = static_cast<unsigned>(*number);
  }
  return tile;
}

std::optional<std::int64_t> whole_number(const nlohmann::ordered_json& value) {
  if (!value.is_number_integer()) return std::nullopt;
  constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > most) return std::nullopt;
  return value.get<std::int64_t>();
}

nlohmann::ordered_json case_to_json(const TuneCase& c) {
  return {{"family", family_row(c.family).name}, {"n", c.n}, {"k", c.k}, {"nt", c.nt}, {"silu_mul", c.silu_mul}};
}

Result<TuneCase> case_from_json(const nlohmann::ordered_json& object) {
  TuneCase c;
  try {
    const FamilyRow* row = find_family(object.at("family").get<std::string>());
    if (row == nullptr || !row->has_tokens) return bad("\"family\" is no GEMV family");
    c.family = row->family;
    const auto n = whole_number(object.at("n")), k = whole_number(object.at("k")), nt = whole_number(object.at("nt"));
    if (!n || !k || !nt) return bad("\"n\", \"k\" and \"nt\" must be whole numbers");
    if (*n <= 0 || *k <= 0 || *n > kLargestSide || *k > kLargestSide || (*nt != 1 && *nt != 2 && *nt != 4)) {
      return bad("\"n\" and \"k\" must be 1 to 2^31, \"nt\" 1, 2 or 4");
    }
    c.n = *n, c.k = *k, c.nt = static_cast<int>(*nt);
    c.silu_mul = object.value("silu_mul", false);
  } catch (const nlohmann::json::exception& e) {
    return bad(json_error_text(e.what()));
  }
  return c;
}

}  // namespace gemvjit::tools
