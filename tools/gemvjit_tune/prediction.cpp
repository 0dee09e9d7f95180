#include "tools/gemvjit_tune/prediction.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <future>
#include <limits>
#include <map>

#include "kernels/shared/gemv_geometry.h"
#include "src/compile/specialize.h"
#include "tools/gemvjit_tune/candidates.h"

namespace gemvjit::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr unsigned kMostStages = 15;
// N and K of the case that stands for a row of defaults, within its bounds: neither fits a tile, which costs the most
// registers, and K has more steps than any `stages` holds.
constexpr std::int64_t kUsualN = 4104, kUsualK = 65568, kShortK = 4096;
// The longest that a key may have: bounds of rows may be any number.
constexpr std::int64_t kMostN = std::int64_t{1} << 31, kMostK = std::int64_t{1} << 27;
constexpr double kDearerAField = 0.1;

bool is_valid_on_all(const TuneCase& c, const Configuration& configuration, const std::vector<Arch>& archs) {
  return std::all_of(archs.begin(), archs.end(), [&](const Arch& arch) {
    return is_valid(c, {arch, 1}, configuration);  // the SM count plays no part
  });
}

// Rule 2.
std::optional<Configuration> with_nearest_stages(const TuneCase& c, Configuration configuration, unsigned measured,
                                                 double wanted, const Chip& to) {
  using Distance = std::pair<long long, unsigned>;
  std::optional<Configuration> best;
  Distance best_distance;
  for (unsigned stages = std::clamp(measured, 1u, 2u); stages <= kMostStages; ++stages) {
    configuration.tile.stages = stages;
    if (!is_valid_on_all(c, configuration, to.archs)) continue;
    const double in_flight = in_flight_bytes(c, {to.archs.front(), to.sm_count}, configuration.tile);
    // In thousandths, so that rounding makes no two equals differ.
    const Distance distance = {std::llround(1000 * std::abs(std::log(in_flight / wanted))),
                               stages > measured ? stages - measured : measured - stages};
    if (best && distance >= best_distance) continue;
    best = configuration;
    best_distance = distance;
  }
  return best;
}

// A rank of the shared memory that x gets.
unsigned x_memory(const TileConfig& tile) {
  return tile.x_path == kXDealt ? 2 : tile.x_path == kXRing ? 1 : tile.x_path;
}

// Rule 4.
std::optional<Configuration> nearest_candidate(const TuneCase& c, const Configuration& start, const Chip& to) {
  std::optional<Configuration> best;
  double best_us = std::numeric_limits<double>::infinity();
  for (const Candidate& one : enumerate_candidates(c, {to.archs.front(), to.sm_count})) {
    const TileConfig& tile = one.configuration.tile;
    if (tile.variant > start.tile.variant || x_memory(tile) > x_memory(start.tile)) continue;
    if (tile.cluster_k > start.tile.cluster_k) continue;
    const double us = one.model_us * (1 + kDearerAField * differing_fields(tile, start.tile));
    Configuration candidate{tile, start.pdl};
    if (us >= best_us || !is_valid_on_all(c, candidate, to.archs)) continue;
    best = candidate;
    best_us = us;
  }
  return best;
}

Result<bool> spills(const TuneCase& c, const Configuration& configuration, const Arch& arch, Compiler& compiler) {
  GEMVJIT_TRY_ASSIGN(const KernelKey key, make_key(c.problem(), c.nt, configuration.tile, configuration.pdl, arch));
  GEMVJIT_TRY_ASSIGN(const Recipe recipe, specialize(key));
  GEMVJIT_TRY_ASSIGN(const Cubin cubin, compiler.compile(recipe));
  return cubin.resources.spill_store_bytes + cubin.resources.spill_load_bytes > 0;
}

std::int64_t bound_of(const Json& row, const char* name, std::int64_t otherwise) {
  return row.contains(name) && row[name].is_number_integer() && row[name].get<std::int64_t>() > 0
             ? row[name].get<std::int64_t>()
             : otherwise;
}

// Kernels of which one spills where the other does: N and K hardly change the registers.
std::string kind_of(const TuneCase& c, const Configuration& configuration) {
  return fmt::format("{} {} {} {}", static_cast<unsigned>(c.family), c.nt, c.silu_mul, configuration.text());
}

void count(const Settled& settled, PredictionReport& report) {
  report.compiled += settled.compiled;
  if (settled.steps > 0) ++report.stepped_back;
}

