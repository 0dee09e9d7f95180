#include "tools/gemvjit_bench/ceilings.h"

#include <fmt/format.h>

#include "embedded/embedded_bench_sources.h"
#include "src/catalog/arch.h"
#include "src/compile/nvrtc_compiler.h"
#include "src/compile/options.h"
#include "src/cuda/nvrtc_api.h"

namespace gemvjit::tools {

Result<std::unique_ptr<CeilingKernels>> CeilingKernels::compile(const GpuHarness& gpu) {
  GEMVJIT_TRY_ASSIGN(
      auto nvrtc, cuda::load_nvrtc(cuda::nvrtc_search_from_environment(), gpu.sm(), "compile the ceilings' kernels"));
  const auto compiler = make_nvrtc_compiler(nvrtc);
  Arch arch{gpu.sm(), 0};
  for (const Arch& target : targets_for_device(gpu.sm() / 10, gpu.sm() % 10)) {
    if (!compiler->supports(target)) continue;
    arch = target;
    break;
  }
  std::unique_ptr<CeilingKernels> kernels(new CeilingKernels(gpu));
  for (int mode = 0; mode < 3; ++mode) {
    Recipe recipe;
    recipe.key.arch = arch;
    recipe.entry_name = "read_ceiling";
    recipe.sources = {{"read_ceiling.cu", std::string(embedded_bench_sources()[0].text)},
                      {"kernel_config.h", fmt::format("inline constexpr int kMode = {};\n", mode)}};
    recipe.options = nvrtc_options(arch);
    GEMVJIT_TRY_ASSIGN(const Cubin cubin, compiler->compile(recipe));
    const GpuApi& api = gpu.api();
    GEMVJIT_TRY(gpu.check(
        api.cuLibraryLoadData(&kernels->libraries_[mode], cubin.bytes.data(), nullptr, nullptr, 0, nullptr, nullptr, 0),
        "loading a ceiling's kernel"));
    GEMVJIT_TRY(gpu.check(api.cuLibraryGetKernel(&kernels->kernels_[mode], kernels->libraries_[mode], "read_ceiling"),
                          "finding a ceiling's kernel"));
    CUfunction function = nullptr;
    GEMVJIT_TRY(gpu.check(api.cuKernelGetFunction(&function, kernels->kernels_[mode]), "resolving a ceiling's kernel"));
  }
  return kernels;
}

CeilingKernels::~CeilingKernels() {
  for (CUlibrary library : libraries_) {
    if (library != nullptr) (void)gpu_.api().cuLibraryUnload(library);
  }
}

Status CeilingKernels::launch(Ceiling which, CUstream stream, CUdeviceptr data, std::uint64_t bytes, CUdeviceptr x,
                              std::uint64_t x_bytes, CUdeviceptr out, std::uint64_t out_bytes) const {
  std::uint64_t vectors = bytes / 16;
  auto x_words = static_cast<unsigned>(x_bytes / 4), out_words = static_cast<unsigned>(out_bytes / 4);
  void* arguments[] = {&data, &vectors, &x, &x_words, &out, &out_words};
  CUlaunchAttribute pdl{};
  pdl.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
  pdl.value.programmaticStreamSerializationAllowed = 1;
  CUlaunchConfig config{};
  config.gridDimX = static_cast<unsigned>((vectors + 4095) / 4096);
  config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
  config.blockDimX = 512;
  config.hStream = stream;
  config.attrs = &pdl;
  config.numAttrs = which == Ceiling::plain ? 0 : 1;
  return gpu_.check(gpu_.api().cuLaunchKernelEx(
                        &config, reinterpret_cast<CUfunction>(kernels_[static_cast<int>(which)]), arguments, nullptr),
                    "launching a ceiling's kernel");
}

}  // namespace gemvjit::tools
