#include "src/tuning/tuning_table.h"

#include <fmt/format.h>

#include "embedded/embedded_tuning_tables.h"
#include "src/base/files.h"
#include "src/base/sha256.h"
#include "src/tuning/served_table.h"

namespace gemvjit {
namespace {

constexpr std::size_t kTableSizeLimit = 64u << 20;

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

Result<std::vector<std::shared_ptr<const ServedTable>>> served_later(std::span<const EmbeddedFile> files) {
  std::vector<std::shared_ptr<const ServedTable>> tables;
  for (const EmbeddedFile& file : files) {
    GEMVJIT_TRY_ASSIGN(auto table, ServedTable::parsed_later(std::string(file.name), file.text));
    tables.push_back(std::move(table));
  }
  return tables;
}

bool is_possible(const Arch& arch, const Problem& problem, int nt, const TileConfig& tile, bool pdl) {
  return make_key(problem, nt, tile, pdl, arch).is_ok();
}

// Of the entry of the shape itself.
Choice choice_of(const TunedEntry& entry) {
  Choice choice;
  choice.tile = entry.tile;
  choice.pdl_wins = entry.pdl;
  choice.match = entry.predicted ? Match::predicted : Match::exact;
  choice.time_us = entry.time_us;
  choice.alternative_us = entry.alternative_us;
  choice.spread_us = entry.spread_us;
  choice.alternative = entry.alternative;
  choice.provenance = entry.provenance;
  return choice;
}

// Notes what is passed over, where anybody wants to know.
class RejectionNotes {
 public:
  explicit RejectionNotes(std::vector<Rejected>* notes) : notes_(notes) {}
  void add(Reason reason, std::string_view what, std::string detail = "") const {
    if (notes_ != nullptr) notes_->push_back({reason, std::string(what), std::move(detail)});
  }
  // Whether the configuration is possible; noted with the rule that it breaks if not.
  bool possible(const Arch& arch, const Problem& problem, int nt, const TileConfig& tile, bool pdl,
                std::string_view what) const {
    if (notes_ == nullptr) return is_possible(arch, problem, nt, tile, pdl);
    const Result<KernelKey> key = make_key(problem, nt, tile, pdl, arch);
    if (!key) add(Reason::tile_not_possible, what, key.status().message());
    return key.is_ok();
  }

