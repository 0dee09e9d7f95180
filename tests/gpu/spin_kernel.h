// A kernel that runs until it is told to end, and what tests need of the driver besides the harness.
#pragma once

#include <cuda.h>
#include <dlfcn.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <thread>

#include "tools/verification/gpu_harness.h"

namespace gemvjit::test {

// A driver function by its exported name; nullptr if there is none.
template <typename Function>
Function driver_function(const char* exported) {
  void* const library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  return library == nullptr ? nullptr : reinterpret_cast<Function>(::dlsym(library, exported));
}

inline constexpr char spin_ptx[] = R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry spin(.param .u64 flag) {
  .reg .b64 %rd<2>;
  .reg .b32 %r<2>;
  .reg .pred %p<2>;
  ld.param.u64 %rd1, [flag];
again:
  ld.volatile.global.u32 %r1, [%rd1];
  setp.eq.u32 %p1, %r1, 0;
  @%p1 bra again;
  ret;
}
.visible .entry stop() {
  trap;
}
)";

// Loads spin_ptx; one launch of `name` in `stream`, with a pointer or without.
inline CUresult launch_ptx(const GpuApi& api, CUlibrary library, const char* name, CUstream stream,
                           std::uint32_t* flag) {
  CUkernel kernel = nullptr;
  if (const CUresult result = api.cuLibraryGetKernel(&kernel, library, name); result != CUDA_SUCCESS) return result;
  CUlaunchConfig config{};
  config.gridDimX = config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = config.blockDimY = config.blockDimZ = 1;
  config.hStream = stream;
  void* arguments[] = {&flag};
  return api.cuLaunchKernelEx(&config, reinterpret_cast<CUfunction>(kernel), arguments, nullptr);
}

// Runs on a stream of its own from its creation until end(), or for ten seconds, so that a test that waits for it ends.
class SpinningKernel {
 public:
  static std::unique_ptr<SpinningKernel> start(const GpuHarness& gpu) {
    std::unique_ptr<SpinningKernel> spinning(new SpinningKernel(gpu));
    return spinning->begin() ? std::move(spinning) : nullptr;
  }
  ~SpinningKernel() { end(); }

  bool is_running() const { return gpu_.api().cuStreamQuery(stream_->get()) == CUDA_ERROR_NOT_READY; }
  void end() {
    if (flag_ == nullptr || ended_.exchange(true)) return;
    __atomic_store_n(flag_, 1u, __ATOMIC_SEQ_CST);
    if (stream_) (void)stream_->synchronize();
  }

 private:
  explicit SpinningKernel(const GpuHarness& gpu) : gpu_(gpu) {}
  bool begin() {
    const auto allocate = driver_function<CUresult (*)(void**, std::size_t)>("cuMemAllocHost_v2");
    void* memory = nullptr;
    if (allocate == nullptr || allocate(&memory, sizeof *flag_) != CUDA_SUCCESS) return false;
    flag_ = static_cast<std::uint32_t*>(memory);  // kept until the process ends, as the library is
    *flag_ = 0;
    auto stream = GpuStream::create(gpu_);
    CUlibrary library = nullptr;
    if (!stream || gpu_.api().cuLibraryLoadData(&library, spin_ptx, nullptr, nullptr, 0, nullptr, nullptr, 0) != 0) {
      return false;
    }
    stream_.emplace(std::move(*stream));
    if (launch_ptx(gpu_.api(), library, "spin", stream_->get(), flag_) != CUDA_SUCCESS) return false;
    watchdog_ = std::jthread([this](const std::stop_token& stop) {
      for (int i = 0; i < 1000 && !stop.stop_requested(); ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      __atomic_store_n(flag_, 1u, __ATOMIC_SEQ_CST);
    });
    return true;
  }

  const GpuHarness& gpu_;
  std::uint32_t* flag_ = nullptr;
  std::optional<GpuStream> stream_;
  std::atomic<bool> ended_{false};
  std::jthread watchdog_;
};

}  // namespace gemvjit::test
