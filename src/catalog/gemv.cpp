// Shape rules, keys and geometry of every family.
#include <fmt/format.h>

#include <iterator>
#include <limits>

#include "kernels/shared/gemv_geometry.h"
#include "kernels/shared/nvfp4_layout.h"
#include "src/catalog/catalog.h"
#include "src/catalog/kernel_flags.h"

namespace gemvjit {
namespace {

constexpr TileField kTileFields[] = {
    {"variant", &TileConfig::variant},     {"warps_k", &TileConfig::warps_k},     {"warps_n", &TileConfig::warps_n},
    {"cluster_k", &TileConfig::cluster_k}, {"row_tiles", &TileConfig::row_tiles}, {"stages", &TileConfig::stages},
    {"x_path", &TileConfig::x_path},       {"release", &TileConfig::release},     {"rounds", &TileConfig::rounds},
    {"min_ctas", &TileConfig::min_ctas},
};

const FlagField& field_of(const TileField& tile_field) {
  for (const FlagField& field : flag_fields()) {
    if (std::string_view(field.name) == tile_field.name) return field;
  }
  return flag_field::family;  // not reached: tests/catalog holds the two tables against each other
}

// A bound that keeps every byte offset of weight, scales and output far inside a signed 64-bit integer.
constexpr std::int64_t kMaxN = std::int64_t{1} << 31;
constexpr std::int64_t kMaxK = std::int64_t{1} << 27;

GemvGeometry geometry(const TileConfig& tile, int nt) {
  return {static_cast<int>(tile.warps_k),
          static_cast<int>(tile.warps_n),
          static_cast<int>(tile.cluster_k),
          static_cast<int>(tile.row_tiles),
          nt,
          static_cast<int>(tile.stages),
          static_cast<int>(tile.rounds),
          static_cast<int>(tile.x_path),
          static_cast<int>(tile.variant)};
}

int step_k(Family family) { return family == Family::bf16_gemv ? kBf16StepK : kNvfp4StepK; }

int ring_bytes(const KernelSpec& spec, const GemvGeometry& g) {
  const bool nvfp4 = spec.family == Family::nvfp4_gemv;
  const int row_step_bytes = nvfp4 ? kNvfp4StepK / 2 : kBf16StepK * 2;
  return gemv_ring_bytes(step_k(spec.family), row_step_bytes, nvfp4, g);
}

int x_token_bytes(const KernelSpec& spec, const GemvGeometry& g) {
  return gemv_x_token_bytes(spec.key.k, step_k(spec.family), g);
}

// With all tokens.
int smem_bytes(const KernelSpec& spec, const GemvGeometry& g) {
  return ring_bytes(spec, g) + gemv_partial_bytes(g) + x_token_bytes(spec, g) * g.nt * kTokensPerTile +
         gemv_dealt_bytes(spec.key.k, step_k(spec.family), g);
}

Status refuse(const KernelKey& key, std::string reason) {
  return {StatusCode::unsupported, fmt::format("{}: {} ({})", key.text(), reason, flags_text(key.flags))};
}

bool is_one_of(unsigned value, std::initializer_list<unsigned> accepted) {
  for (const unsigned one : accepted) {
    if (value == one) return true;
  }
  return false;
}

// The tile of a GEMV family on an arch: ranges, threads, registers' worth of accumulators, shared memory, clusters.
Status check_gemv_tile(const KernelSpec& spec, const ArchFacts& facts) {
  const TileConfig& tile = spec.tile;
  const GemvGeometry g = geometry(tile, spec.key.nt);
  if (tile.variant > 2) return refuse(spec.key, "variant must be 0, 1 or 2");
  if (tile.x_path > kXDealt) return refuse(spec.key, "x_path must be 0..6");
  if (tile.x_path == kXRing && tile.variant != kAsyncVariant)
    return refuse(spec.key, "x_path 5 goes through the ring of variant 1");
  if (tile.warps_k < 1 || tile.warps_k > 16) return refuse(spec.key, "warps_k must be 1..16");
  if (tile.warps_n < 1 || tile.warps_n > 16) return refuse(spec.key, "warps_n must be 1..16");
  if (tile.warps_k * tile.warps_n > 16) return refuse(spec.key, "warps_k * warps_n must be at most 16");
  if (!is_one_of(tile.row_tiles, {1, 2, 4})) return refuse(spec.key, "row_tiles must be 1, 2 or 4");
  if (tile.row_tiles * static_cast<unsigned>(spec.key.nt) > 16)
    return refuse(spec.key, "row_tiles * nt must be at most 16");
  const unsigned most_stages = tile.variant == kDirectVariant ? 8 : 15;
  if (tile.stages < 1 || tile.stages > most_stages)
    return refuse(spec.key, fmt::format("stages must be 1..{} for variant {}", most_stages, tile.variant));
  if (tile.variant == kDirectVariant && tile.stages * tile.row_tiles > 8)
    return refuse(spec.key, "stages * row_tiles must be at most 8");
  if (tile.variant != kDirectVariant && spec.family == Family::nvfp4_gemv && spec.key.k % 32 != 0)
    return refuse(spec.key, "variants 1 and 2 copy 16 bytes of codes at a time and needs K in multiples of 32");
  if (tile.x_path == kXDealt && (spec.family != Family::nvfp4_gemv || spec.key.nt != 1))
    return refuse(spec.key, "x_path 6 is for nvfp4_gemv with nt 1");
  if (tile.variant == kWgmmaVariant) {
    if (!facts.has_wgmma) return refuse(spec.key, fmt::format("{} has no wgmma", spec.key.arch.text()));
    if (!gemv_x_is_staged(g)) return refuse(spec.key, "variant 2 needs staged x, x_path 1..4");
    if (tile.warps_n % kWarpgroupWarps != 0) return refuse(spec.key, "variant 2 needs warps_n in multiples of 4");
  }
  if (tile.min_ctas < 1 || tile.min_ctas > 8) return refuse(spec.key, "min_ctas must be 1..8");
  if (tile.min_ctas * tile.warps_k * tile.warps_n > 48)  // the fewest warps that an SM of any target holds
    return refuse(spec.key, "min_ctas * warps_k * warps_n must be at most 48");
  if (tile.release > 2) return refuse(spec.key, "release must be 0, 1 or 2");
  if (tile.rounds < 1 || tile.rounds > 63) return refuse(spec.key, "rounds must be 1..63");
  if (!is_one_of(tile.cluster_k, {1, 2, 4, 8})) return refuse(spec.key, "cluster_k must be 1, 2, 4 or 8");
  if (tile.cluster_k > 1 && !facts.has_clusters) {
    return refuse(spec.key, fmt::format("{} has no thread block clusters", spec.key.arch.text()));
  }
  if (gemv_x_is_staged(g) && gemv_x_chunk_turns(spec.key.k, step_k(spec.family), g) == 0) {
    return refuse(spec.key, fmt::format("x_path {} holds {} KiB of x, a turn has more", g.x_path, 8 << g.x_path));
  }
  if (g.x_path == kXDealt && gemv_dealt_chunk_turns(spec.key.k, step_k(spec.family), g) == 0) {
    return refuse(spec.key, fmt::format("x_path 6 holds {} k of x, a turn has more", kDealtMaxK));
  }
  if (smem_bytes(spec, g) > facts.max_smem_bytes_per_cta) {
    return refuse(spec.key, fmt::format("needs {} bytes of shared memory, {} has {} for a CTA", smem_bytes(spec, g),
                                        spec.key.arch.text(), facts.max_smem_bytes_per_cta));
  }
  if (gemv_ctas_over_n(spec.key.n, g) * g.cluster_k > std::numeric_limits<std::int32_t>::max()) {
    return refuse(spec.key, "more CTAs than a grid may have");
  }
  return Status::ok();
}

// Everything about a spec but the consistency of its key's text: used for keys made and keys read.
Status check_spec(const KernelSpec& spec) {
  GEMVJIT_TRY_ASSIGN(const ArchFacts facts, arch_facts(spec.key.arch));
  const FamilyRow& row = family_row(spec.family);
  bool nt_known = false;
  for (const int nt : nt_values(spec.family)) nt_known = nt_known || nt == spec.key.nt;
  if (!nt_known) {
    return Status(StatusCode::invalid_argument,
                  fmt::format("nt {} is not one of {}'s: {}", spec.key.nt, row.name, row.has_tokens ? "1, 2, 4" : "0"));
  }
  if (spec.pdl && !facts.has_pdl) return refuse(spec.key, "the target has no programmatic dependent launch");
  if (spec.pdl && !row.can_pdl) return refuse(spec.key, "the family has no programmatic dependent launch");
  if (!row.has_tokens) {
    if (!(spec.tile == no_tile())) return refuse(spec.key, fmt::format("{} has no tile configuration", row.name));
    return Status::ok();
  }
  return check_gemv_tile(spec, facts);
}

}  // namespace

std::span<const TileField> tile_fields() { return kTileFields; }

TileConfig no_tile() {
  TileConfig tile;
  for (const TileField& field : kTileFields) tile.*field.member = 0;
  return tile;
}

Status check_problem(const Problem& problem) {
  const FamilyRow& row = family_row(problem.family);
  const auto fail = [&](std::string_view rule) {
    return Status(StatusCode::invalid_shape, fmt::format("{} N={} K={}{}: {}", row.name, problem.n, problem.k,
                                                         problem.silu_mul ? " silu_mul" : "", rule));
  };
  if (problem.n <= 0 || problem.k <= 0) return fail("N and K must be positive");
  if (problem.n > kMaxN) return fail(fmt::format("N must be at most {}", kMaxN));
  if (problem.k > kMaxK) return fail(fmt::format("K must be at most {}", kMaxK));
  if (problem.k % row.k_multiple != 0) return fail(fmt::format("K must be a multiple of {}", row.k_multiple));
  if (problem.silu_mul && !row.can_silu_mul) {
    return {StatusCode::unsupported, fmt::format("{} has no silu_mul form", row.name)};
  }
  if (problem.scale_segments && !row.can_scale_segments) {
    return {StatusCode::unsupported, fmt::format("{} has no scale segments", row.name)};
  }
  const int n_multiple = problem.silu_mul ? 2 * row.n_multiple : row.n_multiple;
  if (problem.n % n_multiple != 0) {
    return fail(fmt::format("N must be a multiple of {}{}", n_multiple,
                            problem.silu_mul ? " (gate and up halves of a multiple of 8 each)" : ""));
  }
  return Status::ok();
}

Result<KernelKey> make_key(const Problem& problem, int nt, const TileConfig& tile, bool pdl_wins, const Arch& arch) {
  GEMVJIT_TRY(check_problem(problem));
  GEMVJIT_TRY_ASSIGN(const ArchFacts facts, arch_facts(arch));
  KernelSpec spec;
  spec.family = problem.family;
  spec.silu_mul = problem.silu_mul;
  spec.pdl = problem.pdl && pdl_wins && facts.has_pdl && family_row(problem.family).can_pdl;
  spec.scale_segments = problem.scale_segments;
  spec.tile = tile;
  std::uint64_t flags = set_flag(0, flag_field::family, static_cast<unsigned>(problem.family));
  flags = set_flag(flags, flag_field::silu_mul, spec.silu_mul ? 1 : 0);
  flags = set_flag(flags, flag_field::pdl, spec.pdl ? 1 : 0);
  flags = set_flag(flags, flag_field::segments, spec.scale_segments ? 1 : 0);
  for (const TileField& tile_field : kTileFields) {
    const FlagField& field = field_of(tile_field);
    const unsigned value = tile.*tile_field.member;
    if (value >> field.width != 0) {
      return Status(StatusCode::unsupported,
                    fmt::format("{} {} does not fit its field: {}", field.name, value, field.text));
    }
    flags = set_flag(flags, field, value);
  }
  spec.key = {problem.n, problem.k, nt, flags, arch};
  GEMVJIT_TRY(check_spec(spec));
  return spec.key;
}

Result<KernelSpec> describe_key(const KernelKey& key) {
  if ((key.flags & ~named_flag_bits()) != 0) {
    return Status(StatusCode::invalid_argument,
                  fmt::format("{}: flags has bits that this version does not know", key.text()));
  }
  const unsigned family = get_flag(key.flags, flag_field::family);
  if (family < 1 || family > std::size(families())) {
    return Status(StatusCode::invalid_argument, fmt::format("{}: kernel family {} is not known", key.text(), family));
  }
  KernelSpec spec;
  spec.key = key;
  spec.family = static_cast<Family>(family);
  spec.silu_mul = get_flag(key.flags, flag_field::silu_mul) != 0;
  spec.pdl = get_flag(key.flags, flag_field::pdl) != 0;
  spec.scale_segments = get_flag(key.flags, flag_field::segments) != 0;
  for (const TileField& tile_field : kTileFields) {
    spec.tile.*tile_field.member = get_flag(key.flags, field_of(tile_field));
  }
  GEMVJIT_TRY(check_problem({spec.family, key.n, key.k, spec.silu_mul, spec.pdl, spec.scale_segments}));
  GEMVJIT_TRY(check_spec(spec));
  return spec;
}

std::optional<KernelKey> without_cluster(const KernelKey& key) {
  if (get_flag(key.flags, flag_field::cluster_k) <= 1) return std::nullopt;
  KernelKey alone = key;
  alone.flags = set_flag(key.flags, flag_field::cluster_k, 1);
  if (!describe_key(alone)) return std::nullopt;
  return alone;
}

std::string flags_text(std::uint64_t flags) {
  const unsigned family = get_flag(flags, flag_field::family);
  const FamilyRow* row = family >= 1 && family <= std::size(families()) ? &families()[family - 1] : nullptr;
  std::string text(row != nullptr ? row->name : "unknown_family");
  for (const FlagField& field : flag_fields()) {
    if (field.shift == flag_field::family.shift) continue;
    const unsigned value = get_flag(flags, field);
    if (field.width == 1) {
      if (value != 0) text += fmt::format(" {}", field.name);
    } else if (row == nullptr || row->has_tokens) {
      text += fmt::format(" {}={}", field.name, value);
    }
  }
  return text;
}

LaunchConfig launch_config(const KernelSpec& spec) {
  LaunchConfig config;
  config.pdl = spec.pdl;
  if (!family_row(spec.family).has_tokens) {
    const std::int64_t blocks = spec.family == Family::swizzle_blockscale
                                    ? swizzled_scale_bytes(spec.key.n, spec.key.k) / kScaleTileColumns
                                    : spec.key.n * (spec.key.k / kScaleBlockK);
    const std::int64_t ctas = (blocks + kElementwiseThreads - 1) / kElementwiseThreads;
    config.grid_x = static_cast<unsigned>(ctas < kElementwiseMaxCtas ? ctas : kElementwiseMaxCtas);
    config.block_x = kElementwiseThreads;
    return config;
  }
  const GemvGeometry g = geometry(spec.tile, spec.key.nt);
  config.grid_x = static_cast<unsigned>(gemv_ctas_over_n(spec.key.n, g) * g.cluster_k);
  config.block_x = static_cast<unsigned>(gemv_threads(g));
  config.cluster_x = spec.tile.cluster_k;
  config.smem_bytes = static_cast<unsigned>(smem_bytes(spec, g));
  if (g.variant != kWgmmaVariant) config.smem_token_bytes = static_cast<unsigned>(x_token_bytes(spec, g));
  config.max_tokens = static_cast<unsigned>(spec.key.nt * kTokensPerTile);
  return config;
}

std::uint64_t weight_bytes(const Problem& problem) {
  const auto elements = static_cast<std::uint64_t>(problem.n) * static_cast<std::uint64_t>(problem.k);
  return problem.family == Family::bf16_gemv ? elements * 2 : elements / 2;
}

std::uint64_t scale_bytes(const Problem& problem) {
  if (problem.family == Family::bf16_gemv) return 0;
  return static_cast<std::uint64_t>(swizzled_scale_bytes(problem.n, problem.k));
}

}  // namespace gemvjit
