#include "tools/measure/cublaslt_search.h"

#include <unistd.h>

#include <algorithm>

#include "src/cuda/nvrtc_search.h"

namespace gemvjit::tools {
namespace {

constexpr const char* kNames[] = {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"};

}  // namespace

std::vector<std::string> cublaslt_candidates(const std::string& named, const cuda::NvrtcSearch& search) {
  if (!named.empty()) return {named};
  std::vector<std::string> files(std::begin(kNames), std::end(kNames));
  for (const cuda::NvrtcCandidate& candidate : cuda::nvrtc_candidates(search)) {
    const std::size_t slash = candidate.file.find_last_of('/');
    if (slash == std::string::npos || !candidate.problem.empty()) continue;
    const std::string folder = candidate.file.substr(0, slash);
    for (const std::string& place : {folder, folder + "/../../cublas/lib"}) {
      for (const char* name : kNames) {
        const std::string file = place + "/" + name;
        if (::access(file.c_str(), R_OK) != 0) continue;
        if (std::find(files.begin(), files.end(), file) == files.end()) files.push_back(file);
      }
    }
  }
  return files;
}

}  // namespace gemvjit::tools
