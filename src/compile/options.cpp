#include "src/compile/options.h"

#include <fmt/format.h>

namespace gemvjit {

std::vector<std::string> nvrtc_options(const Arch& arch) {
  return {
      // Always explicit and always a real target: a cubin comes out, never PTX for a driver to compile.
      fmt::format("--gpu-architecture={}", arch.text()),
      "--std=c++17",
      // The shared headers are plain constexpr C++.
      "--device-as-default-execution-space",
      // A quoted include may only come from the sources that are passed in.
      "--no-source-include",
      // NVRTC 12.9 and newer keep results under the home directory; there is to be one cache only, and it is ours.
      "--no-cache",
      // The assembler's report of registers, spills and shared memory.
      "--ptxas-options=-v",
  };
}

}  // namespace gemvjit
