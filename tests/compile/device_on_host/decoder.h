// kernels/device/nvfp4_decode.cuh as two compilers see it, run on the host.
#pragma once

#include <array>

namespace decoder {

struct Decoded {
  std::array<unsigned, 8> weights{};  // BF16 bits of 2^-7 of the weights, in the order of the kernel's pairs
  std::array<unsigned, 4> pairs{};    // of codes alone
  bool has_nan = false;
  bool operator==(const Decoded&) const = default;
};

// Eight codes and two scale bytes, of which the low one is used.
Decoded by_integers(unsigned codes, unsigned scales);
Decoded by_conversion(unsigned codes, unsigned scales);

}  // namespace decoder
