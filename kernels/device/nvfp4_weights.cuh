// A step of NVFP4 weights: from global memory to registers, and from registers through the tensor cores.
#pragma once

#include "kernel_config.h"
#include "kernels/device/nvfp4_decode.cuh"
#include "kernels/device/ptx_memory.cuh"
#include "kernels/device/ptx_warp.cuh"
#include "kernels/device/row_map.cuh"
#include "kernels/shared/nvfp4_layout.h"

namespace gemvjit {

class Nvfp4Weights {
 public:
  static constexpr int kStepK = kNvfp4StepK;
  static constexpr int kSteps = static_cast<int>((kK + kStepK - 1) / kStepK);
  static constexpr bool kHasKTail = kK % kStepK != 0;
  static constexpr int kPieces = 4;  // words of 8 codes of a lane

  // A lane's weights of one step.
  struct Stage {
    U32x4 codes[kRowTiles][2];  // [tile][half]
    u16 scales[kRowTiles][2];   // two scale bytes
  };

  __device__ __forceinline__ Nvfp4Weights(const void* weight, const void* weight_scale, int g, int t)
      : weight_(static_cast<const u8*>(weight)), scale_(static_cast<const u8*>(weight_scale)), g_(g), t_(t) {}

  // k of a piece within a step. In staged x the 16 vectors of 8 k of a step lie in order, but for pairs exchanged in
  // the second half, so that the four lanes of a quad, 4 vectors apart, read from different banks: where a vector goes,
  // and the byte offset at which lane t finds a piece.
  __device__ static constexpr int piece_k(int piece, int t) { return t * kLaneK + piece * 8; }
  __device__ static constexpr int slot_of_vector(int vector) { return vector ^ (vector / 8 * 2); }
  __device__ static constexpr u32 piece_offset(int piece, int t) {
    return static_cast<u32>(slot_of_vector(t * kPieces + piece) * 16);
  }
  static constexpr int kPieceGroup = 2, kPieceDistance = 16;  // so many pieces lie so many bytes apart for every lane
  static constexpr bool kArranges = true;
  // 8 values of x into the decoder's pairs {i, i + 4}.
  __device__ static __forceinline__ U32x4 arrange(const U32x4& x) {
    return U32x4{{prmt(x.v[0], x.v[2], 0x5410), prmt(x.v[0], x.v[2], 0x7632), prmt(x.v[1], x.v[3], 0x5410),
                  prmt(x.v[1], x.v[3], 0x7632)}};
  }

  // From now on load() reads the warp's rows from tile `first_tile` on.
  __device__ __forceinline__ void seek(i64 first_tile) {
#pragma unroll
    for (int i = 0; i < kPointers; ++i) {
      const i64 row = weight_row(first_tile + i / 2, i % 2, g_);
      codes_at_[i] = weight_ + row * kRowBytes + t_ * (kLaneK / 2);
      scales_at_[i] = scale_ + swizzled_scale_offset(row, 2 * t_, kPaddedScaleColumns);
      keep_in_register(codes_at_[i]);
      keep_in_register(scales_at_[i]);
    }
  }

  // The same for the warp's rows of the next round, which begin at tile `first_tile`.
  __device__ __forceinline__ void seek_next_round(i64 first_tile) {
    if constexpr (kRoundsAreRegular) {
      codes_at_[0] += row_of(kRoundTiles, 0, 0) * kRowBytes;
      scales_at_[0] += swizzled_scale_offset(row_of(kRoundTiles, 0, 0), 0, kPaddedScaleColumns);
    } else {
      seek(first_tile);
    }
  }

