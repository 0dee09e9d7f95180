// What concerns the lanes of a warp, or the registers of one.
#pragma once

#include "kernels/device/types.cuh"

namespace gemvjit {

// A value that all lanes of the warp hold alike, told to the compiler.
__device__ __forceinline__ u32 warp_uniform(u32 value) { return __shfl_sync(0xffffffffu, value, 0); }

// Keeps the compiler from computing `address` again where it is used.
template <typename T>
__device__ __forceinline__ void keep_in_register(const T*& address) {
  asm volatile("" : "+l"(address));
}

// The larger of each two 16-bit halves, unsigned.
__device__ __forceinline__ u32 max_u16x2(u32 a, u32 b) { return __vmaxu2(a, b); }

// The largest of the values of a warp's lanes.
__device__ __forceinline__ u32 warp_max(u32 value) { return __reduce_max_sync(0xffffffffu, value); }

}  // namespace gemvjit
