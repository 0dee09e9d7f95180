// Activations from global memory to registers.
#pragma once

#include "kernel_config.h"
#include "kernels/device/ptx_memory.cuh"
#include "kernels/shared/gemv_geometry.h"

namespace gemvjit {

// The tokens of one lane group, a row of x for each token tile. Tokens at or past m read as zero.
struct XRows {
  const u16* row[kNt];  // first element of the token's row; a valid row also where `valid` is false
  bool valid[kNt];
};

__device__ __forceinline__ XRows make_x_rows(const void* x, i64 row_stride, int m, int g) {
  XRows rows;
#pragma unroll
  for (int tile = 0; tile < kNt; ++tile) {
    const int token = tile * kTokensPerTile + g;
    rows.valid[tile] = token < m;
    rows.row[tile] = static_cast<const u16*>(x) + (token < m ? token : 0) * row_stride;
  }
  return rows;
}

// Whether all rows may be read 16 bytes at a time.
__device__ __forceinline__ bool x_is_vector_aligned(const void* x, i64 row_stride) {
  return ((reinterpret_cast<u64>(x) & 15) | (static_cast<u64>(row_stride) & 7)) == 0;
}

// 8 consecutive elements, or zeros. kVector: p is 16-byte aligned.
template <bool kVector>
__device__ __forceinline__ U32x4 load_x8(const u16* p, bool valid) {
  U32x4 d{{0, 0, 0, 0}};
  if (valid) {
    if constexpr (kVector) {
      d = ld_x_16(p);
    } else {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        d.v[i] = static_cast<u32>(ld_x_2(p + 2 * i)) | static_cast<u32>(ld_x_2(p + 2 * i + 1)) << 16;
      }
    }
  }
  return d;
}

}  // namespace gemvjit
