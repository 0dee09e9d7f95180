#include "tools/measure/ceilings.h"

#include <fmt/format.h>

namespace gemvjit::tools {

Result<std::unique_ptr<CeilingKernels>> CeilingKernels::compile(const GpuHarness& gpu) {
  std::unique_ptr<CeilingKernels> kernels(new CeilingKernels);
  for (int mode = 0; mode < 3; ++mode) {
    GEMVJIT_TRY_ASSIGN(
        kernels->kernels_[mode],
        HelperKernel::compile(gpu, "read_ceiling.cu", fmt::format("inline constexpr int kMode = {};\n", mode)));
  }
  return kernels;
}

Status CeilingKernels::launch(Ceiling which, CUstream stream, CUdeviceptr data, std::uint64_t bytes, CUdeviceptr x,
                              std::uint64_t x_bytes, CUdeviceptr out, std::uint64_t out_bytes) const {
  std::uint64_t vectors = bytes / 16;
  auto x_words = static_cast<unsigned>(x_bytes / 4), out_words = static_cast<unsigned>(out_bytes / 4);
  void* arguments[] = {&data, &vectors, &x, &x_words, &out, &out_words};
  return kernels_[static_cast<int>(which)]->launch(stream, static_cast<unsigned>((vectors + 4095) / 4096), 512,
                                                   which != Ceiling::plain, arguments);
}

}  // namespace gemvjit::tools
