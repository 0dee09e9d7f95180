// Global scales of a merged weight: up to eight ranges of rows, each with its own. A kernel parameter by value, so that
// nothing of it lies in device memory but the scales themselves. Plain C++, included by host and kernels.
#pragma once

namespace gemvjit {

inline constexpr int kMaxScaleSegments = 8;

// Segment i has the rows from row_end[i - 1] (0 for the first) to row_end[i]. Those that are not used repeat the last
// one's scale and end at its row_end, so that no row is theirs.
struct ScaleSegments {
  const float* scale[kMaxScaleSegments];  // [device]
  unsigned row_end[kMaxScaleSegments];    // multiples of 8: the rows of a part, each of which could be its own weight
};

}  // namespace gemvjit
