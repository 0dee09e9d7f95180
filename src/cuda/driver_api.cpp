#include "src/cuda/driver_api.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <mutex>

#include "src/base/process_end.h"

namespace gemvjit::cuda {

namespace {

// dlerror of the last failure in this thread, without the name of the file that it begins with as a rule: the caller
// has told it.
std::string loader_error(const std::string& file) {
  const char* text = dlerror();
  std::string reason = text == nullptr ? "no reason given by the loader" : text;
  if (reason.starts_with(file + ": ")) reason.erase(0, file.size() + 2);
  return reason;
}

// The first exported name that the library lacks, or empty.
std::string fill_table(void* handle, DriverApi& api) {
#define X(name, exported)                                                    \
  api.name = reinterpret_cast<decltype(api.name)>(dlsym(handle, #exported)); \
  if (api.name == nullptr) return #exported;
#include "src/cuda/driver_symbols.inc"
#undef X
  return {};
}

std::string file_of(void* symbol, const std::string& otherwise) {
  Dl_info info{};
  return dladdr(symbol, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : otherwise;
}

Status no_driver(const std::string& purpose, const std::string& tried) {
  return {
      StatusCode::no_driver,
      fmt::format("the CUDA driver is needed to {}, and could not be used: {}. Install the NVIDIA driver, or name its "
                  "libcuda in GEMVJIT_LIBCUDA",
                  purpose, tried)};
}

}  // namespace

std::vector<std::string> libcuda_files_from_environment() {
  const char* named = ::secure_getenv("GEMVJIT_LIBCUDA");
  if (named != nullptr && *named != '\0') return {named};
  return {"libcuda.so.1", "libcuda.so"};
}

Result<std::shared_ptr<const DriverApi>> open_driver(const std::vector<std::string>& files,
                                                     const std::string& purpose) {
  std::string tried;
  for (const std::string& file : files) {
    if (!tried.empty()) tried += "; ";
    // Never closed: the driver starts threads and registers handlers of its own, and does not survive it.
    void* handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      tried += fmt::format("{}: {}", file, loader_error(file));
      continue;
    }
    auto api = std::make_shared<DriverApi>();
    if (const std::string missing = fill_table(handle, *api); !missing.empty()) {
      tried += fmt::format("{}: it lacks {} (a driver of CUDA 12.0 or newer has it)", file, missing);
      continue;
    }
    api->path = file_of(reinterpret_cast<void*>(api->cuInit), file);
    const CUresult result = api->cuInit(0);
    if (const Status status = cuda_status(*api, result, "cuInit"); !status) {
      // Another name would be the same driver: its answer is the reason.
      const bool forked = result == CUDA_ERROR_NOT_INITIALIZED;
      return no_driver(purpose, fmt::format("{}{}: {}{}{}", tried, api->path, status.message(), forked ? "; " : "",
                                            forked ? fork_hint : ""));
    }
    watch_process_end();
    return std::shared_ptr<const DriverApi>(std::move(api));
  }
  return no_driver(purpose, tried);
}

Result<std::shared_ptr<const DriverApi>> load_driver(const std::string& purpose) {
  // Never destroyed: threads may ask while the process ends.
  static std::mutex& mutex = *new std::mutex;
  static auto& loaded = *new std::shared_ptr<const DriverApi>;
  const std::lock_guard lock(mutex);
  if (loaded == nullptr) {
    GEMVJIT_TRY_ASSIGN(loaded, open_driver(libcuda_files_from_environment(), purpose));
  }
  return loaded;
}

Status cuda_status(const DriverApi& driver, CUresult result, const std::string& doing) {
  if (result == CUDA_SUCCESS) return Status::ok();
  const char* name = nullptr;
  const char* text = nullptr;
  if (driver.cuGetErrorName(result, &name) != CUDA_SUCCESS || name == nullptr) name = "unknown CUDA error";
  if (driver.cuGetErrorString(result, &text) != CUDA_SUCCESS || text == nullptr) text = "no text for it in this driver";
  return {StatusCode::cuda_error, fmt::format("{}: {} ({}): {}", doing, name, static_cast<int>(result), text)};
}

}  // namespace gemvjit::cuda
