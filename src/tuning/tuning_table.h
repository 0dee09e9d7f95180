// Tuning tables: which tile configuration a shape gets, and whether the GEMV is the fastest choice there at all.
// The schema is in tuning_tables/README.md. A folder in the options overlays the embedded tables.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/status.h"
#include "src/catalog/catalog.h"
#include "src/catalog/reasons.h"

namespace gemvjit {

// How well a lookup fitted: measured for this shape; derived for it by a rule; measured for a neighbour; a row of the
// defaults. All but the first are served only where the caller allows untuned shapes.
enum class Match { exact, predicted, nearest_shape, family_default };
inline constexpr std::size_t kMatches = 4;
std::string_view match_name(Match match);

// The measured shape that a configuration was taken from.
struct MeasuredNeighbour {
  std::int64_t n = 0, k = 0;
  bool silu_mul = false;
  double distance = 0;  // sqrt(ln(n/n')^2 + ln(k/k')^2)
  double time_us = 0;   // there
};

struct Choice {
  TileConfig tile;
  bool pdl_wins = true;
  Match match = Match::family_default;
  double time_us = 0;         // measured; 0 if not
  double alternative_us = 0;  // of the best other way; 0 if not measured
  double spread_us = 0;       // of time_us; 0 if not said
  std::string alternative;    // what alternative_us is of; "" if not said
  std::string provenance;     // "NVIDIA H200, driver ..., date" (a neighbour's, if there is one) or "untuned"
  std::optional<MeasuredNeighbour> neighbour;  // with nearest_shape
  // Measured, and faster than the alternative.
  bool tuned() const {
    return match == Match::exact && time_us > 0 && (alternative_us <= 0 || time_us < alternative_us);
  }
};

// What a look-up passed over on its way.
struct Rejected {
  Reason reason;
  std::string what;    // "measured entry", "nt 1", ...
  std::string detail;  // "" if the reason says all
};

// A table's text with the name that messages call it by.
struct NamedJson {
  std::string name;
  std::string text;
};

class ServedTable;

class TuningTables {
 public:
  // The embedded tables, with those of `overlay_directory` (if not empty) laid over: a table there that lists
  // an arch replaces the embedded one for it. invalid_argument with file and JSON path for a table that does not fit
  // the schema. The embedded tables are parsed when a look-up first comes to them (some ms each), once in a process;
  // that they fit is for the tests to show.
  static Result<TuningTables> load(const std::string& overlay_directory);
  static Result<TuningTables> parse(const std::vector<NamedJson>& documents);  // earlier documents win

  // The configuration for one kernel: the measured entry of the shape. Else, if `allow_untuned`, the predicted entry of
  // the shape; that of the nearest measured shape of the family and nt (with silu_mul of one that has it too, if there
  // is any), its rounds scaled to N; the first row of the defaults that fits. A configuration that `arch` cannot have
  // is passed over for the next; of the defaults the last that fits is taken even so, and make_key then names the rule
  // that is broken. Else untuned. dequantize_rows always has its one configuration.
  // `rejected`, if given, gets what was passed over, in order.
  //
  // internal_error if the embedded table of `arch` does not fit the schema.
  Result<Choice> lookup(const Arch& arch, const Problem& problem, int nt, bool allow_untuned,
                        std::vector<Rejected>* rejected = nullptr) const;
  // Parses the table that serves the arch, so that no later look-up has to.
  Status prepare(const Arch& arch) const;
  // The file of the table that serves the arch; "" if none does.
  std::string table_name(const Arch& arch) const;
  // The smallest nt that covers M and is tuned (or that lookup() serves, where untuned shapes are allowed); 0 if none.
  int pick_nt(const Arch& arch, const Problem& problem, std::int64_t m, bool allow_untuned) const;
  // Whether any nt of the shape is tuned.
  bool tuned(const Arch& arch, const Problem& problem) const;
  // Hash over all tables, so that ranks can compare: 64 hex digits.
  const std::string& digest() const { return digest_; }

 private:
  enum class Embedded { no, yes };
  static Result<TuningTables> make(const std::vector<NamedJson>& documents, Embedded embedded);
  const ServedTable* table_for(const Arch& arch) const;
  std::vector<std::shared_ptr<const ServedTable>> tables_;
  std::string digest_;
};

}  // namespace gemvjit
