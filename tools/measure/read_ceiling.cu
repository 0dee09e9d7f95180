// What a kernel that only reads can reach: the ceilings that gemvjit-bench measures beside its kernels.
//
//   kMode 0  plain: read `bytes`, nothing else
//   kMode 1  PDL: dependents released at once, all loads requested before the wait, then the wait; an ideal
//   kMode 2  PDL, and after the wait x is read once and out written once by the grid: the least a real op must do
//
// A CTA of 512 threads reads 64 KiB: 8 loads of 16 bytes a thread, all in flight at once.
#include "kernel_config.h"  // kMode

extern "C" __global__ void __launch_bounds__(512)
    read_ceiling(const uint4* data, unsigned long long vectors, const unsigned* x, unsigned x_words, unsigned* out,
                 unsigned out_words) {
  if (kMode != 0) asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
  unsigned long long at = blockIdx.x * 4096ull + threadIdx.x;
  uint4 v[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    v[i] = uint4{0, 0, 0, 0};
    const uint4* p = data + at + i * 512;
    if (at + i * 512 < vectors) {
      asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                   : "=r"(v[i].x), "=r"(v[i].y), "=r"(v[i].z), "=r"(v[i].w)
                   : "l"(p));
    }
  }
  if (kMode != 0) asm volatile("griddepcontrol.wait;" ::: "memory");
  unsigned sum = 0;
  if (kMode == 2) {
    for (unsigned i = blockIdx.x * 512 + threadIdx.x; i < x_words; i += gridDim.x * 512) {
      sum ^= *reinterpret_cast<const volatile unsigned*>(x + i);
    }
  }
#pragma unroll
  for (int i = 0; i < 8; ++i) sum ^= v[i].x ^ v[i].y ^ v[i].z ^ v[i].w;
  if (kMode == 2) {
    for (unsigned i = blockIdx.x * 512 + threadIdx.x; i < out_words; i += gridDim.x * 512) out[i] = sum;
  } else if (sum == 0x9e3779b9u && vectors == 0) {
    out[0] = sum;  // never: it keeps the loads
  }
}
