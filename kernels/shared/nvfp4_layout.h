// Where an NVFP4 weight's block scale lies: the 128x4 swizzle of cuBLASLt's VEC16_UE4M3 and of ModelOpt's
// swizzle_blockscale (NVIDIA cuBLAS documentation, "1D block scaling factors layout"). Plain constexpr C++, included
// by host and kernels. R = N rows, C = K/16 columns, one byte each; padded to Rp = roundup(R, 128), Cp = roundup(C, 4).
#pragma once

namespace gemvjit {

inline constexpr long long kScaleTileRows = 128;
inline constexpr long long kScaleTileColumns = 4;
inline constexpr long long kScaleTileBytes = kScaleTileRows * kScaleTileColumns;

inline constexpr long long scale_columns(long long k) { return (k + 15) / 16; }
inline constexpr long long padded_scale_rows(long long n) {
  return (n + kScaleTileRows - 1) / kScaleTileRows * kScaleTileRows;
}
inline constexpr long long padded_scale_columns(long long k) {
  return (scale_columns(k) + kScaleTileColumns - 1) / kScaleTileColumns * kScaleTileColumns;
}
inline constexpr long long swizzled_scale_bytes(long long n, long long k) {
  return padded_scale_rows(n) * padded_scale_columns(k);
}

// Byte offset of the scale at (row, column) of a matrix with `padded_columns` = padded_scale_columns(K).
inline constexpr long long swizzled_scale_offset(long long row, long long column, long long padded_columns) {
  return row / kScaleTileRows * (padded_columns / kScaleTileColumns) * kScaleTileBytes  //
         + column / kScaleTileColumns * kScaleTileBytes                                  //
         + row % 32 * 16 + row % kScaleTileRows / 32 * 4 + column % kScaleTileColumns;
}

}  // namespace gemvjit
