// DriverApi: the CUDA driver's functions, from libcuda.so.1 opened on first use. Nothing here links libcuda. Tests fill
// the table with functions of their own that record what they are called with.
#pragma once

#include <cuda.h>

#include <memory>
#include <string>
#include <vector>

#include "src/base/status.h"

namespace gemvjit::cuda {

struct DriverApi {
#define X(name, exported) decltype(&::name) name = nullptr;
#include "src/cuda/driver_symbols.inc"
#undef X
  std::string path;  // of the library file; "recording" or the like in tests
};

// Opens libcuda once a process (GEMVJIT_LIBCUDA names another file; then only that one is tried) and calls cuInit.
// no_driver names the files tried, what it was needed for (`purpose`, as in "needed to <launch kernels>"), and cuInit's
// own error. Threads: any. A success is kept for the process; after a failure the next call tries again.
Result<std::shared_ptr<const DriverApi>> load_driver(const std::string& purpose);

// The two steps of it: the files to try, in order, and a table from the first of them that opens, has every function
// and passes cuInit. A file once opened stays open.
std::vector<std::string> libcuda_files_from_environment();
Result<std::shared_ptr<const DriverApi>> open_driver(const std::vector<std::string>& files, const std::string& purpose);

// What CUDA_ERROR_NOT_INITIALIZED means after cuInit was called, or from it.
inline constexpr const char* fork_hint =
    "CUDA does not work in a process that was forked after its parent had started CUDA: start processes by spawn or "
    "exec, or make a context without a device, which can fill a cache";

// The driver's name and text of an error, with what was being done: cuda_error "cuLibraryLoadData: CUDA_ERROR_... ".
Status cuda_status(const DriverApi& driver, CUresult result, const std::string& doing);

}  // namespace gemvjit::cuda