 private:
  std::vector<Rejected>* notes_;
};

std::optional<Choice> choice_of_neighbour(const EntryIndex& index, const Arch& arch, const Problem& problem, int nt,
                                          const RejectionNotes& notes) {
  if (!check_problem(problem)) return std::nullopt;
  const auto accept = [&](const TunedEntry& entry) {
    const std::string what = fmt::format("neighbour N={} K={}", entry.n, entry.k);
    return notes.possible(arch, problem, nt, adapt_tile(entry.tile, entry.n, problem.n), entry.pdl, what);
  };
  Neighbour nearest = index.nearest(problem, nt, problem.silu_mul, accept);
  if (nearest.entry == nullptr && problem.silu_mul) nearest = index.nearest(problem, nt, false, accept);
  if (nearest.entry == nullptr) return std::nullopt;
  const TunedEntry& entry = *nearest.entry;
  Choice choice;
  choice.tile = adapt_tile(entry.tile, entry.n, problem.n);
  choice.pdl_wins = entry.pdl;
  choice.match = Match::nearest_shape;
  choice.provenance = entry.provenance;
  choice.neighbour = MeasuredNeighbour{entry.n, entry.k, entry.silu_mul, nearest.distance, entry.time_us};
  return choice;
}

}  // namespace

std::string_view match_name(Match match) {
  switch (match) {
    case Match::exact:
      return "exact";
    case Match::predicted:
      return "predicted";
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
  return make(documents, Embedded::yes);
}

Result<TuningTables> TuningTables::parse(const std::vector<NamedJson>& documents) {
  return make(documents, Embedded::no);
}

Result<TuningTables> TuningTables::make(const std::vector<NamedJson>& documents, Embedded embedded) {
  TuningTables tables;
  // The name of an overlay's file differs between hosts, so only contents and order count.
  Sha256 digest;
  for (const NamedJson& document : documents) {
    GEMVJIT_TRY_ASSIGN(TableData data, parse_table(document.name, document.text));
    tables.tables_.push_back(std::make_shared<const ServedTable>(std::move(data)));
    digest.update_tagged("table", to_hex(Sha256::of(document.text.data(), document.text.size())));
  }
  if (embedded == Embedded::yes) {
    // Shared by the contexts of the process, also by one that is made while exit handlers run: never destroyed.
    static const auto& shared = *new auto(served_later(embedded_tuning_tables()));
    GEMVJIT_TRY(shared.status());
    tables.tables_.insert(tables.tables_.end(), shared.value().begin(), shared.value().end());
    for (const EmbeddedFile& file : embedded_tuning_tables()) digest.update_tagged("table", file.sha256);
  }
  tables.digest_ = to_hex(digest.finish());
  return tables;
}

const ServedTable* TuningTables::table_for(const Arch& arch) const {
  const std::string text = arch.text();
  const ServedTable* for_others = nullptr;
  for (const auto& table : tables_) {
    if (table->serves(text)) return table.get();
    if (for_others == nullptr && table->serves("*")) for_others = table.get();
  }
  return for_others;
}

Status TuningTables::prepare(const Arch& arch) const {
  const ServedTable* table = table_for(arch);
  return table == nullptr ? Status::ok() : table->rows().status();
}

std::string TuningTables::table_name(const Arch& arch) const {
  const ServedTable* table = table_for(arch);
  return table == nullptr ? "" : table->name();
}

Result<Choice> TuningTables::lookup(const Arch& arch, const Problem& problem, int nt, bool allow_untuned,
                                    std::vector<Rejected>* rejected) const {
  const RejectionNotes notes(rejected);
  Choice choice;
  choice.provenance = "untuned";
  if (!family_row(problem.family).has_tokens) {
    choice.tile = no_tile();
    return choice;
  }
  GEMVJIT_TRY(arch_facts(arch).status());
  const ServedTable* served_table = table_for(arch);
  if (served_table == nullptr) {
    notes.add(Reason::no_table, "tuning tables");
    return Status(StatusCode::untuned, fmt::format("no tuning table serves {}", arch.text()));
  }
  GEMVJIT_TRY_ASSIGN(const IndexedTable* table, served_table->rows());
  const auto serves = [&](const TunedEntry* entry, Reason absent, std::string_view what) {
    if (entry == nullptr) notes.add(absent, what);
    return entry != nullptr && notes.possible(arch, problem, nt, entry->tile, entry->pdl, what);
  };
  const TunedEntry* measured = table->index.measured(problem, nt);
  if (serves(measured, Reason::no_measured_entry, "measured entry")) return choice_of(*measured);
  const std::string shape = fmt::format("{} N={} K={} nt={}{} on {}", family_row(problem.family).name, problem.n,
                                        problem.k, nt, problem.silu_mul ? " silu_mul" : "", arch.text());
  if (!allow_untuned) {
    notes.add(Reason::untuned_not_allowed, "other configurations");
    return Status(StatusCode::untuned, fmt::format("{} has no measured configuration, and untuned ones are not allowed "
                                                   "for this problem (allow_untuned)",
                                                   shape));
  }
  const TunedEntry* predicted = table->index.predicted(problem, nt);
  if (serves(predicted, Reason::no_predicted_entry, "predicted entry")) return choice_of(*predicted);
  if (auto neighbour = choice_of_neighbour(table->index, arch, problem, nt, notes)) return std::move(*neighbour);
  notes.add(Reason::no_neighbour, "measured neighbours");
  const DefaultRow* served = nullptr;
  for (const DefaultRow& row : table->defaults) {
    if (!row.fits(problem, nt)) continue;
    served = &row;
    // A tile may have needs of its own, such as a K it divides or shared memory for x: then the next row serves.
    if (notes.possible(arch, problem, nt, row.tile, row.pdl, "default")) break;
  }
  if (served == nullptr) {
    notes.add(Reason::no_default_fits, "defaults");
    return Status(StatusCode::untuned, fmt::format("{}: table {} has no default that fits", shape, table->name));
  }
  choice.tile = served->tile;
  choice.pdl_wins = served->pdl;
  return choice;
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
