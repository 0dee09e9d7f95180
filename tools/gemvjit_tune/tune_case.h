// TuneCase: what one search is about, a weight shape of a family and a number of token tiles; Configuration: one
// answer. Plain data and its spellings, without CUDA.
#pragma once

#include <compare>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/status.h"
#include "src/catalog/catalog.h"

namespace gemvjit::tools {

struct TuneCase {
  Family family = Family::nvfp4_gemv;
  std::int64_t n = 0, k = 0;
  bool silu_mul = false;
  int nt = 1;
  auto operator<=>(const TuneCase&) const = default;

  Problem problem() const { return {family, n, k, silu_mul, true}; }
  // The numbers of tokens that are timed; the score is the geometric mean over them. nt 1: 1 and 8; nt 2: 16; nt 4: 32.
  std::vector<std::int64_t> tokens() const;
  std::string text() const;  // "nvfp4 28672x4096:silu nt 1"
};

struct Configuration {
  TileConfig tile;
  bool pdl = true;
  bool operator==(const Configuration&) const = default;
  std::string text() const;  // all fields: "warps_k=8 warps_n=1 ... pdl=1"; tells configurations apart
};

// A tile's fields by name, as src/catalog/kernel_flags.h has them.
TileConfig default_tile();
// Null for a field that this version's kernels do not have.
unsigned TileConfig::*tile_member(std::string_view name);

// {"warps_k": 8, ...}: those fields that are not the default, and always warps_k.
nlohmann::ordered_json tile_to_json(const TileConfig& tile);
// Fields left out have their default. invalid_argument for what is no tile of this version: unknown fields, values that
// their flag field does not hold, and 0 where something is divided by it.
Result<TileConfig> tile_from_json(const nlohmann::ordered_json& object);

// Nothing for what is no whole number of 64 bits, which the JSON library's get() would cut to one.
std::optional<std::int64_t> whole_number(const nlohmann::ordered_json& value);

// {"family": "nvfp4_gemv", "n", "k", "nt", "silu_mul"}, to which callers add.
nlohmann::ordered_json case_to_json(const TuneCase& c);
// invalid_argument for a missing or wrong field, N and K above 2^31 among them (sizes computed from both stay within 64
// bits); others are not looked at.
Result<TuneCase> case_from_json(const nlohmann::ordered_json& object);

}  // namespace gemvjit::tools
