// The files that may be an NVRTC, in the order in which they are tried. Nothing is opened here.
#pragma once

#include <string>
#include <vector>

#include "src/cuda/nvrtc_api.h"

namespace gemvjit::cuda {

struct NvrtcCandidate {
  std::string file;     // a path, or a bare name for the loader to find; or, with a problem, the place looked at
  std::string origin;   // "GEMVJIT_NVRTC", "VIRTUAL_ENV", for messages
  std::string problem;  // not empty: there is nothing to open, and this is why
};

// All candidates, each file once (by its real path, at its first place). A place that does not exist gives none, except
// for GEMVJIT_NVRTC, which then gives one with a problem. Threads: any.
std::vector<NvrtcCandidate> nvrtc_candidates(const NvrtcSearch& search);

// Whether a file's name is that of an NVRTC: "libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12.9.86". Not its builtins,
// not the .alt variant.
bool is_nvrtc_name(const std::string& name);

}  // namespace gemvjit::cuda
