// A GEMV from its parameters to `out`, by the variant of the key.
#pragma once

#include "kernels/device/gemv_async.cuh"
#include "kernels/device/gemv_direct.cuh"

namespace gemvjit {

template <typename X, typename Weights, typename Finish>
__device__ __forceinline__ void run_gemv_with(Weights& weights, const void* x, i64 x_row_stride, void* out, int m,
                                              const Lane& lane, unsigned char* shared, const Finish& finish) {
  if constexpr (kVariant == kDirectVariant) {
    gemv_direct<X>(weights, x, x_row_stride, out, m, lane, shared, finish);
  } else {
    gemv_async<X>(weights, x, x_row_stride, out, m, lane, shared, finish);
  }
}

template <typename Weights, typename Finish>
__device__ __forceinline__ void run_gemv(Weights& weights, const void* x, i64 x_row_stride, void* out, int m,
                                         const Lane& lane, const Finish& finish) {
  extern __shared__ __align__(128) unsigned char shared[];
  constexpr int kRingBytes = kVariant != kDirectVariant ? kThreads / kWarpSize * kStages * kRingSlotBytes<Weights> : 0;
  constexpr int kXBytes = gemv_x_token_bytes(kK, Weights::kStepK, kGeometry) * kNt * kTokensPerTile +
                          gemv_dealt_bytes(kK, Weights::kStepK, kGeometry);
  static_assert(kRingBytes + gemv_partial_bytes(kGeometry) + kXBytes == kSmemBytes,
                "host and kernel disagree about shared memory");
  if constexpr (kXPath == kXDealt) {
    if (m <= kDealtTokens) {
      run_gemv_with<DealtX<Weights>>(weights, x, x_row_stride, out, m, lane, shared, finish);
    } else {
      run_gemv_with<DirectX<Weights>>(weights, x, x_row_stride, out, m, lane, shared, finish);
    }
  } else {
    run_gemv_with<XPath<Weights>>(weights, x, x_row_stride, out, m, lane, shared, finish);
  }
  if constexpr (kClusterK > 1) cluster_barrier();  // stay until the peers have read
}

}  // namespace gemvjit
