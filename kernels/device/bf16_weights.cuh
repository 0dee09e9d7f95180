// A step of BF16 weights: from global memory to registers, and from registers through the tensor cores.
#pragma once

#include "kernel_config.h"
#include "kernels/device/ptx_memory.cuh"
#include "kernels/device/ptx_warp.cuh"
#include "kernels/device/row_map.cuh"

namespace gemvjit {

class Bf16Weights {
 public:
  static constexpr int kStepK = kBf16StepK;
  static constexpr int kSteps = static_cast<int>((kK + kStepK - 1) / kStepK);
  static constexpr bool kHasKTail = kK % kStepK != 0;
  static constexpr int kPieces = 2;  // parts of a step

  // A lane's weights of one step.
  struct Stage {
    U32x4 weights[kRowTiles][2][kPieces];  // [tile][half][part]
  };

  __device__ __forceinline__ Bf16Weights(const void* weight, int g, int t)
      : weight_(static_cast<const u16*>(weight)), g_(g), t_(t) {}

  // k of a piece within a step. In staged x the vectors of 8 k of a step lie in order: where a vector goes, and the
  // byte offset at which lane t finds a piece.
  __device__ static constexpr int piece_k(int piece, int t) { return piece * kPartK + t * kLaneK; }
  __device__ static constexpr int slot_of_vector(int vector) { return vector; }
  __device__ static constexpr u32 piece_offset(int piece, int t) { return static_cast<u32>(piece_k(piece, t) * 2); }
  static constexpr int kPieceGroup = 2, kPieceDistance = 64;  // so many pieces lie so many bytes apart for every lane
  static constexpr bool kArranges = false;
  __device__ static __forceinline__ U32x4 arrange(const U32x4& x) { return x; }

  // From now on load() reads the warp's rows from tile `first_tile` on.
  __device__ __forceinline__ void seek(i64 first_tile) {
#pragma unroll
    for (int i = 0; i < kPointers; ++i) {
      row_at_[i] = weight_ + weight_row(first_tile + i / 2, i % 2, g_) * kK + t_ * kLaneK;
      keep_in_register(row_at_[i]);
    }
  }

  // The same for the warp's rows of the next round, which begin at tile `first_tile`.
  __device__ __forceinline__ void seek_next_round(i64 first_tile) {
    if constexpr (kRoundsAreRegular) {
      row_at_[0] += row_of(kRoundTiles, 0, 0) * kK;
    } else {
      seek(first_tile);
    }
  }

  // Past K the weight is zero, whatever memory holds there: x is zero too, but 0 * NaN is NaN.
  __device__ __forceinline__ void load(Stage& stage, int step) const {
    const i64 offset = static_cast<i64>(step) * kStepK;
#pragma unroll
    for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const u16* row = row_address(r, half, offset);
#pragma unroll
        for (int part = 0; part < kPieces; ++part) {
          const bool valid = !kHasKTail || offset + piece_k(part, t_) < kK;
          stage.weights[r][half][part] = valid ? ld_weight_16(row + part * kPartK) : U32x4{{0, 0, 0, 0}};
        }
      }
    }
  }

  // Async variant: a warp's slot is [tile][half][part][lane] of 16 bytes.
  static constexpr int kOwnSlotBytes = kRowTiles * 2 * kPieces * kWarpSize * 16;

  __device__ __forceinline__ void request_own(u32 slot, int step) const {
    const i64 offset = static_cast<i64>(step) * kStepK;
#pragma unroll
    for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
#pragma unroll
        for (int part = 0; part < kPieces; ++part) {
          if (kHasKTail && offset + piece_k(part, t_) >= kK) continue;
          copy_weight_16_async(slot + ((2 * r + half) * kPieces + part) * kWarpSize * 16,
                               row_address(r, half, offset) + part * kPartK);
        }
      }
    }
  }

  __device__ __forceinline__ void take_own(Stage& stage, u32 slot, int step) const {
#pragma unroll
    for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
#pragma unroll
        for (int part = 0; part < kPieces; ++part) {
          const bool valid = !kHasKTail || step * kStepK + piece_k(part, t_) < kK;
          stage.weights[r][half][part] =
              valid ? ld_shared_16(slot + ((2 * r + half) * kPieces + part) * kWarpSize * 16) : U32x4{{0, 0, 0, 0}};
        }
      }
    }
  }

  __device__ __forceinline__ void begin_round() {}

  // 4 MMAs for each tile of rows and tile of tokens.
  template <typename X>
  __device__ __forceinline__ void compute(float (&acc)[kRowTiles][kNt][4], const Stage& stage, const X& x) {
#pragma unroll
    for (int part = 0; part < kPieces; ++part) {
      const auto tokens = x.tokens(part);
#pragma unroll
      for (int r = 0; r < kRowTiles; ++r) {
        tokens.multiply(acc[r], stage.weights[r][0][part].v, stage.weights[r][1][part].v);
      }
    }
  }

  template <typename X>
  __device__ __forceinline__ void end_round(float (&)[kRowTiles][kNt][4]) {}

 private:
  static constexpr int kPartK = kStepK / kPieces;
  static constexpr int kLaneK = 8;  // k of a lane in a part
  static constexpr int kPointers = kRowsAreRegular ? 1 : 2 * kRowTiles;
  static_assert(kK % kLaneK == 0);

  __device__ __forceinline__ const u16* row_address(int r, int half, i64 offset) const {
    if constexpr (kRowsAreRegular) return row_at_[0] + offset + row_of(r, half, 0) * kK;
    return row_at_[(2 * r + half) % kPointers] + offset;
  }

  const u16* weight_;
  int g_, t_;
  const u16* row_at_[kPointers];  // a lane's first element of [tile][half]
};

}  // namespace gemvjit