  // Past K codes and scales are zero, whatever memory holds there: x is zero too, but 0 * NaN is NaN.
  __device__ __forceinline__ void load(Stage& stage, int step) const {
    const bool first = block_is_valid(step, 0), second = block_is_valid(step, 1);
    const i64 code_offset = static_cast<i64>(step) * (kStepK / 2),
              scale_offset = static_cast<i64>(step) * kScaleStepBytes;
#pragma unroll
    for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const u8* codes = codes_address(r, half, code_offset);
        const u8* scales = scales_address(r, half, scale_offset);
        U32x4& to = stage.codes[r][half];
        if constexpr (kK % 32 == 0) {  // rows are 16-byte aligned
          to = first ? ld_weight_16(codes) : U32x4{{0, 0, 0, 0}};
        } else {
          to = U32x4{{0, 0, 0, 0}};
          if (first) ld_weight_8(codes, to.v[0], to.v[1]);
          if (second) ld_weight_8(codes + 8, to.v[2], to.v[3]);
        }
        u16 two = first ? ld_scale_2(scales) : static_cast<u16>(0);
        if (kHasKTail && !second) two &= 0xff;
        stage.scales[r][half] = two;
      }
    }
  }

  // Async variant: a warp's slot is [tile][half][lane] of 16 bytes of codes, then [tile][half][lane] of 4 bytes that
  // hold the lane's two scales.
  static constexpr int kOwnSlotBytes = kRowTiles * 2 * (kWarpSize * 16 + kWarpSize * 4);

  __device__ __forceinline__ void request_own(u32 slot, int step) const {
    const bool first = block_is_valid(step, 0);
    const i64 code_offset = static_cast<i64>(step) * (kStepK / 2),
              scale_offset = static_cast<i64>(step) * kScaleStepBytes;
    if (kHasKTail && !first) return;
    const u32 scale_slot = own_scale_slot(slot);
#pragma unroll
    for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        copy_weight_16_async(slot + (2 * r + half) * kWarpSize * 16, codes_address(r, half, code_offset));
        copy_4_async(scale_slot + (2 * r + half) * kWarpSize * 4,
                     scales_address(r, half, scale_offset) - t_ % 2 * 2);  // 4-byte aligned
      }
    }
  }

  __device__ __forceinline__ void take_own(Stage& stage, u32 slot, int step) const {
    const bool first = block_is_valid(step, 0), second = block_is_valid(step, 1);
    const u32 scale_slot = own_scale_slot(slot) + t_ % 2 * 2;
#pragma unroll
    for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        U32x4& to = stage.codes[r][half];
        to = ld_shared_16(slot + (2 * r + half) * kWarpSize * 16);
        u16 two = ld_shared_2(scale_slot + (2 * r + half) * kWarpSize * 4);
        if (kHasKTail && !first) to.v[0] = to.v[1] = two = 0;
        if (kHasKTail && !second) to.v[2] = to.v[3] = 0, two &= 0xff;
        stage.scales[r][half] = two;
      }
    }
  }

  __device__ __forceinline__ void begin_round() {
#pragma unroll
    for (int r = 0; r < kRowTiles; ++r) nan_seen_[r][0] = nan_seen_[r][1] = 0;
  }

  // 8 MMAs for each tile of rows and tile of tokens.
  template <typename X>
  __device__ __forceinline__ void compute(float (&acc)[kRowTiles][kNt][4], const Stage& stage, const X& x) {
    if constexpr (X::kIsDealt) {
      compute_dealt(acc, stage, x);
    } else {
      compute_scaled(acc, stage, x);
    }
  }

  template <typename X>
  __device__ __forceinline__ void end_round(float (&acc)[kRowTiles][kNt][4]) {
    if constexpr (X::kIsDealt) {
      add_up_quad(acc);
    } else {
      mark_nan_rows(acc);
    }
  }

 private:
  // Codes times their scales go to the tensor cores.
  template <typename X>
  __device__ __forceinline__ void compute_scaled(float (&acc)[kRowTiles][kNt][4], const Stage& stage, const X& x) {
    u32 scale[kRowTiles][2][2];  // [tile][half][block]
#pragma unroll
    for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        decode_scales(stage.scales[r][half], scale[r][half][0], scale[r][half][1], nan_seen_[r][half]);
      }
    }
