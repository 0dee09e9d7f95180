// kVariant 1, async, and 2, the same with wgmma (x_wgmma.cuh): weights go to a ring in shared memory by asynchronous
// copies, each lane's own bytes by the lane itself, so that a warp needs no barrier to use them. Compared with registers
// the ring costs a few instructions a step and leaves the registers for more warps. x may go the same way (kXRing).
//
// A warp requests its step kStages steps ahead of the one it computes, across row groups. Copies are counted in groups,
// one a step, empty where there is nothing to request, so that "all but the last kStages - 1 groups" is always the step
// that is due. A lane reads a slot before it requests the copies that fill it again; a copy needs global memory first,
// so that it cannot overtake the read.
#pragma once

#include "kernels/device/gemv_body.cuh"

namespace gemvjit {

// The steps of one warp in the order in which it works on them.
template <typename Weights>
class StepCursor {
 public:
  __device__ __forceinline__ explicit StepCursor(const Lane& lane) : lane_(lane), l_(lane.warp_k) {}
  __device__ __forceinline__ bool at_end() const { return !has_round(lane_, round_); }
  __device__ __forceinline__ bool is_first_of_next_round() const { return round_ > 0 && l_ == lane_.warp_k; }
  __device__ __forceinline__ bool has_step() const { return !at_end() && gemvjit::has_step<Weights>(lane_, l_); }
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
inline constexpr int kRingSlotBytes = Weights::kOwnSlotBytes + (kXPath == kXRing ? RingX<Weights>::kSlotBytes : 0);

template <typename Weights>
__device__ __forceinline__ void request_weights(Weights& weights, const Lane& lane, const StepCursor<Weights>& cursor,
                                                u32 slot) {
  if (kRounds > 1 && cursor.is_first_of_next_round() && !cursor.at_end()) {
    weights.seek_next_round(first_tile(lane, cursor.round()) + lane.warp_n * kRowTiles);
  }
  if (cursor.has_step()) weights.request_own(slot, lane.rank * KShare<Weights>::kSteps + cursor.l());
}

template <typename X, typename Weights, typename Finish>
__device__ __forceinline__ void gemv_async(Weights& weights, const void* x, i64 x_row_stride, void* out, int m,
                                           const Lane& lane, unsigned char* shared, const Finish& finish) {
  using Share = KShare<Weights>;
  constexpr int kSlotBytes = kRingSlotBytes<Weights>, kRingBytes = kStages * kSlotBytes;
  const u32 ring =
      shared_address(shared) + static_cast<u32>(threadIdx.x / kWarpSize * kRingBytes + threadIdx.x % kWarpSize * 16);
  unsigned char* partial = shared + kThreads / kWarpSize * kRingBytes;
  const int share = lane.rank * Share::kSteps;

  StepCursor<Weights> ahead(lane);
  weights.seek(first_tile(lane, 0) + lane.warp_n * kRowTiles);
#pragma unroll
  for (int s = 0; s < kStages; ++s) {
    request_weights(weights, lane, ahead, ring + s * kSlotBytes);
    commit_copies();
    ahead.advance();
  }
  const auto finish_value = finish.prepare();

  wait_for_previous_kernel();

  X x_path(shared_address(partial + gemv_partial_bytes(kGeometry)), x, x_row_stride, m, lane.rank, lane.g, lane.t);
  if constexpr (kRelease == 2) release_next_kernel();
  if constexpr (kXPath == kXRing) {  // x of the steps whose weights are on their way
    StepCursor<Weights> same(lane);
#pragma unroll
    for (int s = 0; s < kStages; ++s) {
      if (same.has_step()) x_path.request(ring + s * kSlotBytes + Weights::kOwnSlotBytes, share, same.l());
      same.advance();
    }
    wait_for_copies();
  }
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
      if constexpr (kXPath != kXRing) {
        request_weights(weights, lane, ahead, slot);
        commit_copies();
        ahead.advance();
      }
      x_path.use_slot(slot + Weights::kOwnSlotBytes);
      if (is_due) {
        weights.compute(acc, stage, x_path);
        x_path.end_step();
      }
      if constexpr (kXPath == kXRing) {  // x is read from the slot while it is used
        if (ahead.has_step()) x_path.request(slot + Weights::kOwnSlotBytes, share, ahead.l());
        request_weights(weights, lane, ahead, slot);
        commit_copies();
        ahead.advance();
      }
      slot = slot == ring + (kStages - 1) * kSlotBytes ? ring : slot + kSlotBytes;
    }
    weights.template end_round<X>(acc);
    finish_round(reinterpret_cast<float*>(partial), round, acc, out, m, lane, finish_value);
  }
}

}  // namespace gemvjit
