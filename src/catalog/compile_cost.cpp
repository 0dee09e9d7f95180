#include "src/catalog/compile_cost.h"

#include <algorithm>

namespace gemvjit {

double compile_cost_ms(const KernelSpec& spec) {
  if (spec.family == Family::dequantize_rows) return 300;
  return 500 + 100.0 * spec.key.nt * spec.tile.row_tiles;
}

double compile_cost_ms(const KernelKey& key) {
  const auto spec = describe_key(key);
  return spec ? compile_cost_ms(*spec) : 0;
}

}  // namespace gemvjit
