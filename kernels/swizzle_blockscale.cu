// swizzle_blockscale: row-major E4M3 block scales, as checkpoints store them, to the 128x4 layout that the GEMVs read.
//
//   row_major  [N, K/16], 1-byte aligned
//   swizzled   roundup(N, 128) * roundup(K/16, 4) bytes, 4-byte aligned; padding is written as zeros
//
// For loading, not for serving: a thread makes four bytes that lie side by side in both layouts, and no launch overlaps
// with another.
#include "kernel_config.h"
#include "kernels/device/types.cuh"
#include "kernels/shared/gemv_geometry.h"
#include "kernels/shared/nvfp4_layout.h"

namespace gemvjit {

inline constexpr i64 kColumns = scale_columns(kK);
inline constexpr i64 kPaddedColumns = padded_scale_columns(kK);
inline constexpr i64 kWords = padded_scale_rows(kN) * kPaddedColumns / kScaleTileColumns;

extern "C" __global__ void __launch_bounds__(kElementwiseThreads)
    swizzle_blockscale(const void* row_major, void* swizzled) {
  const auto* from = static_cast<const u8*>(row_major);
  const i64 stride = static_cast<i64>(gridDim.x) * kElementwiseThreads;
  for (i64 word = static_cast<i64>(blockIdx.x) * kElementwiseThreads + threadIdx.x; word < kWords; word += stride) {
    const i64 row = word / (kPaddedColumns / kScaleTileColumns);
    const i64 column = word % (kPaddedColumns / kScaleTileColumns) * kScaleTileColumns;
    u32 bytes = 0;
#pragma unroll
    for (int i = 0; i < kScaleTileColumns; ++i) {
      if (row < kN && column + i < kColumns) bytes |= static_cast<u32>(from[row * kColumns + column + i]) << 8 * i;
    }
    *reinterpret_cast<u32*>(static_cast<u8*>(swizzled) + swizzled_scale_offset(row, column, kPaddedColumns)) = bytes;
  }
}

}  // namespace gemvjit
