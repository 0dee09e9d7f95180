// Thread block clusters and distributed shared memory (DSMEM); sm_90 and newer. One PTX instruction a wrapper.
#pragma once

#include "kernels/device/types.cuh"

namespace gemvjit {

#if __CUDA_ARCH__ >= 900

__device__ __forceinline__ u32 cluster_rank() {
  u32 rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
// Every thread of every CTA of the cluster: shared-memory writes before it are seen by all after it. A CTA must not
// end while a peer may still read its shared memory, so the last read is followed by one more.
__device__ __forceinline__ void cluster_barrier() {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
// Four floats of the CTA `rank` of this cluster, at the 16-byte aligned place that `own` has in this CTA's shared
// memory.
__device__ __forceinline__ F32x4 ld_peer(const float* own, u32 rank) {
  const u32 address = static_cast<u32>(__cvta_generic_to_shared(own));
  u32 peer;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(peer) : "r"(address), "r"(rank));
  F32x4 d;
  asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(d.v[0]), "=f"(d.v[1]), "=f"(d.v[2]), "=f"(d.v[3])
               : "r"(peer)
               : "memory");
  return d;
}

#else  // never called: keys with a cluster are refused for these targets

__device__ __forceinline__ u32 cluster_rank() { return 0; }
__device__ __forceinline__ void cluster_barrier() {}
__device__ __forceinline__ F32x4 ld_peer(const float* own, u32) { return *reinterpret_cast<const F32x4*>(own); }

#endif

}  // namespace gemvjit
