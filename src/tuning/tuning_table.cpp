#include "src/tuning/tuning_table.h"

#include <fmt/format.h>

#include "embedded/embedded_tuning_tables.h"
#include "src/base/files.h"
#include "src/base/sha256.h"
#include "src/tuning/table_data.h"

namespace gemvjit {
namespace {

constexpr std::size_t kTableSizeLimit = 64u << 20;

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

}  // namespace

struct TuningTables::Table : TableData {
  explicit Table(TableData data) : TableData(std::move(data)) {}
};

std::string_view match_name(Match match) {
  switch (match) {
    case Match::exact:
      return "exact";
    case Match::nearest_shape:
      return "nearest_shape";
    case Match::family_default:
      return "family_default";
  }
  return "unknown";
}

Result<TuningTables> TuningTables::load(const std::string& overlay_directory) {
  std::vector<NamedJson> documents;
  if (!overlay_directory.empty()) {
    GEMVJIT_TRY_ASSIGN(const std::vector<std::string> names, list_directory(overlay_directory));
    for (const std::string& name : names) {
      if (!ends_with(name, ".json")) continue;
      const std::string path = overlay_directory + "/" + name;
      GEMVJIT_TRY_ASSIGN(const Bytes bytes, read_file(path, kTableSizeLimit));
      documents.push_back({path, std::string(bytes.begin(), bytes.end())});
    }
  }
  for (const EmbeddedFile& file : embedded_tuning_tables()) {
    documents.push_back({std::string(file.name), std::string(file.text)});
  }
  return parse(documents);
}

Result<TuningTables> TuningTables::parse(const std::vector<NamedJson>& documents) {
  TuningTables tables;
  Sha256 hash;
  for (const NamedJson& document : documents) {
    GEMVJIT_TRY_ASSIGN(TableData data, parse_table(document.name, document.text));
    tables.tables_.push_back(std::make_shared<const Table>(std::move(data)));
    // The name of an overlay's file differs between hosts, so only contents and order count.
    hash.update_tagged("table", document.text);
  }
  tables.digest_ = to_hex(hash.finish());
  return tables;
}

const TuningTables::Table* TuningTables::table_for(const Arch& arch) const {
  const std::string text = arch.text();
  const Table* for_others = nullptr;
  for (const auto& table : tables_) {
    if (table->serves(text)) return table.get();
    if (for_others == nullptr && table->serves_all_others()) for_others = table.get();
  }
  return for_others;
}

Result<Choice> TuningTables::lookup(const Arch& arch, const Problem& problem, int nt, bool allow_untuned) const {
  Choice choice;
  choice.provenance = "untuned";
  if (!family_row(problem.family).has_tokens) {
    choice.tile = dequantize_tile();
    return choice;
  }
  const Table* table = table_for(arch);
  if (table == nullptr) {
    return Status(StatusCode::untuned, fmt::format("no tuning table serves {}", arch.text()));
  }
  for (const TunedEntry& entry : table->entries) {
    if (entry.family != problem.family || entry.n != problem.n || entry.k != problem.k || entry.nt != nt ||
        entry.silu_mul != problem.silu_mul) {
      continue;
    }
    return Choice{entry.tile, entry.pdl, Match::exact, entry.time_us, entry.alternative_us, entry.provenance};
  }
  const std::string shape = fmt::format("{} N={} K={} nt={}{} on {}", family_row(problem.family).name, problem.n,
                                        problem.k, nt, problem.silu_mul ? " silu_mul" : "", arch.text());
  if (!allow_untuned) {
    return Status(StatusCode::untuned, fmt::format("{} has no measured configuration, and untuned ones are not allowed "
                                                   "for this problem (allow_untuned)",
                                                   shape));
  }
  for (const DefaultRow& row : table->defaults) {
    if (!row.fits(problem, nt)) continue;
    choice.tile = row.tile;
    choice.pdl_wins = row.pdl;
    return choice;
  }
  return Status(StatusCode::untuned, fmt::format("{}: table {} has no default that fits", shape, table->name));
}

int TuningTables::pick_nt(const Arch& arch, const Problem& problem, std::int64_t m, bool allow_untuned) const {
  const int smallest = nt_for_m(m);
  if (smallest == 0) return 0;
  for (const int nt : nt_values(problem.family)) {
    if (nt < smallest) continue;
    const Result<Choice> choice = lookup(arch, problem, nt, allow_untuned);
    if (!choice) continue;
    // A measured entry that loses against the alternative is an answer: not this one.
    const bool wins = choice->match == Match::exact ? choice->tuned() : allow_untuned;
    if (wins && make_key(problem, nt, choice->tile, choice->pdl_wins, arch)) return nt;
  }
  return 0;
}

bool TuningTables::tuned(const Arch& arch, const Problem& problem) const {
  for (const int nt : nt_values(problem.family)) {
    const Result<Choice> choice = lookup(arch, problem, nt, false);
    if (choice && choice->tuned()) return true;
  }
  return false;
}

}  // namespace gemvjit
