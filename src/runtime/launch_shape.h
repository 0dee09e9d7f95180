// LaunchShape: what a launch asks for, and what is told when there is no kernel for it.
#pragma once

#include <cstdint>
#include <functional>

#include "src/catalog/catalog.h"

namespace gemvjit {

// Without M.
struct LaunchShape {
  std::int64_t n = 0;
  std::int64_t k = 0;
  Family family = Family::nvfp4_gemv;
  bool silu_mul = false;
  bool pdl_allowed = false;
  bool scale_segments = false;
  bool operator==(const LaunchShape&) const = default;
};

inline Problem problem_of(const LaunchShape& shape) {
  return {shape.family, shape.n, shape.k, shape.silu_mul, shape.pdl_allowed, shape.scale_segments};
}
inline LaunchShape shape_of(const Problem& problem) {
  return {problem.n, problem.k, problem.family, problem.silu_mul, problem.pdl, problem.scale_segments};
}

// A launch that found no kernel: not_ready or m_not_covered. Told in the launching thread.
struct LaunchMiss {
  LaunchShape shape;
  std::int64_t m = 0;
  StatusCode code = StatusCode::not_ready;
  bool sealed = false;
};
using LaunchMissSink = std::function<void(const LaunchMiss&)>;

}  // namespace gemvjit
