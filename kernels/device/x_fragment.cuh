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
  bool vector_aligned;  // all rows may be read 16 bytes at a time
};

__device__ __forceinline__ XRows make_x_rows(const void* x, i64 row_stride, int m, int g) {
  XRows rows;
  rows.vector_aligned = ((reinterpret_cast<u64>(x) & 15) | (static_cast<u64>(row_stride) & 7)) == 0;
#pragma unroll
  for (int tile = 0; tile < kNt; ++tile) {
    const int token = tile * kTokensPerTile + g;
    rows.valid[tile] = token < m;
    rows.row[tile] = static_cast<const u16*>(x) + (token < m ? token : 0) * row_stride;
  }
  return rows;
}

// 8 consecutive elements one by one, for rows at any multiple of 2 bytes.
__device__ __forceinline__ U32x4 ld_x_8x2(const u16* p) {
  U32x4 d;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    d.v[i] = static_cast<u32>(ld_x_2(p + 2 * i)) | static_cast<u32>(ld_x_2(p + 2 * i + 1)) << 16;
  }
  return d;
}

// kPieces pieces of 8 elements for each token tile, piece i at offset `piece_offset(i)` of the row, or zeros where the
// token or, by `piece_is_valid(i)`, the k does not exist. The choice between wide and narrow loads is made once for all,
// so that the loads are in flight together.
template <int kPieces, typename Offset, typename IsValid>
__device__ __forceinline__ void load_x(U32x4 (&x)[kNt][kPieces], const XRows& rows, const Offset& piece_offset,
                                       const IsValid& piece_is_valid) {
  const auto load_all = [&](auto load) {
#pragma unroll
    for (int n = 0; n < kNt; ++n) {
#pragma unroll
      for (int i = 0; i < kPieces; ++i) {
        x[n][i] = U32x4{{0, 0, 0, 0}};
        if (rows.valid[n] && piece_is_valid(i)) x[n][i] = load(rows.row[n] + piece_offset(i));
      }
    }
  };
  if (rows.vector_aligned) {
    load_all([](const u16* p) { return ld_x_16(p); });
  } else {
    load_all([](const u16* p) { return ld_x_8x2(p); });
  }
}

}  // namespace gemvjit
