#include "src/catalog/compile_cost.h"

namespace gemvjit {

// Fitted to the medians of 140 kernels of a Llama 70B (sm_90a, NVRTC 13.0, two jobs on a busy machine with two cores):
// what counts is how many MMA tiles a warp's unrolled loop has, nt times row_tiles.
//   nvfp4_gemv  1: 706  2: 787  4: 790 to 872  8: 1008 to 1021  16: 1333 ms      bf16_gemv  1: 399  8: 602  16: 770 ms
double compile_cost_ms(const KernelSpec& spec) {
  const double tiles = static_cast<double>(spec.key.nt) * spec.tile.row_tiles;
  switch (spec.family) {
    case Family::nvfp4_gemv:
      return 690 + 40 * tiles;
    case Family::bf16_gemv:
      return 400 + 23 * tiles;
    case Family::dequantize_rows:
      return 180;
  }
  return 0;
}

double compile_cost_ms(const KernelKey& key) {
  const auto spec = describe_key(key);
  return spec ? compile_cost_ms(*spec) : 0;
}

}  // namespace gemvjit
