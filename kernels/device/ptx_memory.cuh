// Global and shared memory, and asynchronous copies between them; one PTX instruction a wrapper.
#pragma once

#include "kernels/device/types.cuh"

namespace gemvjit {

// Weights and scales: written by no kernel that may still run, and requested before the wait for the previous kernel.
// They are ordinary loads on purpose: the assembler moves the wait ahead of non-coherent (.nc) loads, and then nothing
// runs under the previous kernel. tests/compile holds the order in the machine code.
// Weights are read once by this grid, so they are not kept in L1.
__device__ __forceinline__ U32x4 ld_weight_16(const void* p) {
  U32x4 d;
  asm volatile("ld.global.L1::no_allocate.L2::128B.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(d.v[0]), "=r"(d.v[1]), "=r"(d.v[2]), "=r"(d.v[3])
               : "l"(p));
  return d;
}
__device__ __forceinline__ void ld_weight_8(const void* p, u32& low, u32& high) {
  asm volatile("ld.global.L1::no_allocate.L2::128B.v2.u32 {%0, %1}, [%2];" : "=r"(low), "=r"(high) : "l"(p));
}
// A scale's 32-byte sector also holds scales of neighbouring rows: kept in L1.
__device__ __forceinline__ u16 ld_scale_2(const void* p) {
  u16 d;
  asm volatile("ld.global.L1::evict_last.u16 %0, [%1];" : "=h"(d) : "l"(p));
  return d;
}
__device__ __forceinline__ u8 ld_scale_1(const void* p) {
  u16 d;
  asm volatile("ld.global.L1::evict_last.u8 %0, [%1];" : "=h"(d) : "l"(p));
  return static_cast<u8>(d);
}
__device__ __forceinline__ void prefetch_l2(const void* p) { asm volatile("prefetch.global.L2 [%0];" ::"l"(p)); }
__device__ __forceinline__ float ld_global_scale(const float* p) {
  float d;
  asm volatile("ld.global.L1::evict_last.f32 %0, [%1];" : "=f"(d) : "l"(p));
  return d;
}

// Activations: written by the previous kernel, so never through the non-coherent path and never before the wait.
__device__ __forceinline__ U32x4 ld_x_16(const u16* p) {
  U32x4 d;
  asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(d.v[0]), "=r"(d.v[1]), "=r"(d.v[2]), "=r"(d.v[3])
               : "l"(p)
               : "memory");
  return d;
}
__device__ __forceinline__ u16 ld_x_2(const u16* p) {
  u16 d;
  asm volatile("ld.global.u16 %0, [%1];" : "=h"(d) : "l"(p) : "memory");
  return d;
}

// Four neighbouring outputs, at once where their place allows it.
__device__ __forceinline__ void store_4(u16* to, const u16 (&values)[4]) {
  if ((reinterpret_cast<u64>(to) & 7) == 0) {
    const u32 low = values[0] | static_cast<u32>(values[1]) << 16, high = values[2] | static_cast<u32>(values[3]) << 16;
    asm volatile("st.global.v2.u32 [%0], {%1, %2};" : : "l"(to), "r"(low), "r"(high) : "memory");
  } else {
#pragma unroll
    for (int i = 0; i < 4; ++i) to[i] = values[i];
  }
}

// Shared memory is addressed by 32-bit addresses of its own state space.
__device__ __forceinline__ u32 shared_address(const void* p) { return static_cast<u32>(__cvta_generic_to_shared(p)); }

// 16 bytes from global to shared memory past the registers. The thread sees them after wait_for_copies(), the CTA after
// a barrier that follows.
__device__ __forceinline__ void copy_16_async(u32 to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" : : "r"(to), "l"(from) : "memory");
}
__device__ __forceinline__ void copy_weight_16_async(u32 to, const void* from) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" : : "r"(to), "l"(from) : "memory");
}
__device__ __forceinline__ void copy_4_async(u32 to, const void* from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" : : "r"(to), "l"(from) : "memory");
}
// The copies so far become a group; wait until at most kPending groups are still on their way.
__device__ __forceinline__ void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int kPending>
__device__ __forceinline__ void wait_for_copies_but() {
  asm volatile("cp.async.wait_group %0;" : : "n"(kPending) : "memory");
}
__device__ __forceinline__ void wait_for_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }

// 16 bytes at a 16-byte aligned place; 2 bytes.
__device__ __forceinline__ U32x4 ld_shared_16(u32 from) {
  U32x4 d;
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(d.v[0]), "=r"(d.v[1]), "=r"(d.v[2]), "=r"(d.v[3])
               : "r"(from)
               : "memory");
  return d;
}
__device__ __forceinline__ u16 ld_shared_2(u32 from) {
  u16 d;
  asm volatile("ld.shared.u16 %0, [%1];" : "=h"(d) : "r"(from) : "memory");
  return d;
}
__device__ __forceinline__ u32 ld_shared_4(u32 from) {
  u32 d;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(d) : "r"(from) : "memory");
  return d;
}
__device__ __forceinline__ void st_shared_4(u32 to, u32 value) {
  asm volatile("st.shared.u32 [%0], %1;" : : "r"(to), "r"(value) : "memory");
}
__device__ __forceinline__ void st_shared_16(u32 to, const U32x4& value) {
  asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};"
               :
               : "r"(to), "r"(value.v[0]), "r"(value.v[1]), "r"(value.v[2]), "r"(value.v[3])
               : "memory");
}

}  // namespace gemvjit
