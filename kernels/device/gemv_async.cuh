// kVariant 1, async: weights go to a ring in shared memory by asynchronous copies, each lane's own bytes by the lane
// itself, so that a warp needs no barrier to use them. Compared with registers the ring costs a few instructions a step
// and leaves the registers for more warps.
//
// A warp requests its step kStages steps ahead of the one it computes, across row groups. Copies are counted in groups,
// one a step, empty where there is nothing to request, so that "all but the last kStages - 1 groups" is always the step
// that is due.
#pragma once

#include "kernels/device/gemv_body.cuh"

namespace gemvjit {

// The steps of one warp in the order in which it works on them.
template <typename Weights>
class StepCursor {
 public:
  __device__ __forceinline__ explicit StepCursor(const Lane& lane) : lane_(lane), l_(lane.warp_k) {}
  __device__ __forceinline__ bool at_end() const { return !has_round(lane_, round_); }
  __device__ __forceinline__ bool is_first_of_round() const { return l_ == lane_.warp_k; }
  __device__ __forceinline__ int round() const { return round_; }
  __device__ __forceinline__ int l() const { return l_; }
  __device__ __forceinline__ void advance() {
    l_ += kWarpsK;
    if (l_ >= KShare<Weights>::kTurns * kWarpsK) l_ = lane_.warp_k, ++round_;
  }

 private:
  const Lane& lane_;
  int l_, round_ = 0;
};

template <typename Weights>
__device__ __forceinline__ void request_step(Weights& weights, const Lane& lane, StepCursor<Weights>& cursor, u32 slot) {
  if (!cursor.at_end()) {
    if (kRounds > 1 && cursor.round() > 0 && cursor.is_first_of_round()) {
      weights.seek_next_round(first_tile(lane, cursor.round()) + lane.warp_n * kRowTiles);
    }
    if (has_step<Weights>(lane, cursor.l())) {
      weights.request_own(slot, lane.rank * KShare<Weights>::kSteps + cursor.l());
    }
    cursor.advance();
  }
  commit_copies();
}

template <typename Weights, typename Finish>
__device__ __forceinline__ void gemv_async(Weights& weights, const void* x, i64 x_row_stride, void* out, int m,
                                           const Lane& lane, unsigned char* shared, const Finish& finish) {
  using Share = KShare<Weights>;
  const u32 ring = shared_address(shared) + static_cast<u32>(threadIdx.x / kWarpSize * (kStages * Weights::kOwnSlotBytes) +
                                                             threadIdx.x % kWarpSize * 16);
  unsigned char* partial = shared + kThreads / kWarpSize * kStages * Weights::kOwnSlotBytes;
  const int share = lane.rank * Share::kSteps;

  StepCursor<Weights> ahead(lane);
  weights.seek(first_tile(lane, 0) + lane.warp_n * kRowTiles);
#pragma unroll
  for (int s = 0; s < kStages; ++s) request_step(weights, lane, ahead, ring + s * Weights::kOwnSlotBytes);
  const auto finish_value = finish.prepare();

  wait_for_previous_kernel();

  XPath<Weights> x_path(shared_address(partial + gemv_partial_bytes(kGeometry)), x, x_row_stride, m, lane.rank, lane.g,
                        lane.t);
  u32 slot = ring;
  for (int round = 0; has_round(lane, round); ++round) {
    float acc[kRowTiles][kNt][4] = {};
    weights.begin_round();
    for (int turn = 0; turn < Share::kTurns; ++turn) {
      x_path.begin_turn(round, turn);
      const int l = turn * kWarpsK + lane.warp_k;
      const bool is_due = has_step<Weights>(lane, l);
      if (is_due) x_path.begin_step(share, l);  // before the next weights, which would hold it up
      wait_for_copies_but<kStages - 1>();
      typename Weights::Stage stage;
      weights.take_own(stage, slot, share + l);
      request_step(weights, lane, ahead, slot);
      slot = slot == ring + (kStages - 1) * Weights::kOwnSlotBytes ? ring : slot + Weights::kOwnSlotBytes;
      if (is_due) weights.compute(acc, stage, x_path);
    }
    weights.end_round(acc);
    finish_round(reinterpret_cast<float*>(partial), round, acc, out, m, lane, finish_value);
  }
}

}  // namespace gemvjit