#pragma unroll
    for (int word = 0; word < kPieces; ++word) {  // 8 codes, 2 MMAs
      const auto tokens = x.tokens(word);
#pragma unroll
      for (int r = 0; r < kRowTiles; ++r) {
        u32 w[2][4];
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          code_pairs(stage.codes[r][half].v[word], w[half]);
#pragma unroll
          for (int i = 0; i < 4; ++i) w[half][i] = mul_bf16x2(w[half][i], scale[r][half][word / 2]);
        }
        tokens.multiply(acc[r], w[0], w[1]);
      }
    }
  }

  // Codes alone go to the tensor cores; a lane's two columns of a block's product are its own (x_dealt.cuh), and their
  // scale is applied to them in FP32. A NaN scale makes its row NaN by itself.
  template <typename X>
  __device__ __forceinline__ void compute_dealt(float (&acc)[kRowTiles][kNt][4], const Stage& stage, const X& x) {
#pragma unroll
    for (int block = 0; block < 2; ++block) {
      float sums[kRowTiles][kNt][4] = {};
#pragma unroll
      for (int word = 2 * block; word < 2 * block + 2; ++word) {
        const auto tokens = x.tokens(word);
#pragma unroll
        for (int r = 0; r < kRowTiles; ++r) {
          u32 w[2][4];
#pragma unroll
          for (int half = 0; half < 2; ++half) decode_codes(stage.codes[r][half].v[word], w[half]);
          tokens.multiply(sums[r], w[0], w[1]);
        }
      }
#pragma unroll
      for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const float scale = float_scale(stage.scales[r][half], block);
#pragma unroll
          for (int token = 0; token < kDealtTokens; ++token) {
            float& sum = acc[r][0][2 * half + token];
            sum = fmaf(sums[r][0][2 * half + token], scale * x.factor(token), sum);
          }
        }
      }
    }
  }
  // Each lane of a quad has the sums over its own k; lane 0 is where tokens 0 and 1 are stored from.
  __device__ static __forceinline__ void add_up_quad(float (&acc)[kRowTiles][kNt][4]) {
#pragma unroll
    for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        float& sum = acc[r][0][i];
        sum += __shfl_xor_sync(0xffffffffu, sum, 1);
        sum += __shfl_xor_sync(0xffffffffu, sum, 2);
        sum *= static_cast<float>(1 << kDealtSpare);
      }
    }
  }

  // A row with a NaN scale gives NaN for every token, and no other row does. Each lane of a quad saw a part of K.
  __device__ __forceinline__ void mark_nan_rows(float (&acc)[kRowTiles][kNt][4]) {
#pragma unroll
    for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        u32 seen = nan_seen_[r][half];
        seen |= __shfl_xor_sync(0xffffffffu, seen, 1);
        seen |= __shfl_xor_sync(0xffffffffu, seen, 2);
        if (!has_nan_scale(seen)) continue;
#pragma unroll
        for (int n = 0; n < kNt; ++n) {
          acc[r][n][2 * half] = acc[r][n][2 * half + 1] = __uint_as_float(0x7fffffffu);
        }
      }
    }
  }

  static constexpr int kLaneK = 32;  // k of a lane in a step
  static constexpr i64 kRowBytes = kK / 2;
  static constexpr i64 kPaddedScaleColumns = padded_scale_columns(kK);
  static constexpr i64 kScaleStepBytes = kStepK / kScaleBlockK / kScaleTileColumns * kScaleTileBytes;
  static constexpr int kPointers = kRowsAreRegular ? 1 : 2 * kRowTiles;
  static_assert(kK % kScaleBlockK == 0);

  // The first of a lane's two scale blocks of a step is inside K; the second is.
  __device__ __forceinline__ bool block_is_valid(int step, int block) const {
    return !kHasKTail || static_cast<i64>(step) * kStepK + t_ * kLaneK + block * kScaleBlockK < kK;
  }

  __device__ __forceinline__ const u8* codes_address(int r, int half, i64 offset) const {
    if constexpr (kRowsAreRegular) return codes_at_[0] + offset + row_of(r, half, 0) * kRowBytes;
    return codes_at_[(2 * r + half) % kPointers] + offset;
  }
  __device__ __forceinline__ const u8* scales_address(int r, int half, i64 offset) const {
    if constexpr (kRowsAreRegular)
      return scales_at_[0] + offset + swizzled_scale_offset(row_of(r, half, 0), 0, kPaddedScaleColumns);
    return scales_at_[(2 * r + half) % kPointers] + offset;
  }
  // From a lane's place in its slot, 16 bytes a lane, to its place among the scales, 4 bytes a lane.
  __device__ static __forceinline__ u32 own_scale_slot(u32 slot) {
    return slot + kRowTiles * 2 * kWarpSize * 16 - threadIdx.x % kWarpSize * 12;
  }

  const u8 *weight_, *scale_;
  int g_, t_;
  const u8 *codes_at_[kPointers], *scales_at_[kPointers];  // a lane's first bytes of [tile][half]
  u32 nan_seen_[kRowTiles][2];
};

}  // namespace gemvjit
