// Device: the GPU of a context, and what its process holds of it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cache/kernel_key.h"
#include "src/cuda/driver_api.h"

namespace gemvjit {

using CudaContextId = unsigned long long;  // the driver's, never used twice in a process

struct Device {
  std::shared_ptr<const cuda::DriverApi> driver;
  CUdevice device = 0;
  CUcontext primary = nullptr;  // retained
  CudaContextId primary_id = 0;
  std::string name;
  std::vector<Arch> targets;  // best first; never empty

  // The calling thread's, of whatever device; null if there is none.
  CUcontext current_context() const {
    CUcontext current = nullptr;
    return driver->cuCtxGetCurrent(&current) == CUDA_SUCCESS ? current : nullptr;
  }
  // Of a context of any device; null: the current one's. cuda_error where there is none.
  Result<CudaContextId> context_id(CUcontext context) const {
    CudaContextId id = 0;
    const CUresult result = driver->cuCtxGetId(context, &id);
    if (result != CUDA_SUCCESS) return cuda::cuda_status(*driver, result, "cuCtxGetId");
    return id;
  }
};

}  // namespace gemvjit
