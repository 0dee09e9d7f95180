// Tile geometry of the GEMV kernels: one owner for every number that host and kernel must agree on. Plain constexpr
// C++, included by the host and, as an embedded source, by the kernels (no headers, no standard library).
//
// Words. swap-AB: the MMA's 16-row side runs over N (weights), its 8-column side over M (tokens).
//   half tile   8 weight rows. An MMA tile is two of them: rows 0-7 and rows 8-15 of its A operand.
//   share       K is cut into steps; a CTA of a cluster has consecutive ones, which its warps over K take in turn.
// With silu_mul the two halves of a tile are 8 gate rows and their 8 up rows, so N/2 need only be a multiple of 8.
#pragma once

namespace gemvjit {

inline constexpr int kNvfp4Family = 1;    // families whose bodies the shared code must tell apart
inline constexpr int kTokensPerTile = 8;  // columns of one MMA
inline constexpr int kRowsPerHalf = 8;    // weight rows of half an MMA tile
inline constexpr int kRowsPerTile = 16;   // rows of one MMA
inline constexpr int kNvfp4StepK = 128;   // k of one step of a warp: 16 bytes of codes a thread and row
inline constexpr int kBf16StepK = 64;     // k of one step of a warp: 2 x 16 bytes a thread and row
inline constexpr int kScaleBlockK = 16;   // k that share one E4M3 scale
inline constexpr int kWarpSize = 32;
inline constexpr int kMaxM = 32;

struct GemvGeometry {
  int warps_k;    // warps of a CTA that split K
  int warps_n;    // groups of warps of a CTA over N
  int cluster_k;  // CTAs of a cluster that split K
  int row_tiles;  // MMA tiles of a warp over N
  int nt;         // token tiles
  int stages;     // steps of weights that a warp keeps in flight
  int rounds;     // row groups a CTA works through, one after another
  int x_path;     // kXDirect, kXRing, kXDealt, or 1..4: staged, at most 8 KiB << x_path at a time
  int variant;    // kDirectVariant, kAsyncVariant or kWgmmaVariant
};
inline constexpr int kDirectVariant = 0, kAsyncVariant = 1, kWgmmaVariant = 2;
inline constexpr int kWarpgroupWarps = 4;  // warps that issue a wgmma together
inline constexpr int kXDirect = 0, kXRing = 5, kXDealt = 6;
inline constexpr bool gemv_x_is_staged(const GemvGeometry& g) { return g.x_path >= 1 && g.x_path <= 4; }
inline constexpr int kDealtTokens = 2;   // kXDealt serves so many; more take kXDirect's way
inline constexpr int kDealtMaxK = 8192;  // k of dealt x in shared memory at a time

inline constexpr int gemv_threads(const GemvGeometry& g) { return g.warps_k * g.warps_n * kWarpSize; }

// MMA tiles of a CTA in a round. A tile stands for 16 weight rows (with silu_mul: 8 gate rows and 8 up rows).
inline constexpr int gemv_tiles_per_cta(const GemvGeometry& g) { return g.warps_n * g.row_tiles; }

// Row groups (what a CTA works on in one round), and CTAs over N, not counting the cluster. CTA c takes the groups c,
// c + CTAs, c + 2 CTAs, ...
inline constexpr long long gemv_row_groups(long long n, const GemvGeometry& g) {
  const long long rows = static_cast<long long>(gemv_tiles_per_cta(g)) * kRowsPerTile;
  return (n + rows - 1) / rows;
}
inline constexpr long long gemv_ctas_over_n(long long n, const GemvGeometry& g) {
  return (gemv_row_groups(n, g) + g.rounds - 1) / g.rounds;
}

// A CTA's share of K in steps: an equal part for each CTA of the cluster.
inline constexpr int gemv_share_steps(long long k, int step_k, const GemvGeometry& g) {
  const long long steps = (k + step_k - 1) / step_k;
  return static_cast<int>((steps + g.cluster_k - 1) / g.cluster_k);
}
// A turn: the steps of a CTA from one refill of a ring slot to the next (direct), or one step a warp (async); and how
// many turns a share takes.
inline constexpr int gemv_turn_steps(const GemvGeometry& g) {
  return g.variant == kDirectVariant ? g.warps_k * g.stages : g.warps_k;
}
inline constexpr int gemv_turns(long long k, int step_k, const GemvGeometry& g) {
  return (gemv_share_steps(k, step_k, g) + gemv_turn_steps(g) - 1) / gemv_turn_steps(g);
}

// Partial sums, [warp over K][token][row of the CTA] in floats. Four more than the rows from token to token, so that
// the lanes of a warp, four rows of MMA results apart, write to different banks. A cluster's CTA has one set more for
// its total, unless one warp over K is its total. With several rounds there are two buffers in turn.
inline constexpr int gemv_partial_stride(const GemvGeometry& g) { return gemv_tiles_per_cta(g) * kRowsPerTile + 4; }
inline constexpr int gemv_partial_floats(const GemvGeometry& g) {
  return g.nt * kTokensPerTile * gemv_partial_stride(g);
}
inline constexpr int gemv_partial_buffer_floats(const GemvGeometry& g) {
  return (g.warps_k + (g.cluster_k > 1 && g.warps_k > 1 ? 1 : 0)) * gemv_partial_floats(g);
}
inline constexpr int gemv_partial_bytes(const GemvGeometry& g) {
  return (g.rounds > 1 ? 2 : 1) * gemv_partial_buffer_floats(g) * 4;
}

// Staged x: whole turns of the CTA's share of K at a time, as many as the budget holds for all 8 * nt tokens; 0 if not
// even one fits. A few bytes between the tokens' rows keep neighbouring tokens in different banks; how many depends on
// the order within a step (Weights::piece_offset in kernels/device).
inline constexpr int gemv_x_turn_bytes(int step_k, const GemvGeometry& g) { return gemv_turn_steps(g) * step_k * 2; }
inline constexpr int gemv_x_chunk_turns(long long k, int step_k, const GemvGeometry& g) {
  if (!gemv_x_is_staged(g)) return 0;
  const int fit = (8192 << g.x_path) / (gemv_x_turn_bytes(step_k, g) * kTokensPerTile * g.nt);
  const int turns = gemv_turns(k, step_k, g);
  return fit < turns ? fit : turns;
}
inline constexpr int gemv_x_token_bytes(long long k, int step_k, const GemvGeometry& g) {
  if (!gemv_x_is_staged(g)) return 0;
  const int padding = g.variant == kWgmmaVariant ? 0 : step_k == kNvfp4StepK ? 16 : 64;
  return gemv_x_chunk_turns(k, step_k, g) * gemv_x_turn_bytes(step_k, g) + padding;
}

// Dealt x: whole turns too, for two tokens; a row of zeros for the lanes that have none, and a word for each token and
// warp.
inline constexpr int gemv_dealt_chunk_turns(long long k, int step_k, const GemvGeometry& g) {
  const int fit = kDealtMaxK / (gemv_turn_steps(g) * step_k), turns = gemv_turns(k, step_k, g);
  return fit < turns ? fit : turns;
}
inline constexpr int gemv_dealt_token_bytes(long long k, int step_k, const GemvGeometry& g) {
  return gemv_dealt_chunk_turns(k, step_k, g) * gemv_x_turn_bytes(step_k, g) + 16;
}
inline constexpr int kDealtExtraBytes = 64 + kDealtTokens * 16 * 4;
inline constexpr int gemv_dealt_bytes(long long k, int step_k, const GemvGeometry& g) {
  if (g.x_path != kXDealt) return 0;
  return kDealtTokens * gemv_dealt_token_bytes(k, step_k, g) + kDealtExtraBytes;
}

// Dealt x travels as x * 2^up, `up` such that the largest exponent of a token becomes kDealtTopExponent; Inf and NaN
// stay what they are. Codes count 2^-126 of their values, and sums are kept kDealtSpare powers of two lower than
// kDecodeFactor wants, so that a sum's factor, a scale of at most 448 times 2^dealt_factor_exponent(up), is finite for
// every up.
inline constexpr int kDealtTopExponent = 119, kDealtSpare = 9;
inline constexpr int dealt_up(int largest_exponent_field) {
  const int up = kDealtTopExponent + 127 - largest_exponent_field, most = 2 * kDealtTopExponent, least = -8;
  return up > most ? most : up < least ? least : up;
}
inline constexpr int dealt_factor_exponent(int up) { return 126 - 7 - kDealtSpare - up; }

// Whether some CTA's chunks of staged x, which are whole turns, end past K.
inline constexpr bool gemv_x_passes_k(long long k, int step_k, const GemvGeometry& g) {
  const int chunk = gemv_x_chunk_turns(k, step_k, g);
  if (chunk == 0) return false;
  const long long turns = (gemv_turns(k, step_k, g) + chunk - 1) / chunk * chunk;
  const long long last_share = static_cast<long long>(g.cluster_k - 1) * gemv_share_steps(k, step_k, g);
  return (last_share + turns * gemv_turn_steps(g)) * step_k > k;
}

// The async variant's ring in shared memory: [warp][stage][row of the warp] a step's bytes of a row (row_step_bytes),
// and for NVFP4 16 bytes more, four times 32 bits that hold two scales each; and where x goes through the ring as well,
// a step's x of all tokens.
inline constexpr int gemv_ring_bytes(int step_k, int row_step_bytes, bool has_scales, const GemvGeometry& g) {
  if (g.variant == kDirectVariant) return 0;
  const int weights = g.row_tiles * kRowsPerTile * (row_step_bytes + (has_scales ? 16 : 0));
  const int x = g.x_path == kXRing ? g.nt * kTokensPerTile * step_k * 2 : 0;
  return g.warps_k * g.warps_n * g.stages * (weights + x);
}

// dequantize_rows: a thread makes 16 outputs (one scale block) at a time; CTAs stride over the rest.
inline constexpr int kElementwiseThreads = 256;
inline constexpr int kElementwiseMaxCtas = 1 << 16;

}  // namespace gemvjit
