// What the GEMV kernels share: the order of phases, how K and N are dealt to warps and CTAs, and two ways for weights
// to travel (gemv_direct.cuh, gemv_async.cuh).
//
// K is cut into steps. A CTA (of the kClusterK of its cluster) has a share of consecutive steps, which its kWarpsK
// warps take in turn: step l of the share belongs to warp l % kWarpsK.
//
// `Weights` is a family's way to hold a step: see Nvfp4Weights and Bf16Weights. `Finish` makes, before the wait, the
// function that turns an FP32 sum into the value that is rounded.
#pragma once

#include "kernel_config.h"
#include "kernels/device/ptx_pdl.cuh"
#include "kernels/device/ptx_warp.cuh"
#include "kernels/device/reduce_store.cuh"
#include "kernels/device/row_map.cuh"
#include "kernels/device/x_dealt.cuh"
#include "kernels/device/x_wgmma.cuh"

namespace gemvjit {

// Where a thread stands.
struct Lane {
  int warp_k, warp_n;
  int g, t;       // lane = 4 g + t
  int rank;       // of the CTA in its cluster
  i64 row_group;  // of round 0
};

inline constexpr int kUnitWarps = kVariant == kWgmmaVariant ? kWarpgroupWarps : 1;

__device__ __forceinline__ Lane make_lane() {
  const int warp = static_cast<int>(warp_uniform(threadIdx.x / kWarpSize)), lane = threadIdx.x % kWarpSize;
  const int rank = kClusterK > 1 ? static_cast<int>(cluster_rank()) : 0;
  const int group = warp / kUnitWarps;  // the warps of a unit work on one step together
  return {group % kWarpsK,
          group / kWarpsK * kUnitWarps + warp % kUnitWarps,
          lane / 4,
          lane % 4,
          rank,
          static_cast<i64>(blockIdx.x / kClusterK)};
}

inline constexpr i64 kRowGroups = gemv_row_groups(kN, kGeometry);
inline constexpr i64 kCtasOverN = gemv_ctas_over_n(kN, kGeometry);

__device__ __forceinline__ i64 first_tile(const Lane& lane, int round) {
  return (lane.row_group + round * kCtasOverN) * kTilesPerCta;
}
__device__ __forceinline__ bool has_round(const Lane& lane, int round) {
  if constexpr (kRowGroups == kRounds * kCtasOverN) return round < kRounds;
  return lane.row_group + round * kCtasOverN < kRowGroups;
}

// Whether step l of this CTA's share exists.
template <typename Weights>
__device__ __forceinline__ bool has_step(const Lane& lane, int l) {
  using Share = KShare<Weights>;
  if (Share::kSteps != Share::kTurns * Share::kTurnSteps && l >= Share::kSteps) return false;
  return Weights::kSteps == Share::kSteps * kClusterK || lane.rank * Share::kSteps + l < Weights::kSteps;
}

template <typename FinishValue>
__device__ __forceinline__ void finish_round(float* partial, int round, const float (&acc)[kRowTiles][kNt][4],
                                             void* out, int m, const Lane& lane, const FinishValue& finish_value) {
  float* buffer = partial + (kRounds > 1 ? round % 2 * gemv_partial_buffer_floats(kGeometry) : 0);
  write_partials(buffer, acc, lane.warp_k, lane.warp_n, lane.g, lane.t);
  reduce_and_store(buffer, static_cast<u16*>(out), first_tile(lane, round), m, finish_value);
}

}  // namespace gemvjit
