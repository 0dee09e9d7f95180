// NvrtcApi: NVRTC's functions, from a library opened on first use. Nothing here links libnvrtc.
#pragma once

#include <nvrtc.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "src/base/status.h"

namespace gemvjit::cuda {

// What supports() has learned by trying, one for each loaded library.
struct NvrtcProbes;

struct NvrtcApi {
#define X(name) decltype(&::name) name = nullptr;
#include "src/cuda/nvrtc_symbols.inc"
#undef X
  // nvrtcSetFlowCallback, which the headers have from 12.8 on; null in a library without it.
  nvrtcResult (*set_flow_callback)(nvrtcProgram, int (*)(void*, void*), void*) = nullptr;
  std::string path;  // of the library file
  int major = 0, minor = 0;
  std::string build;               // "13.0.88" where the file's real name tells it, else ""
  std::vector<int> supported_sms;  // nvrtcGetSupportedArchs: 90 for sm_90

  NvrtcApi();
  // Whether this NVRTC compiles for sm with the suffix (0, 'a', 'f'): the number must be listed; that a suffix exists
  // is known only by trying, so this compiles a one-line kernel once per target and remembers. Threads: any.
  bool supports(int sm, char suffix) const;

 private:
  std::shared_ptr<NvrtcProbes> probes_;
};

// Where to look, in order (see docs/configuration.md): GEMVJIT_NVRTC, already loaded in the process, pip wheels beside
// this library or under VIRTUAL_ENV or CONDA_PREFIX, the loader's own path, CUDA_HOME, /usr/local/cuda*.
// GEMVJIT_NVRTC (a file, or a folder that holds libnvrtc.so*), if set, is the only place: who names one wants that one.
struct NvrtcSearch {
  std::string gemvjit_nvrtc, virtual_env, conda_prefix, cuda_home;
  std::string library_directory;               // the folder of libgemvjit.so or of the executable
  std::string toolkits_parent = "/usr/local";  // the folder that holds cuda, cuda-13.0 and so on
};
NvrtcSearch nvrtc_search_from_environment();

inline constexpr std::pair<int, int> oldest_nvrtc{12,
                                                  9};  // src/catalog/arch.h says the same; runtime holds them together

// The first NVRTC of version 12.9 or newer in the search order that lists `sm` (0: any) and whose libnvrtc-builtins
// works. no_compiler names every file tried, with its reason, and what it was needed for (`purpose`, as in "needed to
// <compile kernels>"). A file that was loaded stays loaded for the process, and all callers share its one table.
// Threads: any; loads happen one at a time.
Result<std::shared_ptr<const NvrtcApi>> load_nvrtc(const NvrtcSearch& search, int sm, const std::string& purpose);

}  // namespace gemvjit::cuda
