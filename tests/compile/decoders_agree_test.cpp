// The two NVFP4 decoders of kernels/device/nvfp4_decode.cuh, the integer one and the one with the conversion of E2M1
// to BF16, run on the host over every code and scale: the same bits, which are the exact products. An entry serves
// whichever NVRTC made it, so they must agree. This holds the source's arithmetic and the order of its pairs; what a
// GPU's instruction does, no test here can tell.
#include <gtest/gtest.h>

#include "tests/compile/device_on_host/decoder.h"
#include "tools/verification/number_formats.h"

namespace {

using decoder::Decoded;

// Each code in each place of a word.
unsigned word_of(unsigned first) {
  unsigned word = 0;
  for (unsigned i = 0; i < 8; ++i) word |= ((first + 3 * i) & 15) << 4 * i;
  return word;
}

TEST(Decoders, GiveTheSameBitsForEveryCodeAndScale) {
  for (unsigned first = 0; first < 16; ++first) {
    const unsigned codes = word_of(first);
    for (unsigned scale = 0; scale < 256; ++scale) {
      const Decoded integers = decoder::by_integers(codes, scale), conversion = decoder::by_conversion(codes, scale);
      ASSERT_EQ(integers.weights, conversion.weights) << std::hex << codes << " " << scale;
      ASSERT_EQ(integers.has_nan, conversion.has_nan);
      ASSERT_EQ(conversion.has_nan, (scale & 0x7f) == 0x7f);
      if (conversion.has_nan) continue;
      for (unsigned i = 0; i < 8; ++i) {
        const unsigned code = codes >> (4 * (i / 2 + i % 2 * 4)) & 15;  // pairs are {i, i + 4}
        const double weight = gemvjit::reference::e2m1_value(code) * gemvjit::reference::e4m3_value(scale) / 128;
        ASSERT_EQ(conversion.weights[i], gemvjit::reference::bf16_bits(weight)) << std::hex << codes << " " << scale;
      }
    }
  }
}

// Negative control: nibbles in the other order, another scale, and codes of one decoder with scales of the other would
// be seen.
TEST(Decoders, ADifferenceWouldBeSeen) {
  const unsigned codes = word_of(1), swapped = ((codes & 0x0f0f0f0fu) << 4) | ((codes >> 4) & 0x0f0f0f0fu);
  const Decoded right = decoder::by_integers(codes, 0x38);
  EXPECT_NE(right.weights, decoder::by_conversion(swapped, 0x38).weights);
  EXPECT_NE(right.weights, decoder::by_conversion(codes, 0x39).weights);
  EXPECT_NE(right.pairs, decoder::by_conversion(codes, 0x38).pairs) << "they differ by 2^126, and so must the scales";
}

}  // namespace
