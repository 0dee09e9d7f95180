// kVariant 0, direct: weights go from global memory to a ring in registers that runs ahead of the computation and from
// one row group into the next.
//
// A warp takes its steps kStages at a time: a turn. The ring's slots are registers, so their index must be a constant:
// the loop over a turn is unrolled, the loop over turns is not. In the last turn of a round each slot is refilled with
// the next round's first steps, so that memory stays busy while sums are reduced and stored.
#pragma once

#include "kernels/device/gemv_body.cuh"

namespace gemvjit {

template <typename X, typename Weights, typename Finish>
__device__ __forceinline__ void gemv_direct(Weights& weights, const void* x, i64 x_row_stride, void* out, int m,
                                            const Lane& lane, unsigned char* shared, const Finish& finish) {
  using Share = KShare<Weights>;
  float* partial = reinterpret_cast<float*>(shared);
  const int share = lane.rank * Share::kSteps;

  typename Weights::Stage ring[kStages];
  weights.seek(first_tile(lane, 0) + lane.warp_n * kRowTiles);
#pragma unroll
  for (int s = 0; s < kStages; ++s) {
    const int l = s * kWarpsK + lane.warp_k;
    if (has_step<Weights>(lane, l)) weights.load(ring[s], share + l);
  }
  const auto finish_value = finish.prepare();

  wait_for_previous_kernel();

  X x_path(shared_address(shared + gemv_partial_bytes(kGeometry)), x, x_row_stride, m, lane.rank, lane.g, lane.t);
  if constexpr (kRelease == 2) release_next_kernel();
  for (int round = 0; has_round(lane, round); ++round) {
    float acc[kRowTiles][kNt][4] = {};
    weights.begin_round();
    const bool has_next_round = has_round(lane, round + 1);
    for (int turn = 0; turn < Share::kTurns; ++turn) {
      x_path.begin_turn(round, turn);
      const bool is_last = turn == Share::kTurns - 1;
      if (is_last && has_next_round) weights.seek_next_round(first_tile(lane, round + 1) + lane.warp_n * kRowTiles);
      const int first = turn * Share::kTurnSteps + lane.warp_k;
      const int next = is_last ? lane.warp_k : first + Share::kTurnSteps;
#pragma unroll
      for (int s = 0; s < kStages; ++s) {
        // The step's x is requested first, then the slot's next weights, which would hold it up: both are on their way
        // before the step is computed.
        const bool is_due = has_step<Weights>(lane, first + s * kWarpsK);
        if (is_due) x_path.begin_step(share, first + s * kWarpsK);
        const typename Weights::Stage stage = ring[s];
        if ((!is_last || has_next_round) && has_step<Weights>(lane, next + s * kWarpsK)) {
          weights.load(ring[s], share + next + s * kWarpsK);
        }
        if (is_due) {
          weights.compute(acc, stage, x_path);
          x_path.end_step();
        }
      }
    }
    weights.template end_round<X>(acc);
    finish_round(partial, round, acc, out, m, lane, finish_value);
  }
}

}  // namespace gemvjit
