// The decoder as NVRTC 13.2 and newer see it for sm_100a. Its one PTX statement is replaced by what the PTX ISA says
// of cvt.rn.bf16x2.e2m1x2; the namespace by another, so that both decoders are in one program.
#include "tools/verification/number_formats.h"

namespace {

unsigned bf16_of_code(unsigned code) { return gemvjit::reference::bf16_bits(gemvjit::reference::e2m1_value(code)); }

// The lower four bits of a byte go to the lower half.
void convert_on_host(unsigned codes, unsigned (&neighbours)[4]) {
  for (unsigned i = 0; i < 4; ++i) {
    neighbours[i] = bf16_of_code(codes >> 8 * i) | bf16_of_code(codes >> (8 * i + 4)) << 16;
  }
}

}  // namespace

// NOLINTBEGIN: names of the compiler's
#define __CUDA_ARCH_SPECIFIC__ 1000
#define __CUDACC_VER_MAJOR__ 13
#define __CUDACC_VER_MINOR__ 2
#define gemvjit gemvjit_converting
#define asm(...) convert_on_host(codes, neighbours)
// NOLINTEND
#define DECODER_FUNCTION by_conversion
#define DECODER_CONVERTS 1
#include "tests/compile/device_on_host/decoder_by_integers.cpp"
