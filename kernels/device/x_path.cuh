// How activations travel from global memory to MMA fragments. A step's x is kPieces pieces of 8 consecutive k for each
// lane t of a quad and token; Weights::piece_k says where in the step a piece lies, and Weights::arrange puts its 8
// values in the order in which the weights come out of their decoder.
//
// Direct: each lane reads its pieces itself, when their step is due, and arranges them at each use. Ring: so too, but
// by asynchronous copies into the slots of the ring of weights, as many steps ahead. Staged: all threads of the CTA
// bring the CTA's share of K into shared memory; whole if it fits in the budget, else in chunks of turns. Staged rows
// are [token][step of the share][vectors of 8 k].
//
// A lane whose token does not exist reads the last one's instead: its column of the product is never stored.
#pragma once

#include "kernel_config.h"
#include "kernels/device/ptx_memory.cuh"
#include "kernels/device/ptx_mma.cuh"
#include "kernels/device/row_map.cuh"

namespace gemvjit {

// The part of K that a CTA works on, in steps. A turn is what the CTA does between two looks at the ring.
template <typename Weights>
struct KShare {
  static constexpr int kSteps = gemv_share_steps(kK, Weights::kStepK, kGeometry);
  static constexpr int kTurns = gemv_turns(kK, Weights::kStepK, kGeometry);
  static constexpr int kTurnSteps = gemv_turn_steps(kGeometry);
};

__device__ __forceinline__ bool is_vector_aligned(const void* x, i64 row_stride) {
  return ((reinterpret_cast<u64>(x) & 15) | (static_cast<u64>(row_stride) & 7)) == 0;
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

// A piece's x of all tokens as MMA fragments in registers.
struct TokenFragments {
  U32x4 pairs[kNt];

  // acc += the two MMAs of a piece, whose weights are `low` of rows 0-7 and `high` of rows 8-15 of the tile.
  __device__ __forceinline__ void multiply(float (&acc)[kNt][4], const u32 (&low)[4], const u32 (&high)[4]) const {
#pragma unroll
    for (int n = 0; n < kNt; ++n) {
      mma_m16n8k16_bf16(acc[n], low[0], high[0], low[1], high[1], pairs[n].v[0], pairs[n].v[1]);
      mma_m16n8k16_bf16(acc[n], low[2], high[2], low[3], high[3], pairs[n].v[2], pairs[n].v[3]);
    }
  }
};
template <typename X>
__device__ __forceinline__ TokenFragments fragments_of(const X& x, int piece) {
  TokenFragments fragments;
#pragma unroll
  for (int n = 0; n < kNt; ++n) fragments.pairs[n] = x.fragment(n, piece);
  return fragments;
}

// What a way of x need not have. A main loop calls, in this order: begin_turn, begin_step and use_slot, then tokens()
// for each piece of the step, end_step; and request() where a slot of the ring is free for step l.
struct XPathBase {
  static constexpr bool kIsDealt = false;
  __device__ __forceinline__ void begin_turn(int /*round*/, int /*turn*/) {}
  __device__ __forceinline__ void begin_step(int /*share*/, int /*l*/) {}
  __device__ __forceinline__ void use_slot(u32 /*slot*/) {}
  __device__ __forceinline__ void request(u32 /*slot*/, int /*share*/, int /*l*/) {}
  __device__ __forceinline__ void end_step() {}
};

// Where x is in shared memory whole, or so many turns of it at a time.
template <typename Weights, int chunk_turns>
class XChunks {
 public:
  static constexpr bool kIsWhole = chunk_turns == KShare<Weights>::kTurns;
  static constexpr int kSteps = chunk_turns * KShare<Weights>::kTurnSteps;
  static_assert(chunk_turns > 0, "the budget of staged x holds no turn");

  // Calls stage(turn) where a chunk begins.
  template <typename Stage>
  __device__ __forceinline__ void begin_turn(int round, int turn, const Stage& stage) {
    if (kIsWhole || turn % chunk_turns != 0) return;
    if (round + turn != 0) __syncthreads();  // all have read the chunk before
    stage(turn);
    first_ = turn * KShare<Weights>::kTurnSteps;
  }
  // Step l of the share in its chunk.
  __device__ __forceinline__ int step(int l) const { return l - first_; }

 private:
  int first_ = 0;
};

template <typename Weights>
class DirectX : public XPathBase {
 public:
  __device__ __forceinline__ DirectX(u32, const void* x, i64 row_stride, int m, int, int g, int t)
      : t_(t), vector_aligned_(is_vector_aligned(x, row_stride)) {
#pragma unroll
    for (int n = 0; n < kNt; ++n) {
      const int token = n * kTokensPerTile + g;
      row_[n] = static_cast<const u16*>(x) + (token < m ? token : m - 1) * row_stride;
    }
  }
  // Step l of the share that begins at step `share`. The choice between wide and narrow loads is made once for all
  // pieces, and the loads are not conditional, so that they are in flight together.
  __device__ __forceinline__ void begin_step(int share, int l) {
    const int first_k = (share + l) * Weights::kStepK;
    if (vector_aligned_) {
      load_all(first_k, [](const u16* p) { return ld_x_16(p); });
    } else {
      load_all(first_k, [](const u16* p) { return ld_x_8x2(p); });
    }
    if constexpr (Weights::kHasKTail) {
#pragma unroll
      for (int piece = 0; piece < Weights::kPieces; ++piece) {
        if (first_k + Weights::piece_k(piece, t_) < kK) continue;
#pragma unroll
        for (int n = 0; n < kNt; ++n) pieces_[n][piece] = U32x4{{0, 0, 0, 0}};
      }
    }
  }
  __device__ __forceinline__ TokenFragments tokens(int piece) const { return fragments_of(*this, piece); }
  __device__ __forceinline__ U32x4 fragment(int n, int piece) const { return Weights::arrange(pieces_[n][piece]); }

 private:
  template <typename Load>
  __device__ __forceinline__ void load_all(int first_k, const Load& load) {
#pragma unroll
    for (int n = 0; n < kNt; ++n) {
#pragma unroll
      for (int piece = 0; piece < Weights::kPieces; ++piece) {
        int k = first_k + Weights::piece_k(piece, t_);
        if (Weights::kHasKTail && k >= kK) k = 0;
        pieces_[n][piece] = load(row_[n] + k);
      }
    }
  }

  int t_;
  bool vector_aligned_;
  const u16* row_[kNt];
  U32x4 pieces_[kNt][Weights::kPieces];
};

// A slot is [token tile][piece][lane] of 16 bytes; `slot` is the address of the lane's first.
template <typename Weights>
class RingX : public XPathBase {
 public:
  static constexpr int kSlotBytes = kNt * Weights::kPieces * kWarpSize * 16;

  __device__ __forceinline__ RingX(u32, const void* x, i64 row_stride, int m, int, int g, int t)
      : x_(static_cast<const u16*>(x)),
        row_stride_(row_stride),
        m_(m),
        g_(g),
        t_(t),
        vector_aligned_(is_vector_aligned(x, row_stride)) {}

  // Copies step l of the share that begins at step `share`; where rows cannot be copied 16 bytes at a time the lane
  // loads and stores, piece after piece, so that this rare way costs the other no registers.
  __device__ __forceinline__ void request(u32 slot, int share, int l) const {
    const int first_k = (share + l) * Weights::kStepK;
    if (vector_aligned_) {
#pragma unroll
      for (int n = 0; n < kNt; ++n) {
        const u16* row = row_of_token(n);
#pragma unroll
        for (int piece = 0; piece < Weights::kPieces; ++piece) {
          visit(slot, n, piece, row, first_k, [](u32 to, const u16* from) { copy_16_async(to, from); });
        }
      }
    } else {
#pragma unroll 1
      for (int i = 0; i < kNt * Weights::kPieces; ++i) {
        const int n = i / Weights::kPieces;
        visit(slot, n, i % Weights::kPieces, row_of_token(n), first_k,
              [](u32 to, const u16* from) { st_shared_16(to, ld_x_8x2(from)); });
      }
    }
  }
  __device__ __forceinline__ void use_slot(u32 slot) { slot_ = slot; }
  __device__ __forceinline__ TokenFragments tokens(int piece) const { return fragments_of(*this, piece); }
  __device__ __forceinline__ U32x4 fragment(int n, int piece) const {
    return Weights::arrange(ld_shared_16(slot_ + (n * Weights::kPieces + piece) * (kWarpSize * 16)));
  }

 private:
  __device__ __forceinline__ const u16* row_of_token(int n) const {
    const int token = n * kTokensPerTile + g_;
    return x_ + (token < m_ ? token : m_ - 1) * row_stride_;
  }
  template <typename Copy>
  __device__ __forceinline__ void visit(u32 slot, int n, int piece, const u16* row, int first_k,
                                        const Copy& copy) const {
    const u32 to = slot + (n * Weights::kPieces + piece) * (kWarpSize * 16);
    const int k = first_k + Weights::piece_k(piece, t_);
    if (!Weights::kHasKTail || k < kK) {
      copy(to, row + k);
    } else {
      st_shared_16(to, U32x4{{0, 0, 0, 0}});
    }
  }

  const u16* x_;
  i64 row_stride_;
  int m_, g_, t_;
  bool vector_aligned_;
  u32 slot_ = 0;
};

template <typename Weights>
class StagedX : public XPathBase {
 public:
  __device__ __forceinline__ StagedX(u32 area, const void* x, i64 row_stride, int m, int rank, int g, int t)
      : area_(area),
        x_(static_cast<const u16*>(x)),
        row_stride_(row_stride),
        m_(m),
        share_k_(rank * Share::kSteps * Weights::kStepK) {
#pragma unroll
    for (int n = 0; n < kNt; ++n) {
      const int token = n * kTokensPerTile + g;
      row_[n] = static_cast<u32>((token < m ? token : m - 1) * kTokenBytes);
    }
#pragma unroll
    for (int group = 0; group < kGroups; ++group) {
      lane_[group] = area + Weights::piece_offset(group * Weights::kPieceGroup, t);
    }
    if constexpr (Chunks::kIsWhole) stage(0);
  }

  __device__ __forceinline__ void begin_turn(int round, int turn) {
    chunks_.begin_turn(round, turn, [&](int first) { stage(first); });
  }
  __device__ __forceinline__ void begin_step(int, int l) {
#pragma unroll
    for (int group = 0; group < kGroups; ++group) {
      at_[group] = lane_[group] + static_cast<u32>(chunks_.step(l) * kStepBytes);
    }
  }

  __device__ __forceinline__ TokenFragments tokens(int piece) const { return fragments_of(*this, piece); }
  __device__ __forceinline__ U32x4 fragment(int n, int piece) const {
    const U32x4 v = ld_shared_16(at_[piece / Weights::kPieceGroup] + row_[n] +
                                 piece % Weights::kPieceGroup * Weights::kPieceDistance);
    return kArrangeOnce ? v : Weights::arrange(v);
  }

 private:
  using Share = KShare<Weights>;
  static constexpr int kGroups = Weights::kPieces / Weights::kPieceGroup;
  using Chunks = XChunks<Weights, gemv_x_chunk_turns(kK, Weights::kStepK, kGeometry)>;
  static constexpr int kStepBytes = Weights::kStepK * 2;
  static constexpr int kTokenBytes = gemv_x_token_bytes(kK, Weights::kStepK, kGeometry);
  static_assert(kStepBytes == Weights::kPieces * 64);

  // Arranging all of x in place costs two passes through shared memory; arranging at use costs its instructions again
  // for every row group that uses the vector.
  static constexpr bool kArrangeOnce = kRounds * kWarpsN >= 4;

  // Vectors of 8 k of a token in a chunk, consecutive in x. A pass takes kPassVectors of kPassTokens tokens, one vector
  // a thread; a pass is a whole number of steps, so that a thread's place within a step is always the same.
  static constexpr int kStepVectors = Weights::kPieces * 4;
  static constexpr int kVectors = Chunks::kSteps * kStepVectors;
  static constexpr int kPassVectors = kVectors < kThreads ? kVectors : kThreads;
  static constexpr int kPassTokens = kThreads / kPassVectors;
  static constexpr int kPasses = (kVectors + kPassVectors - 1) / kPassVectors;
  static_assert(kPassVectors % kStepVectors == 0);

  // The chunk that begins at `turn` into the area; ends with a barrier. Where rows are aligned all copies are in flight
  // at once, and each thread arranges in place what it has copied itself.
  __device__ __forceinline__ void stage(int turn) {
    const int k = share_k_ + turn * (Share::kTurnSteps * Weights::kStepK);
    if (is_vector_aligned(x_, row_stride_)) {
      for_each_vector(k, [](u32 to, const u16* from) { copy_16_async(to, from); });
      wait_for_copies();
      if constexpr (Weights::kArranges && kArrangeOnce) {
        for_each_vector(k, [](u32 at, const u16*) { st_shared_16(at, Weights::arrange(ld_shared_16(at))); });
      }
    } else {
      for_each_vector(k, [](u32 to, const u16* from) {
        const U32x4 v = ld_x_8x2(from);
        st_shared_16(to, kArrangeOnce ? Weights::arrange(v) : v);
      });
    }
    __syncthreads();
  }

  // Calls visit(place in the area, address in x) for this thread's vectors; those past K become zero instead.
  template <typename Visit>
  __device__ __forceinline__ void for_each_vector(int first_k, const Visit& visit) {
    const int vector = threadIdx.x % kPassVectors, first_token = threadIdx.x / kPassVectors;
    if (kThreads % kPassVectors != 0 && first_token >= kPassTokens) return;
    const int k = first_k + vector * 8;
    const u16* from = x_ + first_token * row_stride_ + k;
    u32 to = area_ + static_cast<u32>(first_token * kTokenBytes + vector / kStepVectors * kStepBytes +
                                      Weights::slot_of_vector(vector % kStepVectors) * 16);
#pragma unroll 1
    for (int token = first_token; token < m_; token += kPassTokens) {
#pragma unroll
      for (int pass = 0; pass < kPasses; ++pass) {
        const int offset = pass * kPassVectors;  // vectors
        if (kVectors % kPassVectors != 0 && pass == kPasses - 1 && vector + offset >= kVectors) break;
        if (!kMayPassK || k + offset * 8 < kK) {
          visit(to + offset * 16, from + offset * 8);
        } else {
          st_shared_16(to + offset * 16, U32x4{{0, 0, 0, 0}});
        }
      }
      from += kPassTokens * row_stride_;
      to += kPassTokens * kTokenBytes;
    }
  }
  static constexpr bool kMayPassK = gemv_x_passes_k(kK, Weights::kStepK, kGeometry);

  u32 area_;
  const u16* x_;
  i64 row_stride_;
  int m_, share_k_;
  u32 row_[kNt];                     // of the lane's tokens, from the area's begin
  u32 lane_[kGroups], at_[kGroups];  // of the lane's pieces in a row: of step 0 of the chunk, of the step at hand
  Chunks chunks_;
};

}  // namespace gemvjit
