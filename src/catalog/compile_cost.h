// What compiling a kernel costs, so that the dearest are begun first and no thread is left with one at the end.
#pragma once

#include "src/catalog/catalog.h"

namespace gemvjit {

// Milliseconds of one core, modelled: good for an order, not for a promise. compile_cost.cpp says what it was fitted
// to.
double compile_cost_ms(const KernelSpec& spec);
// 0 for a key that this version does not make.
double compile_cost_ms(const KernelKey& key);

}  // namespace gemvjit
