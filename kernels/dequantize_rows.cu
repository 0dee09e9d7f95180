// dequantize_rows: out[N,K] = e2m1(weight) * e4m3(weight_scale) in BF16, exact; the global scale is not applied.
//
//   weight        uint8 [N, K/2], E2M1 codes, even k in the low nibble, 16-byte aligned
//   weight_scale  E4M3, one for 16 k, 128x4 swizzle (kernels/shared/nvfp4_layout.h)
//   out           BF16 [N, K], 16-byte aligned
//
// A thread makes one scale block at a time: 8 bytes of codes and one scale byte to 32 bytes. -0 codes stay -0; a NaN
// scale makes its 16 outputs NaN.
//
// Unlike the GEMVs it never releases its dependents early: out is often the next BF16 GEMV's weight, which that kernel
// reads ahead of its wait.
#include "kernel_config.h"
#include "kernels/device/nvfp4_decode.cuh"
#include "kernels/device/ptx_memory.cuh"
#include "kernels/device/ptx_pdl.cuh"
#include "kernels/shared/gemv_geometry.h"
#include "kernels/shared/nvfp4_layout.h"

namespace gemvjit {

inline constexpr i64 kBlocksPerRow = kK / kScaleBlockK;
inline constexpr i64 kBlocks = kN * kBlocksPerRow;
static_assert(kK % kScaleBlockK == 0);

struct Block {
  u32 codes[2];
  u32 scale;
};

__device__ __forceinline__ Block load_block(const u8* weight, const u8* weight_scale, i64 block) {
  Block b;
  ld_weight_8(weight + block * (kScaleBlockK / 2), b.codes[0], b.codes[1]);
  const i64 row = block / kBlocksPerRow, column = block % kBlocksPerRow;
  b.scale = ld_scale_1(weight_scale + swizzled_scale_offset(row, column, padded_scale_columns(kK)));
  return b;
}

// Eight values in k order: the decoder's pairs {i, i + 4} are put back into neighbours.
__device__ __forceinline__ U32x4 dequantize8(u32 codes, u32 scale, bool is_nan) {
  u32 pair[4];
  code_pairs(codes, pair);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    pair[i] = is_nan ? kBf16Nan2 : mul_bf16x2(mul_bf16x2(pair[i], scale), kBf16DecodeFactor2);
  }
  return U32x4{{prmt(pair[0], pair[1], 0x5410), prmt(pair[2], pair[3], 0x5410), prmt(pair[0], pair[1], 0x7632),
                prmt(pair[2], pair[3], 0x7632)}};
}

extern "C" __global__ void __launch_bounds__(kElementwiseThreads)
    dequantize_rows(const void* weight, const void* weight_scale, void* out) {
  const auto* codes = static_cast<const u8*>(weight);
  const auto* scales = static_cast<const u8*>(weight_scale);
  auto* to = static_cast<U32x4*>(out);
  i64 block = static_cast<i64>(blockIdx.x) * kElementwiseThreads + threadIdx.x;
  Block b{};
  if (block < kBlocks) b = load_block(codes, scales, block);

  wait_for_previous_kernel();

  const i64 stride = static_cast<i64>(gridDim.x) * kElementwiseThreads;
  while (block < kBlocks) {
    u32 scale, unused, nan_seen = 0;
    decode_scales(b.scale, scale, unused, nan_seen);
    to[2 * block] = dequantize8(b.codes[0], scale, has_nan_scale(nan_seen));
    to[2 * block + 1] = dequantize8(b.codes[1], scale, has_nan_scale(nan_seen));
    block += stride;
    if (block < kBlocks) b = load_block(codes, scales, block);
  }
}

}  // namespace gemvjit