Status predict_entries(const TableFile& source, const Chip& from, const Chip& to, std::size_t sample,
                       Compiler* compiler, WorkPool& pool, PredictionReport& report) {
  for (const Known& known : source.known()) {
    Chip measured_on = from;
    if (known.sm_count > 0) measured_on.sm_count = known.sm_count;
    if (measured_on.sm_count <= 0) {
      return {StatusCode::invalid_argument,
              fmt::format("the measurement of {} names no SM count: say --from-sm-count", known.tune_case.text())};
    }
    if (const auto made = predict(known.tune_case, known.configuration, measured_on, to)) {
      report.entries.push_back({known.tune_case, *made});
    } else {
      report.failures.push_back(fmt::format("{}: no configuration is possible", known.tune_case.text()));
    }
  }
  const auto chosen = spread_sample(report.entries.size(), compiler == nullptr ? 0 : sample);
  std::vector<std::future<Settled>> running;
  for (const std::size_t at : chosen) {
    running.push_back(pool.submit([entry = report.entries[at], archs = to.archs, compiler] {
      return settle(entry.tune_case, entry.configuration, archs, *compiler);
    }));
  }
  std::map<std::size_t, Settled> settled;
  std::map<std::string, Configuration> by_kind;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    Settled one = running[i].get();
    count(one, report);
    const PredictedEntry& entry = report.entries[chosen[i]];
    if (one.configuration) by_kind.emplace(kind_of(entry.tune_case, entry.configuration), *one.configuration);
    settled[chosen[i]] = std::move(one);
  }
  std::vector<PredictedEntry> kept;
  for (std::size_t i = 0; i < report.entries.size(); ++i) {
    PredictedEntry entry = report.entries[i];
    const auto own = settled.find(i);
    if (own != settled.end() && !own->second.configuration) {
      report.failures.push_back(fmt::format("{}: {}", entry.tune_case.text(), own->second.failure));
      continue;
    }
    const auto like = by_kind.find(kind_of(entry.tune_case, entry.configuration));
    if (own != settled.end()) {
      entry.configuration = *own->second.configuration;
    } else if (like != by_kind.end() && is_valid_on_all(entry.tune_case, like->second, to.archs)) {
      entry.configuration = like->second;
    }
    kept.push_back(entry);
  }
  report.entries = std::move(kept);
  return Status::ok();
}

// For many turns and for few.
Settled settle_default(const DefaultCase& row, const std::vector<Arch>& archs, Compiler& compiler) {
  TuneCase short_case = row.tune_case;
  short_case.k = row.short_k;
  const Settled first = settle(short_case, row.configuration, archs, compiler);
  if (!first.configuration) return first;
  Settled second = settle(row.tune_case, *first.configuration, archs, compiler);
  second.compiled += first.compiled;
  second.steps += first.steps;
  return second;
}

Status predict_defaults(const TableFile& source, const Chip& from, const Chip& to, Compiler* compiler, WorkPool& pool,
                        PredictionReport& report) {
  std::vector<std::pair<DefaultCase, std::future<Settled>>> rows;
  for (const Json& row : source.defaults()) {
    GEMVJIT_TRY_ASSIGN(DefaultCase one, default_case(row));
    const auto made = predict(one.tune_case, one.configuration, from, to);
    if (!made) return {StatusCode::unsupported, fmt::format("no configuration for {}", row.dump())};
    one.configuration = *made;
    rows.emplace_back(one, pool.submit([one, archs = to.archs, compiler] {
      return compiler == nullptr ? Settled{one.configuration, 0, 0, ""} : settle_default(one, archs, *compiler);
    }));
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Settled settled = rows[i].second.get();
    count(settled, report);
    // A row must stay: without the last one of its family the table would be refused.
    if (!settled.configuration) report.failures.push_back(fmt::format("defaults[{}]: {}", i, settled.failure));
    report.defaults.push_back(predicted_row(
        source.defaults()[i], settled.configuration.value_or(rows[i].first.configuration), from.sm_count, to.sm_count));
  }
  return Status::ok();
}

}  // namespace

std::optional<Configuration> predict(const TuneCase& c, const Configuration& measured, const Chip& from,
                                     const Chip& to) {
  Configuration made = measured;
  if (made.tile.rounds > 1) {  // 1
    const double exact = 1.0 * made.tile.rounds * from.sm_count / to.sm_count;
    made.tile.rounds = static_cast<unsigned>(std::clamp(std::ceil(exact - 1e-6), 1.0, 63.0));
  }
  if (!to.clusters) made.tile.cluster_k = 1;
  const bool known = from.gb_per_s > 0 && to.gb_per_s > 0;
  const double ratio = known ? (to.gb_per_s / to.sm_count) / (from.gb_per_s / from.sm_count) : 1;
  const double wanted = ratio * in_flight_bytes(c, {from.archs.front(), from.sm_count}, measured.tile);
  for (;; made.tile.x_path = made.tile.x_path > kXRing - 1 ? kXDirect : made.tile.x_path - 1) {  // 3
    if (const auto found = with_nearest_stages(c, made, measured.tile.stages, wanted, to)) return found;
    if (made.tile.x_path == 0) break;
  }
  made.tile.x_path = measured.tile.x_path;
  return nearest_candidate(c, made, to);
}

