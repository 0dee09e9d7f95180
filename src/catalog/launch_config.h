// LaunchConfig: how a kernel is launched, as plain data without CUDA types.
#pragma once

namespace gemvjit {

struct LaunchConfig {
  unsigned grid_x = 1;      // CTAs; a multiple of cluster_x
  unsigned block_x = 1;     // threads
  unsigned cluster_x = 1;   // CTAs of a cluster along x; 1: no cluster
  unsigned smem_bytes = 0;  // dynamic
  bool pdl = false;         // programmatic stream serialization: only if the compiled code waits
};

}  // namespace gemvjit
