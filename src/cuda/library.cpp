#include "src/cuda/library.h"

#include <fmt/format.h>

#include <utility>

namespace gemvjit::cuda {

namespace {
constexpr unsigned smem_without_opt_in = 48 * 1024;  // what every kernel may use without asking

void note(CUresult* place, CUresult result) {
  if (place != nullptr) *place = result;
}
}  // namespace

bool blames_image(CUresult result) {
  switch (result) {
    case CUDA_ERROR_INVALID_IMAGE:
    case CUDA_ERROR_INVALID_SOURCE:
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
    case CUDA_ERROR_NOT_FOUND:  // the kernel's name in it
    case CUDA_ERROR_INVALID_PTX:
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
    case CUDA_ERROR_JIT_COMPILER_NOT_FOUND:  // PTX, where there is nothing to assemble it
      return true;
    default:
      return false;
  }
}

Library::Library(Library&& other) noexcept
    : driver_(std::move(other.driver_)),
      library_(std::exchange(other.library_, nullptr)),
      kernel_(std::exchange(other.kernel_, nullptr)) {}

Library& Library::operator=(Library&& other) noexcept {
  if (this == &other) return *this;
  driver_ = std::move(other.driver_);
  library_ = std::exchange(other.library_, nullptr);
  kernel_ = std::exchange(other.kernel_, nullptr);
  return *this;
}

Result<Library> Library::load(std::shared_ptr<const DriverApi> driver, const Bytes& bytes,
                              const std::string& entry_name, CUresult* result) {
  // The driver reads an ELF's own sizes; an empty buffer would have it read past the end.
  if (bytes.empty()) return Status(StatusCode::invalid_argument, "no bytes to load for kernel " + entry_name);
  Library loaded;
  // No options: the driver copies the bytes, and loads code into a context when a function is resolved there.
  const CUresult load =
      driver->cuLibraryLoadData(&loaded.library_, bytes.data(), nullptr, nullptr, 0, nullptr, nullptr, 0);
  note(result, load);
  GEMVJIT_TRY(
      cuda_status(*driver, load, fmt::format("cuLibraryLoadData of {} bytes for kernel {}", bytes.size(), entry_name)));
  const CUresult found = driver->cuLibraryGetKernel(&loaded.kernel_, loaded.library_, entry_name.c_str());
  note(result, found);
  GEMVJIT_TRY(cuda_status(*driver, found, fmt::format("cuLibraryGetKernel of {}", entry_name)));
  loaded.driver_ = std::move(driver);
  return loaded;
}

Status Library::prepare(CUdevice device, unsigned smem_bytes, bool nonportable_cluster, CUresult* result) const {
  if (kernel_ == nullptr) return {StatusCode::internal_error, "Library::prepare without a loaded kernel"};
  const auto set = [&](CUfunction_attribute attribute, int value, const char* name) {
    const CUresult set_result = driver_->cuKernelSetAttribute(attribute, value, kernel_, device);
    note(result, set_result);
    return cuda_status(*driver_, set_result,
                       fmt::format("cuKernelSetAttribute {} = {} on device {}", name, value, device));
  };
  if (smem_bytes > smem_without_opt_in) {
    GEMVJIT_TRY(set(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, static_cast<int>(smem_bytes),
                    "MAX_DYNAMIC_SHARED_SIZE_BYTES"));
  }
  if (nonportable_cluster) {
    GEMVJIT_TRY(set(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1, "NON_PORTABLE_CLUSTER_SIZE_ALLOWED"));
  }
  // Resolving loads the code into the current context. Left to the first launch it would wait there for all running
  // kernels, which is a deadlock if one of them waits for this launch.
  CUfunction function = nullptr;
  const CUresult resolved = driver_->cuKernelGetFunction(&function, kernel_);
  note(result, resolved);
  return cuda_status(*driver_, resolved, "cuKernelGetFunction");
}

void Library::unload() {
  if (library_ == nullptr || driver_ == nullptr) return;
  driver_->cuLibraryUnload(library_);
  library_ = nullptr;
  kernel_ = nullptr;
}

ContextGuard::ContextGuard(const DriverApi& driver, CUcontext context)
    : driver_(driver), status_(cuda_status(driver, driver.cuCtxPushCurrent(context), "cuCtxPushCurrent")) {}

ContextGuard::~ContextGuard() {
  CUcontext popped = nullptr;
  if (status_.is_ok()) driver_.cuCtxPopCurrent(&popped);
}

}  // namespace gemvjit::cuda
