// Dealt x, for at most two tokens: the MMA's eight columns are dealt to the four lanes of a quad, two (one a token) to
// each. A lane's columns have x only where the lane itself has the weights, and zeros elsewhere, so that the lane's
// accumulators belong to its own blocks of 16 k: their scales are applied to sums, and codes go to the tensor cores as
// 2^-126 times their values, with no multiplication of their own (Nvfp4Weights::compute).
//
// For products to be far from the ends of FP32's range, a token's x is multiplied by a power of two that brings the
// largest exponent of what the CTA has of it to kDealtTopExponent (kernels/shared/gemv_geometry.h). Products of values
// up to 2^-110 times the largest then are normal numbers.
#pragma once

#include "kernels/device/ptx_warp.cuh"
#include "kernels/device/x_path.cuh"

namespace gemvjit {

template <typename Weights>
class DealtX : public XPathBase {
 public:
  static constexpr bool kIsDealt = true;

  __device__ __forceinline__ DealtX(u32 area, const void* x, i64 row_stride, int m, int rank, int g, int t)
      : area_(area),
        x_(static_cast<const u16*>(x)),
        row_stride_(row_stride),
        m_(m),
        share_k_(rank * Share::kSteps * Weights::kStepK),
        has_x_(g / 2 == t && g % 2 < m) {
    own_ = area + static_cast<u32>(g % 2 * kTokenBytes + t * (Weights::kPieces * 16));
    if (threadIdx.x < 4) st_shared_16(area_ + kZerosAt + threadIdx.x * 16, U32x4{{0, 0, 0, 0}});
    if constexpr (Chunks::kIsWhole) stage(0);
  }

  __device__ __forceinline__ void begin_turn(int round, int turn) {
    chunks_.begin_turn(round, turn, [&](int first) { stage(first); });
  }
  __device__ __forceinline__ void begin_step(int, int l) {
    at_ = has_x_ ? own_ + static_cast<u32>(chunks_.step(l) * kStepBytes) : area_ + kZerosAt;
  }
  __device__ __forceinline__ U32x4 fragment(int, int piece) const { return ld_shared_16(at_ + piece * 16); }
  __device__ __forceinline__ TokenFragments tokens(int piece) const { return fragments_of(*this, piece); }

  // What a token's sums of products are multiplied by, beside their scales. It is applied to the scale: see dealt_up.
  __device__ __forceinline__ float factor(int token) const { return factors_[token]; }

 private:
  using Share = KShare<Weights>;
  using Chunks = XChunks<Weights, gemv_dealt_chunk_turns(kK, Weights::kStepK, kGeometry)>;
  static constexpr int kStepBytes = Weights::kStepK * 2;
  static constexpr int kTokenBytes = gemv_dealt_token_bytes(kK, Weights::kStepK, kGeometry);
  static constexpr u32 kZerosAt = kDealtTokens * kTokenBytes, kMaximaAt = kZerosAt + 64;
  static constexpr int kVectors = Chunks::kSteps * Weights::kStepK / 8;
  static constexpr int kVectorsAThread = (kVectors + kThreads - 1) / kThreads;  // of a token
  static constexpr int kWarps = kThreads / kWarpSize;
  static_assert(kWarps <= 16);

  // The chunk that begins at `turn` into the area; ends with a barrier.
  __device__ __forceinline__ void stage(int turn) {
    const int first_k = share_k_ + turn * (Share::kTurnSteps * Weights::kStepK);
    const bool aligned = is_vector_aligned(x_, row_stride_);
    const u32 warp = threadIdx.x / kWarpSize, lane = threadIdx.x % kWarpSize;
    U32x4 vectors[kDealtTokens][kVectorsAThread];
#pragma unroll
    for (int token = 0; token < kDealtTokens; ++token) {
      u32 largest = 0;  // exponents of two values
#pragma unroll
      for (int i = 0; i < kVectorsAThread; ++i) {
        const int vector = threadIdx.x + i * kThreads, k = first_k + vector * 8;
        U32x4& to = vectors[token][i];
        to = U32x4{{0, 0, 0, 0}};
        if (token < m_ && vector < kVectors && k < kK) {
          const u16* from = x_ + token * row_stride_ + k;
          to = aligned ? ld_x_16(from) : ld_x_8x2(from);
        }
#pragma unroll
        for (int j = 0; j < 4; ++j) largest = max_u16x2(largest, to.v[j] & 0x7f807f80u);
      }
      largest = warp_max(max_of(largest >> 16, largest & 0xffffu));
      if (lane == 0) st_shared_4(area_ + kMaximaAt + (token * 16 + warp) * 4, largest);
    }
    __syncthreads();
#pragma unroll
    for (int token = 0; token < kDealtTokens; ++token) {
      if (token >= m_) break;
      const u32 largest = warp_max(lane < kWarps ? ld_shared_4(area_ + kMaximaAt + (token * 16 + lane) * 4) : 0);
      // In two steps each: 2^up may be beyond the range of BF16, and 2^-up of normal FP32.
      const int up = dealt_up(static_cast<int>(largest >> 7)), first_up = up / 2, second_up = up - first_up;
      const u32 first = bf16_power_of_two(first_up), second = bf16_power_of_two(second_up);
      factors_[token] = power_of_two(dealt_factor_exponent(first_up)) * power_of_two(-second_up);
#pragma unroll
      for (int i = 0; i < kVectorsAThread; ++i) {
        const int vector = threadIdx.x + i * kThreads;
        if (vector >= kVectors) break;
        U32x4& from = vectors[token][i];
#pragma unroll
        for (int j = 0; j < 4; ++j) from.v[j] = mul_bf16x2(mul_bf16x2(from.v[j], first), second);
        st_shared_16(area_ + static_cast<u32>(token * kTokenBytes + vector * 16), Weights::arrange(from));
      }
    }
    __syncthreads();
  }
  __device__ static __forceinline__ float power_of_two(int exponent) {
    return __uint_as_float(static_cast<u32>(exponent + 127) << 23);
  }
  __device__ static __forceinline__ u32 bf16_power_of_two(int exponent) {
    return static_cast<u32>(exponent + 127) << 7 | static_cast<u32>(exponent + 127) << 23;
  }
  __device__ static __forceinline__ u32 max_of(u32 a, u32 b) { return a > b ? a : b; }

  u32 area_;
  const u16* x_;
  i64 row_stride_;
  int m_, share_k_;
  bool has_x_;  // whether this lane holds x of its quad
  u32 own_, at_ = 0;
  Chunks chunks_;
  float factors_[kDealtTokens] = {};
};

}  // namespace gemvjit