std::vector<Configuration> step_backs(const Configuration& configuration) {
  std::vector<Configuration> steps;
  Configuration one = configuration;
  while (one.tile.min_ctas > 1) {
    --one.tile.min_ctas;
    steps.push_back(one);
  }
  for (;; one.tile.row_tiles /= 2) {
    for (one.tile.stages = configuration.tile.stages; one.tile.stages >= 1; --one.tile.stages) {
      const bool is_there = one == configuration || (!steps.empty() && one == steps.back());
      if (!is_there) steps.push_back(one);
    }
    if (one.tile.row_tiles <= 1) break;
  }
  return steps;
}

Settled settle(const TuneCase& c, const Configuration& start, const std::vector<Arch>& archs, Compiler& compiler) {
  std::vector<Configuration> tries = {start};
  for (const Configuration& one : step_backs(start)) tries.push_back(one);
  Settled settled;
  for (std::size_t i = 0; i < tries.size(); ++i) {
    if (!is_valid_on_all(c, tries[i], archs)) continue;
    bool clean = true;
    for (std::size_t arch = 0; arch < archs.size() && clean; ++arch) {
      const auto answer = spills(c, tries[i], archs[arch], compiler);
      ++settled.compiled;
      if (!answer) {
        const std::string why(answer.status().message());
        settled.failure = why.substr(0, why.find('\n'));
        return settled;
      }
      clean = !*answer;
    }
    if (!clean) continue;
    settled.configuration = tries[i];
    settled.steps = static_cast<int>(i);
    return settled;
  }
  settled.failure = "spills registers, with one stage of one row tile too: " + start.text();
  return settled;
}

Result<DefaultCase> default_case(const Json& row) {
  const auto fail = [&](const std::string& why) {
    return Status(StatusCode::invalid_argument, fmt::format("a row of defaults: {}: {}", why, row.dump()));
  };
  if (!row.is_object()) return fail("not an object");
  GEMVJIT_TRY_ASSIGN(const TileConfig tile, tile_from_json(row.value("tile", Json::object())));
  const bool silu_mul = row.value("silu_mul", Json(false)) == Json(true);
  const auto within = [&](const char* least, const char* most, std::int64_t usual, std::int64_t multiple,
                          std::int64_t limit) {
    const std::int64_t low = std::min(bound_of(row, least, 1), limit);
    const std::int64_t high = bound_of(row, most, std::max(low, usual));
    const std::int64_t side = std::max(low, std::min(high, usual));
    return std::max((side + multiple - 1) / multiple, std::int64_t{1}) * multiple;
  };
  Json shape = {{"family", row.value("family", Json())},
                {"n", within("min_n", "max_n", kUsualN, silu_mul ? 16 : 8, kMostN)},
                {"k", within("min_k", "max_k", kUsualK, 32, kMostK)},
                {"nt", row.value("nt", Json(kNtWithTokens.back()))},
                {"silu_mul", row.value("silu_mul", Json(false))}};
  const auto c = case_from_json(shape);
  if (!c) return fail(c.status().message());
  const Json pdl = row.value("pdl", Json(true));
  if (!pdl.is_boolean()) return fail("\"pdl\" is neither true nor false");
  return DefaultCase{*c, {tile, pdl.get<bool>()}, within("min_k", "max_k", kShortK, 32, kMostK)};
}

Json predicted_row(const Json& row, const Configuration& configuration, int from_sm_count, int to_sm_count) {
  constexpr double kMostUnits = 0x1p58;  // of 16: far above any N, and within 64 bits
  Json made = row;
  for (const char* name : {"min_n", "max_n"}) {
    const std::int64_t bound = bound_of(row, name, 0);
    if (bound == 0 || (bound == 1 && name == std::string_view("min_n"))) continue;  // no bound
    const double exact = static_cast<double>(bound) * to_sm_count / from_sm_count;
    made[name] = std::max(std::llround(std::min(exact / 16, kMostUnits)), 1ll) * 16;
  }
  made["tile"] = tile_to_json(configuration.tile);
  return made;
}

std::vector<std::size_t> spread_sample(std::size_t total, std::size_t count) {
  const std::size_t taken = std::min(total, count);
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < taken; ++i) places.push_back(i * total / taken);
  return places;
}

Result<PredictionReport> predict_table(const TableFile& source, const Chip& from, const Chip& to, std::size_t sample,
                                       Compiler* compiler, WorkPool& pool) {
  Chip start = from;
  for (const Known& known : source.known()) {
    if (start.sm_count <= 0) start.sm_count = known.sm_count;
  }
  if (start.sm_count <= 0) {
    return Status(StatusCode::invalid_argument, "the table does not say how many SMs its GPU has: say --from-sm-count");
  }
  PredictionReport report;
  GEMVJIT_TRY(predict_entries(source, from, to, sample, compiler, pool, report));
  GEMVJIT_TRY(predict_defaults(source, start, to, compiler, pool, report));
  return report;
}

}  // namespace gemvjit::tools
