// Tile geometry of the GEMV kernels: one owner for every number that host and kernel must agree on. Plain constexpr
// C++, included by the host and, as an embedded source, by the kernels (no headers, no standard library).
//
// Words. swap-AB: the MMA's 16-row side runs over N (weights), its 8-column side over M (tokens).
//   half tile   8 weight rows. An MMA tile is two of them: rows 0-7 and rows 8-15 of its A operand.
//   split       K is cut into steps; step s belongs to split s % (warps_k * cluster_k).
// With silu_mul the two halves of a tile are 8 gate rows and their 8 up rows, so N/2 need only be a multiple of 8.
#pragma once

namespace gemvjit {

inline constexpr int kTokensPerTile = 8;      // columns of one MMA
inline constexpr int kRowsPerHalf = 8;        // weight rows of half an MMA tile
inline constexpr int kRowsPerTile = 16;       // rows of one MMA
inline constexpr int kNvfp4StepK = 128;       // k of one step of a warp: 16 bytes of codes a thread and row
inline constexpr int kBf16StepK = 64;         // k of one step of a warp: 2 x 16 bytes a thread and row
inline constexpr int kScaleBlockK = 16;       // k that share one E4M3 scale
inline constexpr int kWarpSize = 32;
inline constexpr int kMaxM = 32;

struct GemvGeometry {
  int warps_k;    // warps of a CTA that split K
  int warps_n;    // groups of warps of a CTA over N
  int cluster_k;  // CTAs of a cluster that split K
  int row_tiles;  // MMA tiles of a warp over N
  int nt;         // token tiles
};

inline constexpr int gemv_threads(const GemvGeometry& g) { return g.warps_k * g.warps_n * kWarpSize; }

// MMA tiles of a CTA. A tile stands for 16 weight rows (with silu_mul: 8 gate rows and 8 up rows).
inline constexpr int gemv_tiles_per_cta(const GemvGeometry& g) { return g.warps_n * g.row_tiles; }

// CTAs over N, not counting the cluster: ceil(n / rows of a CTA).
inline constexpr long long gemv_ctas_over_n(long long n, const GemvGeometry& g) {
  const long long rows = static_cast<long long>(gemv_tiles_per_cta(g)) * kRowsPerTile;
  return (n + rows - 1) / rows;
}

// Partial sums: one float for each (warp over K, row of the CTA, token). The odd stride lets neighbouring threads read
// neighbouring rows of one token from different banks.
inline constexpr int gemv_partial_stride(const GemvGeometry& g) { return g.nt * kTokensPerTile + 1; }
inline constexpr int gemv_partial_floats(const GemvGeometry& g) {
  return gemv_tiles_per_cta(g) * kRowsPerTile * gemv_partial_stride(g);
}
// Dynamic shared memory of a CTA in bytes.
inline constexpr int gemv_smem_bytes(const GemvGeometry& g) {
  return (g.warps_k + (g.cluster_k > 1 ? 1 : 0)) * gemv_partial_floats(g) * 4;
}

// dequantize_rows: a thread makes 16 outputs (one scale block) at a time; CTAs stride over the rest.
inline constexpr int kDequantizeThreads = 256;
inline constexpr int kDequantizeMaxCtas = 1 << 16;

}  // namespace gemvjit
