// HelperKernel: a small kernel of the tools' own (a .cu of this folder), compiled for the device with our NVRTC.
#pragma once

#include <memory>
#include <string>

#include "src/base/status.h"
#include "tools/verification/gpu_harness.h"

namespace gemvjit::tools {

class HelperKernel {
 public:
  // `file` is "read_ceiling.cu" or "silu_mul.cu", its kernel has the file's name; `config` is the text of the header
  // kernel_config.h that it includes. no_compiler or compile_failed where it cannot be built.
  static Result<std::unique_ptr<HelperKernel>> compile(const GpuHarness& gpu, const std::string& file,
                                                       const std::string& config);
  ~HelperKernel();
  HelperKernel(const HelperKernel&) = delete;
  HelperKernel& operator=(const HelperKernel&) = delete;

  // `arguments` as the driver wants them. With `pdl` a launch may begin before its predecessor has ended.
  Status launch(CUstream stream, unsigned grid_x, unsigned block_x, bool pdl, void** arguments) const;

 private:
  explicit HelperKernel(const GpuHarness& gpu) : gpu_(gpu) {}
  const GpuHarness& gpu_;
  CUlibrary library_ = nullptr;
  CUkernel kernel_ = nullptr;
  std::string name_;
};

}  // namespace gemvjit::tools
