// NVFP4 to BF16 in registers, exactly, without tables.
//
// An E2M1 code is s e1 e0 m. Its bits e1 e0 m at BF16 bits 8..6 and its s at bit 15 make a BF16 number of 2^-126 times
// the code's value: for e = 0 the BF16 number is the subnormal m * 2^-1 * 2^-126, for e > 0 it is
// (1 + m/2) * 2^(e-1) * 2^-126. An E4M3 scale's seven magnitude bits at BF16 bits 10..4 make 2^-120 times its value,
// for its subnormals too. Multiplied up by powers of two, which is exact, the scale becomes 2^119 times its value, and
// one BF16 multiplication per pair gives code * scale * 2^-7: at most 6 significant bits, so exact again. The
// accumulator gets the 2^7 back.
//
// Where target and compiler have the conversion of E2M1 to BF16 (the a and f targets from sm_100 on, NVRTC 13.2 and
// newer), code_pairs() uses it and the scale is multiplied up 2^126 times less: decoded weights, and the order of
// their pairs, are the same bits. That the compiler's version decides here, and no key, keeps an entry valid under
// every NVRTC.
#pragma once

#include "kernels/device/types.cuh"

namespace gemvjit {

inline constexpr float kDecodeFactor = 128.0f;          // decoded weight * kDecodeFactor = weight
inline constexpr u32 kBf16DecodeFactor2 = 0x43004300u;  // the same, twice, in BF16
inline constexpr u32 kBf16Two120 = 0x7b807b80u;         // 2^120
inline constexpr u32 kBf16Two119 = 0x7b007b00u;         // 2^119

// A plain target has no such macro, and both count as 0.
#if (__CUDA_ARCH_SPECIFIC__ >= 1000 || __CUDA_ARCH_FAMILY_SPECIFIC__ >= 1000) && \
    (__CUDACC_VER_MAJOR__ > 13 || (__CUDACC_VER_MAJOR__ == 13 && __CUDACC_VER_MINOR__ >= 2))
#define GEMVJIT_HAS_E2M1_CONVERSION 1
#else
#define GEMVJIT_HAS_E2M1_CONVERSION 0
#endif

// Eight codes (k0 in the lowest nibble) to four pairs of 2^-126 times their values: pair[i] = {code i, code i + 4}.
// Each field is isolated and multiplied by the sum of two powers of two, which puts its magnitude and its sign where
// they belong at once, on the multiply pipe instead of the busy integer one.
__device__ __forceinline__ void decode_codes(u32 codes, u32 (&pair)[4]) {
  const u32 upper = codes >> 8;
  constexpr u32 kKeep = 0x81c081c0u;
  pair[0] = (codes & 0x000f000fu) * 0x1040u & kKeep;  // bits 3..0:  << 6 and << 12
  pair[1] = (codes & 0x00f000f0u) * 0x0104u & kKeep;  // bits 7..4:  << 2 and << 8
  pair[2] = (upper & 0x000f000fu) * 0x1040u & kKeep;
  pair[3] = (upper & 0x00f000f0u) * 0x0104u & kKeep;
}

// The same pairs, times what decode_scales() expects: the values themselves where there is a conversion.
__device__ __forceinline__ void code_pairs(u32 codes, u32 (&pair)[4]) {
#if GEMVJIT_HAS_E2M1_CONVERSION
  u32 neighbours[4];  // {code 2 i, code 2 i + 1}
  asm("{\n\t"
      ".reg .b8 b0, b1, b2, b3;\n\t"
      "mov.b32 {b0, b1, b2, b3}, %4;\n\t"
      "cvt.rn.bf16x2.e2m1x2 %0, b0;\n\t"
      "cvt.rn.bf16x2.e2m1x2 %1, b1;\n\t"
      "cvt.rn.bf16x2.e2m1x2 %2, b2;\n\t"
      "cvt.rn.bf16x2.e2m1x2 %3, b3;\n\t"
      "}"
      : "=r"(neighbours[0]), "=r"(neighbours[1]), "=r"(neighbours[2]), "=r"(neighbours[3])
      : "r"(codes));
  pair[0] = prmt(neighbours[0], neighbours[2], 0x5410);
  pair[1] = prmt(neighbours[0], neighbours[2], 0x7632);
  pair[2] = prmt(neighbours[1], neighbours[3], 0x5410);
  pair[3] = prmt(neighbours[1], neighbours[3], 0x7632);
#else
  decode_codes(codes, pair);
#endif
}

// Two scale bytes (first in the low byte), each twice: first = {s0, s0}, second = {s1, s1}. Their values times what
// makes a product with code_pairs() 2^-7 of the weight: 2^119, or with the conversion 2^-7.
// NaN codes (0x7f, 0xff) come out as a finite number; `nan_seen` keeps a trace of them, see has_nan_scale.
__device__ __forceinline__ void decode_scales(u32 two_scales, u32& first, u32& second, u32& nan_seen) {
  const u32 spread = prmt(two_scales, 0, 0x1404);  // {s1, 0, s0, 0}: each byte at the top of its half
  const u32 magnitude = (spread >> 4) & 0x07f007f0u;
  nan_seen |= magnitude + 0x00100010u;  // 0x7f is the one magnitude that carries into bit 11
#if GEMVJIT_HAS_E2M1_CONVERSION
  const u32 scaled = mul_bf16x2((spread & 0x80008000u) | magnitude, 0x78007800u);  // 2^113
#else
  const u32 scaled = mul_bf16x2(mul_bf16x2((spread & 0x80008000u) | magnitude, kBf16Two120), kBf16Two119);
#endif
  first = prmt(scaled, scaled, 0x1010);
  second = prmt(scaled, scaled, 0x3232);
}

// One of two scale bytes (0: the low one) as FP32, NaN codes as NaN.
__device__ __forceinline__ float float_scale(u16 two_scales, int which) {
#if __CUDA_ARCH__ >= 890
  u32 two;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(two) : "h"(two_scales));
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(static_cast<u16>(which == 0 ? two : two >> 16)));
  return value;
#else
  const u32 byte = two_scales >> 8 * which & 0xff;
  if ((byte & 0x7f) == 0x7f) return __uint_as_float(0x7fffffffu);
  // The magnitude's bits at FP32 bits 26..20 make 2^-120 times its value.
  return __uint_as_float((byte & 0x80) << 24 | (byte & 0x7f) << 20) * 1.329227995784916e+36f;
#endif
}

__device__ __forceinline__ bool has_nan_scale(u32 nan_seen) { return (nan_seen & 0x08000800u) != 0; }

}  // namespace gemvjit
