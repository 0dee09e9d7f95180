// TableFile: a tuning table (tuning_tables/README.md) as the tuner reads and writes it: what it measured replaces or
// joins what is there, everything else stays as it is. Pure but for the two functions that read and write the file.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tools/gemvjit_tune/sample_book.h"
#include "tools/gemvjit_tune/tune_case.h"

namespace gemvjit::tools {

// Where and with what entries were measured: a table's "measurements".
struct Provenance {
  std::string gpu, driver, compiler, date, commit, tool;
  int sm_count = 0, sm_clock_mhz = 0, memory_clock_mhz = 0, replays = 0;
  bool operator==(const Provenance&) const = default;
};

struct MeasuredEntry {
  TuneCase tune_case;
  Configuration configuration;
  double time_us = 0, spread_us = 0;
  int samples = 0, candidates = 0;
  double alternative_us = 0;  // 0: not measured
  std::string alternative;
  Provenance provenance;
};

struct PredictedEntry {
  TuneCase tune_case;
  Configuration configuration;
};

class TableFile {
 public:
  // An absent file is a new table for `arch` with one default a family. invalid_argument, with the file's name, for
  // what is no table.
  static Result<TableFile> read(const std::string& path, const std::string& arch);
  static Result<TableFile> parse(const std::string& name, const std::string& text);
  static TableFile fresh(const std::string& arch);
  // A table of predicted entries alone, which name no measurement; `defaults` are rows as a table has them.
  static TableFile predicted(const std::vector<std::string>& archs, const std::vector<PredictedEntry>& entries,
                             nlohmann::ordered_json defaults);

  // The table's choice for a case, measured or predicted, as it was read: merge() changes neither this nor known().
  std::optional<Configuration> present(const TuneCase& c) const;
  // Its measured configurations.
  const std::vector<Known>& known() const { return known_; }
  std::vector<std::string> archs() const;
  const nlohmann::ordered_json& defaults() const;
  // Entries in the order of family, silu_mul, N, K, nt; measurements that no entry names any more go.
  void merge(const std::vector<MeasuredEntry>& entries);
  // One line for each measurement, entry and default.
  std::string text() const;
  Status write(const std::string& path) const;

 private:
  // Of the table that was read: one entry's choice, for present() and known().
  Status remember(const std::string& name, std::size_t at);
  std::string measurement_id(const Provenance& provenance);
  nlohmann::ordered_json table_;
  std::map<TuneCase, Configuration> present_;
  std::vector<Known> known_;
};

}  // namespace gemvjit::tools
