#include "src/cuda/library.h"

#include <fmt/format.h>

#include <map>
#include <mutex>
#include <tuple>

#include "src/base/sha256.h"

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

struct Library::Shared {
  std::shared_ptr<const DriverApi> driver;  // kept, so that no other table gets its address
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  std::size_t users = 0;
};

namespace {

// What is loaded in this process, by the driver's table, the bytes' digest and the kernel's name. Held only while
// kernels are loaded or given back, never by a launch.
using LoadedKey = std::tuple<const DriverApi*, Digest, std::string>;
std::mutex loaded_mutex;

template <typename Shared>
std::map<LoadedKey, std::shared_ptr<Shared>>& loaded_libraries() {
  static auto* const libraries = new std::map<LoadedKey, std::shared_ptr<Shared>>;  // outlives every static
  return *libraries;
}

}  // namespace

Result<Library> Library::load(std::shared_ptr<const DriverApi> driver, const Bytes& bytes,
                              const std::string& entry_name, CUresult* result) {
  // The driver reads an ELF's own sizes; an empty buffer would have it read past the end.
  if (bytes.empty()) return Status(StatusCode::invalid_argument, "no bytes to load for kernel " + entry_name);
  const LoadedKey key{driver.get(), Sha256::of(bytes.data(), bytes.size()), entry_name};
  const std::lock_guard lock(loaded_mutex);
  Library library;
  auto& libraries = loaded_libraries<Shared>();
  if (const auto found = libraries.find(key); found != libraries.end()) {
    library.shared_ = found->second;
    ++library.shared_->users;
    note(result, CUDA_SUCCESS);
    return library;
  }
  auto loaded = std::make_shared<Shared>();
  const CaptureBystander bystander(*driver);
  // No options: the driver copies the bytes, and loads code into a context when a function is resolved there.
  const CUresult load =
      driver->cuLibraryLoadData(&loaded->library, bytes.data(), nullptr, nullptr, 0, nullptr, nullptr, 0);
  note(result, load);
  GEMVJIT_TRY(
      cuda_status(*driver, load, fmt::format("cuLibraryLoadData of {} bytes for kernel {}", bytes.size(), entry_name)));
  const CUresult found = driver->cuLibraryGetKernel(&loaded->kernel, loaded->library, entry_name.c_str());
  note(result, found);
  if (found != CUDA_SUCCESS) {
    driver->cuLibraryUnload(loaded->library);
    return cuda_status(*driver, found, fmt::format("cuLibraryGetKernel of {}", entry_name));
  }
  loaded->driver = std::move(driver);
  loaded->users = 1;
  libraries.emplace(key, loaded);
  library.shared_ = std::move(loaded);
  return library;
}

CUkernel Library::kernel() const { return shared_ == nullptr ? nullptr : shared_->kernel; }

Status Library::prepare(CUdevice device, unsigned smem_bytes, bool nonportable_cluster, CUresult* result) const {
  if (shared_ == nullptr) return {StatusCode::internal_error, "Library::prepare without a loaded kernel"};
  const DriverApi& driver = *shared_->driver;
  const CaptureBystander bystander(driver);
  const auto set = [&](CUfunction_attribute attribute, int value, const char* name) {
    const CUresult set_result = driver.cuKernelSetAttribute(attribute, value, shared_->kernel, device);
    note(result, set_result);
    return cuda_status(driver, set_result,
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
  const CUresult resolved = driver.cuKernelGetFunction(&function, shared_->kernel);
  note(result, resolved);
  return cuda_status(driver, resolved, "cuKernelGetFunction");
}

void Library::unload() {
  if (shared_ == nullptr) return;
  const std::lock_guard lock(loaded_mutex);
  const std::shared_ptr<Shared> shared = std::move(shared_);
  shared_ = nullptr;
  if (--shared->users != 0) return;
  const CaptureBystander bystander(*shared->driver);
  shared->driver->cuLibraryUnload(shared->library);
  std::erase_if(loaded_libraries<Shared>(), [&](const auto& entry) { return entry.second == shared; });
}

CaptureBystander::CaptureBystander(const DriverApi& driver)
    : driver_(driver), exchanged_(driver.cuThreadExchangeStreamCaptureMode(&mode_) == CUDA_SUCCESS) {}

CaptureBystander::~CaptureBystander() {
  if (exchanged_) driver_.cuThreadExchangeStreamCaptureMode(&mode_);
}

ContextGuard::ContextGuard(const DriverApi& driver, CUcontext context)
    : driver_(driver), status_(cuda_status(driver, driver.cuCtxPushCurrent(context), "cuCtxPushCurrent")) {}

ContextGuard::~ContextGuard() {
  CUcontext popped = nullptr;
  if (status_.is_ok()) driver_.cuCtxPopCurrent(&popped);
}

}  // namespace gemvjit::cuda
