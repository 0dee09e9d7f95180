// Staged x as the shared-memory operand of wgmma (variant 2, sm_90a): all threads of the CTA bring the CTA's share of K
// into shared memory, whole if it fits in the budget, else in chunks of turns, and put each pair of values where the
// tensor cores look for it: [step][MMA of the step][half of its k][token tile][token][lane t of a quad] of 4 bytes. No
// fragment of x ever takes registers.
//
// What stands in the places of tokens that do not exist is never stored: a column of a product is its own.
#pragma once

#include "kernels/device/ptx_warp.cuh"
#include "kernels/device/ptx_wgmma.cuh"
#include "kernels/device/x_path.cuh"

namespace gemvjit {

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

inline constexpr int kMatrixBytes = 128;  // 8 tokens x 8 k

// A piece's x of all tokens: two MMAs' operands in shared memory.
struct TokenOperands {
  static constexpr int kMmaBytes = 16 * kNt * kTokensPerTile * 2;
  u32 place;  // low word of the first MMA's matrix descriptor

  // A matrix descriptor in units of 16 bytes: start, distance of the halves of k << 16, distance of token tiles << 32.
  __device__ static __forceinline__ u64 operand(u32 place) { return static_cast<u64>(kMatrixBytes / 16) << 32 | place; }
  // A shared address has the CTA's rank in its high bits.
  __device__ static __forceinline__ u32 place_of(u32 address) {
    return (address & 0x3ffff) / 16 | kMmaBytes / 2 / 16 << 16;
  }

  __device__ __forceinline__ void multiply(float (&acc)[kNt][4], const u32 (&low)[4], const u32 (&high)[4]) const {
    wgmma_fence();
    wgmma_bf16(acc, low[0], high[0], low[1], high[1], operand(place));
    wgmma_bf16(acc, low[2], high[2], low[3], high[3], operand(place + kMmaBytes / 16));
  }
};

template <typename Weights>
class WgmmaX : public XPathBase {
 public:
  __device__ __forceinline__ WgmmaX(u32 area, const void* x, i64 row_stride, int m, int rank, int, int)
      : area_(area),
        x_(static_cast<const u16*>(x)),
        row_stride_(row_stride),
        m_(m),
        share_k_(rank * Share::kSteps * Weights::kStepK) {
    if constexpr (Chunks::kIsWhole) stage(0);
  }

  __device__ __forceinline__ void begin_turn(int round, int turn) {
    chunks_.begin_turn(round, turn, [&](int first) { stage(first); });
  }
  __device__ __forceinline__ void begin_step(int, int l) {
    const u32 at = area_ + static_cast<u32>(chunks_.step(l) * kStepBytes);
    place_ = warp_uniform(TokenOperands::place_of(at));
  }
  __device__ __forceinline__ TokenOperands tokens(int piece) const {
    return {place_ + piece * 2 * TokenOperands::kMmaBytes / 16};
  }
  __device__ __forceinline__ void end_step() {
    wgmma_commit();
    wgmma_wait_but<0>();
  }

 private:
  using Share = KShare<Weights>;
  using Chunks = XChunks<Weights, gemv_x_chunk_turns(kK, Weights::kStepK, kGeometry)>;
  static constexpr int kStepBytes = Weights::kStepK * kNt * kTokensPerTile * 2;
  static constexpr int kHalfBytes = TokenOperands::kMmaBytes / 2;
  static constexpr bool kMayPassK = gemv_x_passes_k(kK, Weights::kStepK, kGeometry);

  // A unit is a piece of a step for 8 tokens: a vector of 8 k for each lane (g, t) of a warp, which becomes the lane's
  // words in four matrices.
  static constexpr int kUnits = Chunks::kSteps * Weights::kPieces * kNt;
  static constexpr int kWarps = kThreads / kWarpSize;
  static constexpr int kUnitsAWarp = (kUnits + kWarps - 1) / kWarps;
  static constexpr int kInFlight = kUnitsAWarp < 16 ? kUnitsAWarp : 16;

  // The chunk that begins at `turn` into the area; ends with a barrier.
  __device__ __forceinline__ void stage(int turn) {
    const int first_k = share_k_ + turn * (Share::kTurnSteps * Weights::kStepK);
    if (is_vector_aligned(x_, row_stride_)) {
      copy<kInFlight>(first_k, [](const u16* p) { return ld_x_16(p); });
    } else {
      copy<1>(first_k, [](const u16* p) { return ld_x_8x2(p); });
    }
    publish_to_wgmma();
    __syncthreads();
  }

  // Ordinary loads, many at once: asynchronous copies took longer (docs/performance.md).
  template <int in_flight, typename Load>
  __device__ __forceinline__ void copy(int first_k, const Load& load) {
    const int lane = threadIdx.x % kWarpSize, token = lane / 4, t = lane % 4;
    const u16* row = x_ + token * row_stride_ + first_k;
#pragma unroll 1
    for (int first = threadIdx.x / kWarpSize; first < kUnits; first += in_flight * kWarps) {
      U32x4 vectors[in_flight];
#pragma unroll
      for (int i = 0; i < in_flight; ++i) {
        const int unit = first + i * kWarps, n = unit % kNt, piece = unit / kNt % Weights::kPieces;
        const int k = unit / (kNt * Weights::kPieces) * Weights::kStepK + Weights::piece_k(piece, t);
        vectors[i] = U32x4{{0, 0, 0, 0}};
        if (unit < kUnits && n * kTokensPerTile + token < m_ && (!kMayPassK || first_k + k < kK)) {
          vectors[i] = load(row + n * kTokensPerTile * row_stride_ + k);
        }
      }
#pragma unroll
      for (int i = 0; i < in_flight; ++i) {
        const int unit = first + i * kWarps;
        if (unit >= kUnits) break;
        const u32 to =
            area_ + static_cast<u32>(unit / kNt * 2 * TokenOperands::kMmaBytes + unit % kNt * kMatrixBytes + lane * 4);
        const U32x4 words = Weights::arrange(vectors[i]);
#pragma unroll
        for (int word = 0; word < 4; ++word) st_shared_4(to + word * kHalfBytes, words.v[word]);
      }
    }
  }

  u32 area_;
  const u16* x_;
  i64 row_stride_;
  int m_, share_k_;
  Chunks chunks_;
  u32 place_ = 0;
};
#endif

template <int variant, int path, typename Weights>
struct XPathOf {
  using Type = StagedX<Weights>;
};
template <typename Weights>
struct XPathOf<kDirectVariant, kXDirect, Weights> {
  using Type = DirectX<Weights>;
};
template <typename Weights>
struct XPathOf<kAsyncVariant, kXDirect, Weights> {
  using Type = DirectX<Weights>;
};
template <typename Weights>
struct XPathOf<kAsyncVariant, kXRing, Weights> {
  using Type = RingX<Weights>;
};
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
template <int path, typename Weights>
struct XPathOf<kWgmmaVariant, path, Weights> {
  using Type = WgmmaX<Weights>;
};
#endif
template <typename Weights>
using XPath = typename XPathOf<kVariant, kXPath, Weights>::Type;

}  // namespace gemvjit
