// What libFuzzer calls; the build says which function that is.
#include "tests/fuzz/fuzz_targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return gemvjit::GEMVJIT_FUZZ_FUNCTION(data, size);
}
