// In place of the kernels' types.cuh where decoders_agree_test.cpp runs their decoder on the host: the same functions
// without PTX.
#pragma once

#define __device__
#define __forceinline__ inline

namespace gemvjit {

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;

inline u32 prmt(u32 low, u32 high, u32 selector) {
  u32 result = 0;
  for (int i = 0; i < 4; ++i) {
    const u32 byte = selector >> 4 * i & 7;
    result |= ((byte < 4 ? low >> 8 * byte : high >> 8 * (byte - 4)) & 0xff) << 8 * i;
  }
  return result;
}
inline float __uint_as_float(u32 bits) { return __builtin_bit_cast(float, bits); }

// As mul.rn.bf16x2: a product of two BF16 numbers is rounded once, to nearest even. Each is exact in double.
inline u32 mul_bf16x2(u32 a, u32 b) {
  u32 result = 0;
  for (int half = 0; half < 2; ++half) {
    const double exact = static_cast<double>(__uint_as_float(a >> 16 * half << 16)) *
                         static_cast<double>(__uint_as_float(b >> 16 * half << 16));
    u32 bits = __builtin_bit_cast(u32, static_cast<float>(exact));
    bits += 0x7fff + (bits >> 16 & 1);
    result |= bits >> 16 << 16 * half;
  }
  return result;
}

}  // namespace gemvjit
