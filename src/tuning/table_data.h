// A tuning table as data, and its parser. tuning_tables/README.md has the schema.
#pragma once

#include <string>
#include <vector>

#include "src/base/status.h"
#include "src/catalog/catalog.h"

namespace gemvjit {

// A configuration for one shape: measured, or predicted by a rule and never measured.
struct TunedEntry {
  Family family = Family::nvfp4_gemv;
  std::int64_t n = 0, k = 0;
  int nt = 0;
  bool silu_mul = false;
  TileConfig tile;
  bool pdl = true;
  bool predicted = false;
  double time_us = 0;                        // 0 if predicted, as all that follow; else > 0
  double alternative_us = 0;                 // 0: not measured
  double spread_us = 0;                      // half the distance between the quartiles of the samples; 0: not said
  std::int64_t samples = 0, candidates = 0;  // 0: not said
  std::string alternative;                   // what alternative_us is of; "": not said
  std::string provenance;                    // one line for people
};

// Untuned configuration of the shapes that fit; -1 and 0 stand for "any".
struct DefaultRow {
  Family family = Family::nvfp4_gemv;
  int nt = -1;
  int silu_mul = -1;
  std::int64_t min_n = 0, max_n = 0, min_k = 0, max_k = 0;
  TileConfig tile;
  bool pdl = true;
  bool serves(const Problem& problem, int problem_nt) const;  // some problem of this kind
  bool fits(const Problem& problem, int problem_nt) const;
  bool is_unbounded() const;  // takes every N and K, by its bounds and by its tile
};

struct TableData {
  std::string name;  // of the file, for messages
  std::vector<std::string> archs;
  std::vector<TunedEntry> entries;
  std::vector<DefaultRow> defaults;
};

// invalid_argument with the file's name and the place for whatever does not fit the schema, for a configuration that a
// listed target (other than "*") cannot have, for two measured or two predicted entries of one shape, and for a family
// without a default for every shape.
Result<TableData> parse_table(const std::string& name, std::string_view json);

// The "archs" of a table, without reading on behind them: parse_table() checks what they say and all the rest.
// invalid_argument if there are none.
Result<std::vector<std::string>> listed_archs(const std::string& name, std::string_view json);

}  // namespace gemvjit
