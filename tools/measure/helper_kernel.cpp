#include "tools/measure/helper_kernel.h"

#include <fmt/format.h>

#include "embedded/embedded_measure_sources.h"
#include "src/catalog/arch.h"
#include "src/compile/nvrtc_compiler.h"
#include "src/compile/options.h"
#include "src/cuda/nvrtc_api.h"

namespace gemvjit::tools {

Result<std::unique_ptr<HelperKernel>> HelperKernel::compile(const GpuHarness& gpu, const std::string& file,
                                                            const std::string& config) {
  GEMVJIT_TRY_ASSIGN(auto nvrtc, cuda::load_nvrtc(cuda::nvrtc_search_from_environment(), gpu.sm(), "compile " + file));
  const auto compiler = make_nvrtc_compiler(nvrtc);
  Arch arch{gpu.sm(), 0};
  for (const Arch& target : targets_for_device(gpu.sm() / 10, gpu.sm() % 10)) {
    if (!compiler->supports(target)) continue;
    arch = target;
    break;
  }
  Recipe recipe;
  recipe.key.arch = arch;
  recipe.entry_name = file.substr(0, file.find('.'));
  for (const EmbeddedFile& source : embedded_measure_sources()) {
    if (source.name == file) recipe.sources.push_back({file, std::string(source.text)});
  }
  if (recipe.sources.empty()) return Status(StatusCode::internal_error, file + " is not embedded");
  recipe.sources.push_back({"kernel_config.h", config});
  recipe.options = nvrtc_options(arch);
  GEMVJIT_TRY_ASSIGN(const Cubin cubin, compiler->compile(recipe));
  std::unique_ptr<HelperKernel> made(new HelperKernel(gpu));
  made->name_ = recipe.entry_name;
  const GpuApi& api = gpu.api();
  GEMVJIT_TRY(
      gpu.check(api.cuLibraryLoadData(&made->library_, cubin.bytes.data(), nullptr, nullptr, 0, nullptr, nullptr, 0),
                "loading " + made->name_));
  GEMVJIT_TRY(
      gpu.check(api.cuLibraryGetKernel(&made->kernel_, made->library_, made->name_.c_str()), "finding " + made->name_));
  CUfunction function = nullptr;
  GEMVJIT_TRY(gpu.check(api.cuKernelGetFunction(&function, made->kernel_), "resolving " + made->name_));
  return made;
}

HelperKernel::~HelperKernel() {
  if (library_ != nullptr) (void)gpu_.api().cuLibraryUnload(library_);
}

Status HelperKernel::launch(CUstream stream, unsigned grid_x, unsigned block_x, bool pdl, void** arguments) const {
  CUlaunchAttribute attribute{};
  attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
  attribute.value.programmaticStreamSerializationAllowed = 1;
  CUlaunchConfig config{};
  config.gridDimX = grid_x;
  config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
  config.blockDimX = block_x;
  config.hStream = stream;
  config.attrs = &attribute;
  config.numAttrs = pdl ? 1 : 0;
  return gpu_.check(gpu_.api().cuLaunchKernelEx(&config, reinterpret_cast<CUfunction>(kernel_), arguments, nullptr),
                    "launching " + name_);
}

}  // namespace gemvjit::tools
