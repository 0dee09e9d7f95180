// The decoder as an NVRTC sees it that has no conversion for the target; see decoder_by_conversion.cpp for the other.
#ifndef DECODER_FUNCTION
#define DECODER_FUNCTION by_integers
#define DECODER_CONVERTS 0
#endif

#include "tests/compile/device_on_host/decoder.h"
//
#include "kernels/device/nvfp4_decode.cuh"

static_assert(GEMVJIT_HAS_E2M1_CONVERSION == DECODER_CONVERTS);

namespace decoder {

Decoded DECODER_FUNCTION(unsigned codes, unsigned scales) {
  unsigned first = 0, second = 0, nan_seen = 0, pairs[4];
  gemvjit::code_pairs(codes, pairs);
  gemvjit::decode_scales(scales, first, second, nan_seen);
  Decoded decoded;
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned product = gemvjit::mul_bf16x2(pairs[i], first);
    decoded.pairs[i] = pairs[i];
    decoded.weights[2 * i] = product & 0xffff;
    decoded.weights[2 * i + 1] = product >> 16;
  }
  decoded.has_nan = gemvjit::has_nan_scale(nan_seen);
  return decoded;
}

}  // namespace decoder
