// Programmatic dependent launch (PDL). With kUsePdl 0 both are nothing, and the launcher sets no attribute.
#pragma once

#include "kernel_config.h"

namespace gemvjit {

// Blocks until every kernel this one depends on has completed and its memory is visible. A no-op in a launch without
// the attribute. The "memory" clobber keeps reads of x and writes of out behind it.
__device__ __forceinline__ void wait_for_previous_kernel() {
  if constexpr (kUsePdl != 0) asm volatile("griddepcontrol.wait;" ::: "memory");
}
// Lets the next kernel's CTAs start where there is room. Gives no memory visibility: the next kernel waits for that.
__device__ __forceinline__ void release_next_kernel() {
  if constexpr (kUsePdl != 0) asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

}  // namespace gemvjit
