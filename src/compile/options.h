// NVRTC's options: part of a recipe's digest.
#pragma once

#include <string>
#include <vector>

#include "cache/kernel_key.h"

namespace gemvjit {

std::vector<std::string> nvrtc_options(const Arch& arch);

}  // namespace gemvjit
