// Device: the GPU of a context, and what its process holds of it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cache/kernel_key.h"
#include "src/cuda/driver_api.h"

namespace gemvjit {

struct Device {
  std::shared_ptr<const cuda::DriverApi> driver;
  CUdevice device = 0;
  CUcontext primary = nullptr;  // retained
  std::string name;
  std::vector<Arch> targets;  // best first; never empty
};

}  // namespace gemvjit
