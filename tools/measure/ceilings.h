// The read ceilings, compiled on the spot and timed in the same chain as the kernels.
#pragma once

#include <cstdint>
#include <memory>

#include "src/base/status.h"
#include "tools/measure/helper_kernel.h"

namespace gemvjit::tools {

enum class Ceiling { plain = 0, pdl = 1, pdl_x_out = 2 };

class CeilingKernels {
 public:
  // Compiles the three for the device; needs NVRTC.
  static Result<std::unique_ptr<CeilingKernels>> compile(const GpuHarness& gpu);

  // Put one read of `bytes` (a multiple of 16) at `data` into the stream.
  Status launch(Ceiling which, CUstream stream, CUdeviceptr data, std::uint64_t bytes, CUdeviceptr x,
                std::uint64_t x_bytes, CUdeviceptr out, std::uint64_t out_bytes) const;

 private:
  CeilingKernels() = default;
  std::unique_ptr<HelperKernel> kernels_[3];
};

}  // namespace gemvjit::tools
