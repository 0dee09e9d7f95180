// LaunchConfig: how a kernel is launched, as plain data without CUDA types.
#pragma once

namespace gemvjit {

struct LaunchConfig {
  unsigned grid_x = 1;      // CTAs; a multiple of cluster_x
  unsigned block_x = 1;     // threads
  unsigned cluster_x = 1;   // CTAs of a cluster along x; 1: no cluster
  unsigned smem_bytes = 0;  // dynamic, for max_tokens tokens
  // A launch with fewer tokens needs this much less for each, so that more CTAs fit on an SM.
  unsigned smem_token_bytes = 0;
  unsigned max_tokens = 0;
  bool pdl = false;  // programmatic stream serialization: only if the compiled code waits

  // m <= max_tokens where there are tokens.
  unsigned smem_bytes_for(unsigned m) const { return smem_bytes - smem_token_bytes * (max_tokens - m); }
};

}  // namespace gemvjit
