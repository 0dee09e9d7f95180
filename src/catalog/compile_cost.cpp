#include "src/catalog/compile_cost.h"

namespace gemvjit {

// Fitted to the medians of 140 kernels of a Llama 70B (sm_90a, NVRTC 13.0, two jobs on two cores): what counts is how
// many MMA tiles a warp's unrolled loop has, nt times row_tiles.
//
//   tiles            1    2    4    8   16
//   nvfp4_gemv ms  152  165  187  222  323
//   bf16_gemv ms    88   97  109  140  184
double compile_cost_ms(const KernelSpec& spec) {
  const double tiles = static_cast<double>(spec.key.nt) * spec.tile.row_tiles;
  switch (spec.family) {
    case Family::nvfp4_gemv:
      return 145 + 11 * tiles;
    case Family::bf16_gemv:
      return 85 + 6.2 * tiles;
    case Family::dequantize_rows:
      return 44;
    case Family::swizzle_blockscale:
      return 40;
  }
  return 0;
}

double compile_cost_ms(const KernelKey& key) {
  const auto spec = describe_key(key);
  return spec ? compile_cost_ms(*spec) : 0;
}

}  // namespace gemvjit
