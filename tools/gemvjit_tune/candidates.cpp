#include "tools/gemvjit_tune/candidates.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "kernels/shared/gemv_geometry.h"

namespace gemvjit::tools {
namespace {

constexpr std::array kWarpsK = {1u, 2u, 4u, 8u, 16u};
constexpr std::array kWarpsN = {1u, 2u, 4u, 8u, 12u, 16u};  // above 8 for wgmma only
constexpr std::array kRowTiles = {1u, 2u, 4u};
constexpr std::array kClusterK = {1u, 2u, 4u, 8u};
constexpr std::array kStages = {1u, 2u, 3u, 4u, 6u, 8u, 12u, 15u};
constexpr std::array kVariants = {0u, 1u, 2u};
constexpr std::array kXPaths = {0u, 1u, 2u, 3u, 4u, 5u, 6u};
constexpr std::array kReleases = {0u, 1u, 2u};
constexpr std::array kMinCtas = {1u, 2u, 3u, 4u};
constexpr unsigned kMaxRounds = 63;
constexpr double kSqueeze = 1.6;  // of the registers that min_ctas leaves, what may still compile without spilling

// Of a warp: k of one step, bytes of it in flight for 16 rows (codes and scales, or BF16).
struct StepFacts {
  double k, bytes;
};
StepFacts step_facts(Family family) { return family == Family::bf16_gemv ? StepFacts{64, 2048} : StepFacts{128, 1152}; }

bool is_staged(const TileConfig& tile) { return tile.x_path >= 1 && tile.x_path <= 4; }
bool has_ring(const TileConfig& tile) { return tile.variant != kDirectVariant; }

// Registers of a thread, a least-squares fit to what NVRTC 13.0 used for 375 configurations on sm_90a without spilling
// (off by 6 to 13, root mean square); of wgmma, which has no fragments of x, from a few.
// Dealt x is held in registers while it is staged.
double registers_of(const TuneCase& c, const TileConfig& tile, unsigned rounds) {
  const bool async = has_ring(tile), staged = is_staged(tile);
  const bool through_ring = tile.x_path == kXRing;
  if (tile.variant == kWgmmaVariant) return 44 + 26.0 * tile.row_tiles + 4.0 * tile.row_tiles * c.nt;
  if (tile.x_path == kXDealt) {
    const double k = std::min<double>(static_cast<double>(c.k) / tile.cluster_k, kDealtMaxK);
    const double staging = 60 + k / 32 / (tile.warps_k * tile.warps_n);
    TileConfig direct = tile;
    direct.x_path = kXDirect;
    return std::max(staging, registers_of(c, direct, rounds));
  }
  const double nt = c.nt, row_tiles = tile.row_tiles, held = async ? 0 : row_tiles * tile.stages;
  if (c.family == Family::bf16_gemv) {
    return 31 + 3.3 * row_tiles * nt + 11 * row_tiles +
           (staged         ? 8
            : through_ring ? 5
                           : 18) *
               nt +
           19 * held + (rounds > 1 ? 12 : 0);
  }
  return 25 + 2 * row_tiles * nt + 16 * row_tiles +
         (staged         ? 14
          : through_ring ? 10
                         : 32) *
             nt +
         12 * held + (rounds > 1 ? 18 : 0);
}
// What a thread may have: the register file over the CTA's warps, which are allocated by fours.
double registers_allowed(unsigned threads) { return std::min(255u, 65536 / ((threads + 127) / 128 * 128) / 8 * 8); }

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// What both the rules and the model ask about a tile.
struct Shape {
  std::int64_t ctas_n = 0, ctas = 0, ctas_a_sm = 0, steps = 0, steps_a_warp = 0;
  unsigned threads = 0, warps = 0;
  double resident = 1, in_flight = 0, weight_bytes_a_cta = 0;
  double x_bytes = 0, x_staged = 0;  // all that a CTA reads of x, with all tokens; the shared memory that x gets
  bool x_is_whole = true;            // in that memory
};

// What an SM has. Of the targets served those with 99 KiB of shared memory for a CTA hold 1536 threads.
struct SmLimits {
  double smem = 227 * 1024, threads = 2048;
};
SmLimits sm_limits(const Arch& arch) {
  const auto facts = arch_facts(arch);
  if (!facts) return {};
  return {1.0 * facts->max_smem_bytes_per_cta, facts->max_smem_bytes_per_cta < 128 * 1024 ? 1536.0 : 2048.0};
}

// CTAs that an SM holds at a time, by registers, threads and shared memory (estimates).
double resident_ctas(const TuneCase& c, const SmLimits& sm, const TileConfig& tile, unsigned rounds, const Shape& s) {
  const StepFacts step = step_facts(c.family);
  const double registers = std::min(registers_of(c, tile, rounds), registers_allowed(s.threads * tile.min_ctas));
  const double partials = (rounds > 1 ? 2.0 : 1.0) * s.warps * (tile.row_tiles * 16 + 4) * 8.0 * c.nt * 4;
  const double x_slot = tile.x_path == kXRing ? 16.0 * c.nt * step.k : 0;
  const double ring = has_ring(tile) ? tile.stages * s.warps * (tile.row_tiles * step.bytes * 1.1 + x_slot) : 0;
  return std::min(
      {65536.0 / (s.threads * registers), sm.threads / s.threads, sm.smem / (1024 + partials + ring + s.x_staged)});
}

Shape shape_of(const TuneCase& c, const Machine& machine, const TileConfig& tile, unsigned rounds) {
  const StepFacts step = step_facts(c.family);
  Shape s;
  const std::int64_t rows = 16ll * tile.warps_n * tile.row_tiles * rounds;
  s.ctas_n = ceil_div(c.n, rows);
  s.ctas = s.ctas_n * tile.cluster_k;
  s.ctas_a_sm = ceil_div(s.ctas, machine.sm_count);
  s.warps = tile.warps_k * tile.warps_n;
  s.threads = 32 * s.warps;
  s.steps = ceil_div(c.k, static_cast<std::int64_t>(step.k));
  s.steps_a_warp = ceil_div(s.steps, static_cast<std::int64_t>(tile.warps_k) * tile.cluster_k);
  s.x_bytes = 16.0 * c.nt * static_cast<double>(c.k) / tile.cluster_k;
  s.x_staged = is_staged(tile)          ? std::min(s.x_bytes, 8192.0 * (1u << tile.x_path))
               : tile.x_path == kXDealt ? std::min(s.x_bytes / 4, 4.0 * kDealtMaxK)
                                        : 0;
  s.x_is_whole = s.x_staged >= (tile.x_path == kXDealt ? s.x_bytes / 4 : s.x_bytes);
  const double room = std::floor(resident_ctas(c, sm_limits(machine.arch), tile, rounds, s));
  s.resident = std::max(1.0, std::min(room, static_cast<double>(s.ctas_a_sm)));
  const double all = static_cast<double>(s.steps_a_warp) * (has_ring(tile) ? rounds : 1);  // the ring runs ahead
  const double depth = std::min(static_cast<double>(tile.stages), all);
  s.in_flight = s.resident * s.warps * depth * tile.row_tiles * step.bytes;
  s.weight_bytes_a_cta = static_cast<double>(rows) / 16 * step.bytes * static_cast<double>(s.steps) / tile.cluster_k;
  return s;
}

double model_of(const TuneCase& c, const TileConfig& tile, unsigned rounds, const Shape& s) {
  constexpr double kFixed = 1.2, kSmBytesAUs = 35000, kEnough = 40 * 1024, kLatency = 0.8, kL2BytesAUs = 100000,
                   kStagedBytesAUs = 30000;
  constexpr double kLanesAUs = 128 * 1750, kEnoughWarps = 16;
  const bool bf16 = c.family == Family::bf16_gemv, async = has_ring(tile), wgmma = tile.variant == kWgmmaVariant;
  const double on_sm = static_cast<double>(s.ctas_a_sm), turns = rounds;
  const double bytes = on_sm * s.weight_bytes_a_cta;
  const double waves = std::ceil(on_sm / s.resident);
  // Reading x: by each group of warps over N in each round; staged: once a CTA if all of it fits, else once a round.
  const double tokens = c.nt == 1 ? 0.4 : 1;  // of nt 1 the mean of 1 and 8 tokens
  const bool reads_by_warp = s.x_staged == 0;
  const double x_readers = reads_by_warp ? tile.warps_n * turns : s.x_is_whole ? 1.2 : turns;
  const double x = on_sm * x_readers * s.x_bytes * tokens / kL2BytesAUs;
  const double stream = bytes / (kSmBytesAUs * std::min(1.0, s.in_flight / kEnough)) + x;
  // Lane instructions of a weight: decoding it, and the x fragments and products that row tiles share.
  const double shared = wgmma ? 0.4 * c.nt : 1.0 * c.nt / tile.row_tiles * (tile.x_path == 0 ? 1.0 : 0.8);
  const double instructions = bf16 ? 0.4 + 0.4 / tile.row_tiles + 0.5 * shared
                              : tile.x_path == kXDealt
                                  ? 2.5 + 0.4 / tile.row_tiles + 0.4 * shared  // between the ways of 2 and of 8 tokens
                                  : 2.6 + 0.8 / tile.row_tiles + 0.8 * shared;
  const double weights = bytes / (bf16 ? 2 : 0.5625);
  const double decode = weights * instructions / (kLanesAUs * std::min(1.0, s.resident * s.warps / kEnoughWarps));
  const double steps = static_cast<double>(s.steps_a_warp);
  const double turns_of_ring = async ? std::ceil(turns * steps / tile.stages) : turns * std::ceil(steps / tile.stages);
  const double latency = waves * turns_of_ring * kLatency;
  // Staged x comes in before anything is computed, each time it is staged.
  const double stagings = reads_by_warp ? 0 : waves * (s.x_is_whole ? 1 : turns);
  const double staging = stagings * (0.3 + s.x_bytes * tokens / kStagedBytesAUs);
  const double cluster = tile.cluster_k > 1 ? 0.4 + 0.1 * tile.cluster_k : 0;
  const double sums = turns * waves * (0.2 + 0.02 * tile.warps_k * tile.row_tiles * c.nt / s.resident + cluster);
  return kFixed + std::max({stream, decode, latency}) + sums * (async ? 0.5 : 1) + (async ? 0.3 : 0) + staging +
         (tile.release == 1 ? 0.3 : 0);
}

bool survives(const TuneCase& c, const Machine& machine, const TileConfig& tile, unsigned rounds, const Shape& s) {
  if (s.warps < 2 || s.warps > 16) return false;  // 1
  if (s.steps < static_cast<std::int64_t>(tile.warps_k) * tile.cluster_k && tile.warps_k * tile.cluster_k > 2) {
    return false;  // 2
  }
  const double ahead = static_cast<double>(s.steps_a_warp) * (has_ring(tile) ? rounds : 1);
  for (const unsigned fewer : kStages) {
    if (fewer < tile.stages && fewer >= ahead) return false;  // 2
  }
  const bool could_be_smaller = tile.row_tiles > 1 || tile.warps_n > 1 || rounds > 1;
  if (could_be_smaller && s.ctas * 4 < machine.sm_count * 3ll) return false;  // 3
  const bool wgmma = tile.variant == kWgmmaVariant;
  if (!wgmma && tile.cluster_k > 1 && (rounds > 1 || s.ctas_n >= machine.sm_count)) return false;  // 4
  if (wgmma && (!is_staged(tile) || tile.warps_n % kWarpgroupWarps != 0)) return false;
  if (!wgmma && tile.warps_n > 8) return false;
  if (wgmma && !s.x_is_whole && tile.x_path < 4) return false;  // 8
  if (tile.x_path == kXDealt && (c.family != Family::nvfp4_gemv || c.nt != 1)) return false;
  if (tile.x_path == kXRing && tile.variant != kAsyncVariant) return false;
  if (tile.x_path > 1 && is_staged(tile) && s.x_bytes <= 8192.0 * (1u << (tile.x_path - 1))) return false;  // 6
  const double room = tile.min_ctas > 1 ? kSqueeze : 1.1;
  if (registers_of(c, tile, rounds) > room * registers_allowed(s.threads * tile.min_ctas)) return false;  // 7
  const double step_bytes = step_facts(c.family).bytes;
  const double share = static_cast<double>(ceil_div(c.n, 16) * s.steps) * step_bytes / machine.sm_count;  // of an SM
  return s.in_flight >= std::min(8.0 * 1024, share / 2) && s.in_flight <= 224.0 * 1024;                   // 5
}

// 1, and what makes the grid come close to 1, 2, 3 and 4 CTAs an SM.
std::set<unsigned> rounds_values(const TuneCase& c, const Machine& machine, const TileConfig& tile) {
  std::set<unsigned> values = {1};
  const std::int64_t groups = ceil_div(c.n, 16ll * tile.warps_n * tile.row_tiles) * tile.cluster_k;
  for (std::int64_t ctas = 1; ctas <= 4; ++ctas) {
    const std::int64_t rounds = ceil_div(groups, ctas * machine.sm_count);
    if (rounds <= kMaxRounds) values.insert(static_cast<unsigned>(rounds));
  }
  return values;
}

// 1, and what makes room for 24 and 32 warps on an SM where the compiler would use more registers by itself.
std::set<unsigned> min_ctas_values(const TuneCase& c, const TileConfig& tile, unsigned rounds) {
  std::set<unsigned> values = {1};
  const unsigned warps = tile.warps_k * tile.warps_n;
  for (const unsigned resident : {24u, 32u}) {
    const unsigned ctas = resident / warps;
    if (ctas < 2 || ctas > 8) continue;
    if (registers_of(c, tile, rounds) > registers_allowed(32 * warps * ctas)) values.insert(ctas);
  }
  return values;
}

template <typename Visit>
void for_each_tile(Visit visit) {
  TileConfig tile = default_tile();
  const auto with_warps = [&] {
    for (const unsigned row_tiles : kRowTiles) {
      for (const unsigned cluster_k : kClusterK) {
        for (const unsigned stages : kStages) {
          for (const unsigned x_path : kXPaths) {
            tile.row_tiles = row_tiles, tile.cluster_k = cluster_k, tile.stages = stages, tile.x_path = x_path;
            visit(tile);
          }
        }
      }
    }
  };
  for (const unsigned variant : kVariants) {
    for (const unsigned warps_k : kWarpsK) {
      for (const unsigned warps_n : kWarpsN) {
        tile.variant = variant, tile.warps_k = warps_k, tile.warps_n = warps_n;
        if (warps_k * warps_n >= 2 && warps_k * warps_n <= 16) with_warps();
      }
    }
  }
}

// The kinds that pick_diverse takes by turns.
auto kind_of(const TileConfig& tile) {
  return std::make_tuple(tile.variant, tile.row_tiles, tile.warps_k, is_staged(tile) ? 1u : tile.x_path,
                         tile.cluster_k > 1, tile.min_ctas > 1);
}

template <std::size_t Count>
void step(const std::array<unsigned, Count>& values, unsigned value, const std::function<void(unsigned)>& use) {
  const auto at = std::lower_bound(values.begin(), values.end(), value);
  if (at != values.begin()) use(*(at - 1));
  const auto above = at != values.end() && *at == value ? at + 1 : at;
  if (above != values.end()) use(*above);
}

}  // namespace

int differing_fields(const TileConfig& a, const TileConfig& b) {
  int count = 0;
  for (const TileField& field : tile_fields()) count += a.*field.member != b.*field.member ? 1 : 0;
  return count;
}

double model_us(const TuneCase& c, const Machine& machine, const TileConfig& tile) {
  const unsigned rounds = tile.rounds;
  return model_of(c, tile, rounds, shape_of(c, machine, tile, rounds));
}

double in_flight_bytes(const TuneCase& c, const Machine& machine, const TileConfig& tile) {
  return shape_of(c, machine, tile, tile.rounds).in_flight;
}

std::vector<Candidate> enumerate_candidates(const TuneCase& c, const Machine& machine) {
  std::vector<Candidate> found;
  for_each_tile([&](TileConfig tile) {
    for (const unsigned rounds : rounds_values(c, machine, tile)) {
      for (const unsigned min_ctas : min_ctas_values(c, tile, rounds)) {
        tile.min_ctas = min_ctas;
        const Shape s = shape_of(c, machine, tile, rounds);
        if (!survives(c, machine, tile, rounds, s)) continue;
        tile.rounds = rounds;
        found.push_back({{tile, true}, model_of(c, tile, rounds, s)});
      }
    }
  });
  std::stable_sort(found.begin(), found.end(),
                   [](const Candidate& a, const Candidate& b) { return a.model_us < b.model_us; });
  return found;
}

bool is_valid(const TuneCase& c, const Machine& machine, const Configuration& configuration) {
  return make_key(c.problem(), c.nt, configuration.tile, configuration.pdl, machine.arch).is_ok();
}

std::vector<Configuration> pick_diverse(const TuneCase& c, const Machine& machine, const std::vector<Candidate>& ranked,
                                        std::size_t count) {
  using Kind = decltype(kind_of(TileConfig{}));
  std::map<Kind, std::vector<const Candidate*>> by_kind;
  std::vector<Kind> order;  // by each kind's best
  for (const Candidate& one : ranked) {
    auto& members = by_kind[kind_of(one.configuration.tile)];
    if (members.empty()) order.push_back(kind_of(one.configuration.tile));
    members.push_back(&one);
  }
  std::vector<Configuration> picked;
  const auto is_new = [&](const Configuration& one, int fields) {
    return std::none_of(picked.begin(), picked.end(),
                        [&](const Configuration& other) { return differing_fields(one.tile, other.tile) < fields; });
  };
  const auto take = [&](const Candidate& one, int fields) {
    if (!is_new(one.configuration, fields) || !is_valid(c, machine, one.configuration)) return false;
    picked.push_back(one.configuration);
    return true;
  };
  // By turns a kind's best and the best of all that is no near copy of what is there.
  std::size_t best = 0;
  for (const Kind& kind : order) {
    const auto& members = by_kind[kind];
    bool taken = false;
    for (std::size_t at = 0; at < members.size() && !taken && picked.size() < count; ++at)
      taken = take(*members[at], 1);
    for (taken = false; best < ranked.size() && !taken && picked.size() < count;) taken = take(ranked[best++], 3);
  }
  for (const int fields : {3, 2, 1}) {
    for (std::size_t at = 0; at < ranked.size() && picked.size() < count; ++at) take(ranked[at], fields);
  }
  return picked;
}

std::vector<Configuration> neighbours(const Configuration& configuration) {
  std::vector<Configuration> found;
  const TileConfig& tile = configuration.tile;
  const auto vary = [&](unsigned TileConfig::*member) {
    return [&, member](unsigned value) {
      Configuration one = configuration;
      one.tile.*member = value;
      if (!(one == configuration)) found.push_back(one);
    };
  };
  step(kStages, tile.stages, vary(&TileConfig::stages));
  step(kWarpsK, tile.warps_k, vary(&TileConfig::warps_k));
  step(kRowTiles, tile.row_tiles, vary(&TileConfig::row_tiles));
  step(kXPaths, tile.x_path, vary(&TileConfig::x_path));
  if (tile.variant == kAsyncVariant && tile.x_path == 0) vary (&TileConfig::x_path)(kXRing);
  if (tile.x_path == 0) vary (&TileConfig::x_path)(kXDealt);
  if (tile.x_path == kXDealt) vary (&TileConfig::x_path)(kXDirect);
  step(kWarpsN, tile.warps_n, vary(&TileConfig::warps_n));
  for (const unsigned release : kReleases) vary (&TileConfig::release)(release);
  for (const unsigned value :
       std::set<unsigned>{std::max(1u, tile.rounds / 2), std::max(1u, tile.rounds - 1),
                          std::min(kMaxRounds, tile.rounds + 1), std::min(kMaxRounds, tile.rounds * 2)}) {
    vary (&TileConfig::rounds)(value);
  }
  step(kClusterK, tile.cluster_k, vary(&TileConfig::cluster_k));
  step(kVariants, tile.variant, vary(&TileConfig::variant));
  step(kMinCtas, tile.min_ctas, vary(&TileConfig::min_ctas));
  // Two fields at once where one alone changes the work of a CTA.
  for (const auto& [warps_k, warps_n] :
       {std::pair{tile.warps_k * 2, tile.warps_n / 2}, std::pair{tile.warps_k / 2, tile.warps_n * 2}}) {
    if (warps_k < 1 || warps_n < 1 || warps_k > 16 || warps_n > 16) continue;
    Configuration one = configuration;
    one.tile.warps_k = warps_k, one.tile.warps_n = warps_n;
    found.push_back(one);
  }
  return found;
}

Configuration rescale_rounds(const Configuration& configuration, std::int64_t from_n, std::int64_t to_n) {
  Configuration scaled = configuration;
  if (scaled.tile.rounds <= 1) return scaled;
  const double exact = scaled.tile.rounds * static_cast<double>(to_n) / static_cast<double>(from_n);
  scaled.tile.rounds = static_cast<unsigned>(std::clamp(std::ceil(exact - 0.01), 1.0, 1.0 * kMaxRounds));
  return scaled;
}

}  // namespace gemvjit::tools
