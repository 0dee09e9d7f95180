// Integer and BF16 types of the kernels. BF16 values travel as their bits: one in a u16, two in a u32 (lower k low).
#pragma once

namespace gemvjit {

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;
using i64 = long long;

struct alignas(16) U32x4 {
  u32 v[4];
};

struct alignas(16) F32x4 {
  float v[4];
};

inline constexpr u32 kBf16Nan2 = 0x7fff7fffu;

// Round to nearest even; any NaN becomes 0x7fff.
__device__ __forceinline__ u16 bf16_from_float(float value) {
  u16 bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
}
__device__ __forceinline__ float float_from_bf16(u16 bits) { return __uint_as_float(static_cast<u32>(bits) << 16); }

// Byte permute: result byte i is byte ((selector >> 4i) & 7) of {high, low}.
__device__ __forceinline__ u32 prmt(u32 low, u32 high, u32 selector) { return __byte_perm(low, high, selector); }

// Two BF16 products, each rounded once; subnormal operands are exact. sm_80 to sm_89 have no bf16x2 multiply: a fused
// multiply-add of -0 is the same, since x + -0 = x for every x, -0 included.
__device__ __forceinline__ u32 mul_bf16x2(u32 a, u32 b) {
  u32 d;
#if __CUDA_ARCH__ >= 900
  asm("mul.rn.bf16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
#else
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(0x80008000u));
#endif
  return d;
}

}  // namespace gemvjit
