// The files that may be a libcublasLt, in the order in which they are tried. Nothing is opened here.
#pragma once

#include <string>
#include <vector>

#include "src/cuda/nvrtc_api.h"

namespace gemvjit::tools {

// `named` alone if it is not empty. Else the loader's names (13, 12, unversioned), then the folders in which NVRTC is
// looked for: a toolkit and a CUDA 13 wheel keep both libraries in one folder, CUDA 12 wheels have a folder each
// (nvidia/cuda_nvrtc/lib and nvidia/cublas/lib). Paths that are not there are left out.
std::vector<std::string> cublaslt_candidates(const std::string& named, const cuda::NvrtcSearch& search);

}  // namespace gemvjit::tools
