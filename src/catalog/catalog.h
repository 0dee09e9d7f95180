// What exists: the kernel families, their shape rules, tile configurations, and the key of each kernel.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cache/kernel_key.h"
#include "kernels/shared/gemv_geometry.h"
#include "src/base/status.h"
#include "src/catalog/arch.h"
#include "src/catalog/launch_config.h"

namespace gemvjit {

enum class Family : unsigned { nvfp4_gemv = 1, bf16_gemv = 2, dequantize_rows = 3, swizzle_blockscale = 4 };

// How to do it; values as in kernel_flags.h.
struct TileConfig {
  unsigned variant = 0, warps_k = 8, warps_n = 1, cluster_k = 1, row_tiles = 1, stages = 4, x_path = 0, release = 0,
           rounds = 1, min_ctas = 1;
  bool operator==(const TileConfig&) const = default;
};

// The fields of TileConfig beside the flag fields that hold them: for parsing tables and printing.
struct TileField {
  const char* name;
  unsigned TileConfig::*member;
};
std::span<const TileField> tile_fields();
// The one configuration of the families without tokens: every field 0.
TileConfig no_tile();

// What a caller asks for; M plays no part.
struct Problem {
  Family family = Family::nvfp4_gemv;
  std::int64_t n = 0;  // weight rows = output features (both halves with silu_mul)
  std::int64_t k = 0;  // reduction
  bool silu_mul = false;
  bool pdl = true;              // allowed, not demanded
  bool scale_segments = false;  // ranges of rows with their own global scales
  bool operator==(const Problem&) const = default;
};

// A row per kernel family.
struct FamilyRow {
  Family family;
  std::string_view name;                      // "nvfp4_gemv": in flags, file names, JSON
  std::string_view short_name;                // "nvfp4": in --shape
  std::string_view entry_name;                // the extern "C" kernel
  std::span<const std::string_view> sources;  // embedded files NVRTC is given; the first is compiled
  int k_multiple;                             // K must be a multiple of this
  int n_multiple;                             // N must be a multiple of this
  bool has_tokens;                            // nt 1, 2, 4; else nt 0
  bool can_silu_mul;
  bool can_scale_segments;
  bool can_pdl;
};
std::span<const FamilyRow> families();
const FamilyRow& family_row(Family family);
// By name or short name; nullptr if none.
const FamilyRow* find_family(std::string_view name);

// The nt of families with tokens, ascending: nt covers M <= nt * kTokensPerTile. Here, since the launch path asks.
inline constexpr std::array kNtWithTokens = {1, 2, 4};
static_assert(kNtWithTokens.back() * kTokensPerTile == kMaxM);
// The place in kNtWithTokens of the smallest nt that covers M; the last one for an M that none covers.
constexpr std::size_t token_class(std::int64_t m) {
  std::size_t i = 0;
  while (i + 1 < kNtWithTokens.size() && m > std::int64_t{kNtWithTokens[i]} * kTokensPerTile) ++i;
  return i;
}
// The smallest nt that covers M; 0 for M < 1 or M > 32.
constexpr int nt_for_m(std::int64_t m) { return m < 1 || m > kMaxM ? 0 : kNtWithTokens[token_class(m)]; }
// The nt values of a family: kNtWithTokens or {0}.
std::span<const int> nt_values(Family family);

// invalid_shape with the rule that is broken; unsupported for silu_mul or scale_segments on a family without.
Status check_problem(const Problem& problem);

// The checked key. pdl is on if `problem.pdl`, the arch has it, and `pdl_wins`. unsupported for a cluster on an arch
// without, a tile value out of range, more shared memory than a CTA may have, or an impossible combination.
Result<KernelKey> make_key(const Problem& problem, int nt, const TileConfig& tile, bool pdl_wins, const Arch& arch);

// A key with its flags named: the inverse of make_key. invalid_argument for a key that make_key would not make.
struct KernelSpec {
  KernelKey key;
  Family family = Family::nvfp4_gemv;
  bool silu_mul = false;
  bool pdl = false;
  bool scale_segments = false;
  TileConfig tile;
};
Result<KernelSpec> describe_key(const KernelKey& key);
// The same kernel in CTAs that are not in clusters; nothing for a key without a cluster, or if that is no kernel.
std::optional<KernelKey> without_cluster(const KernelKey& key);
// "nvfp4_gemv silu_mul pdl warps_k=8 warps_n=1 ...", for people.
std::string flags_text(std::uint64_t flags);

// Grid, block, cluster and shared memory. `pdl` of the result is the key's bit; the launcher also asks the entry.
LaunchConfig launch_config(const KernelSpec& spec);

// Bytes of the weight, of its swizzled scales (0 for BF16).
std::uint64_t weight_bytes(const Problem& problem);
std::uint64_t scale_bytes(const Problem& problem);

}  // namespace gemvjit
