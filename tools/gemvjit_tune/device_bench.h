// DeviceBench: one device that checks and times kernels. Everything here belongs to the thread that opened it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "src/cuda/driver_api.h"
#include "src/cuda/library.h"
#include "tools/gemvjit_tune/kernel_source.h"
#include "tools/gemvjit_tune/table_file.h"
#include "tools/measure/alternative.h"
#include "tools/measure/chain.h"
#include "tools/measure/cold_data.h"
#include "tools/measure/number_check.h"

namespace gemvjit::tools {

// A kernel on the device with a captured chain for each number of tokens. It must end before the arena's next
// prepare().
struct ReadyKernel {
  ~ReadyKernel() {
    chains.clear();  // graphs of it first
    library.unload();
  }
  ReadyKernel() = default;
  ReadyKernel(const ReadyKernel&) = delete;
  ReadyKernel& operator=(const ReadyKernel&) = delete;
  cuda::Library library;
  std::vector<Chain> chains;
};

class DeviceBench {
 public:
  // no_driver where there is no such device. `blocks` must outlive it. `kernel_seconds`: a chain that takes longer
  // hangs.
  static Result<std::unique_ptr<DeviceBench>> open(int ordinal, const HostBlocks& blocks, double kernel_seconds);

  const GpuHarness& gpu() const { return *gpu_; }
  int sm_count() const { return sm_count_; }
  // What is known of device and driver; the rest is the caller's to fill in.
  Provenance provenance() const;

  // Buffers for a case, at its largest number of tokens. Invalidates chains captured before.
  Status begin_case(const TuneCase& c);
  // Loads the kernel, captures it, runs every chain once and checks what it computed against `references` (one for each
  // of the case's tokens). Not ok: the kernel is at fault or the device is gone; alive() tells.
  Result<std::unique_ptr<ReadyKernel>> make_ready(const Prepared& prepared, std::vector<SampledReference>& references);
  // Appends `replays` samples to each of samples_us.
  Status sample(const ReadyKernel& kernel, int replays, std::vector<std::vector<double>>& samples_us);
  // Whether the device still works: after an illegal access nothing does in this process.
  bool alive() const { return !hangs_ && gpu_->synchronize().is_ok(); }
  // A kernel does not end: whatever waits for the device from now on, destructors too, waits for ever.
  bool hangs() const { return hangs_; }

  // The alternative's time for a case; invalidates the buffers of begin_case(). Null alternative: see open_alternative.
  Status open_alternative(const std::string& cublaslt_path);
  const Alternative* alternative() const { return alternative_.get(); }
  AlternativeSample time_alternative(const TuneCase& c, int replays);

 private:
  DeviceBench(std::unique_ptr<GpuHarness> gpu, GpuStream stream, const HostBlocks& blocks)
      : gpu_(std::move(gpu)), stream_(std::move(stream)), blocks_(blocks), arena_(*gpu_, blocks) {}

  std::unique_ptr<GpuHarness> gpu_;
  std::shared_ptr<const cuda::DriverApi> driver_;
  GpuStream stream_;
  const HostBlocks& blocks_;
  ColdArena arena_;
  std::unique_ptr<Alternative> alternative_;
  TuneCase case_;
  ColdBuffers buffers_;
  double kernel_seconds_ = 5;
  bool hangs_ = false;
  int sm_count_ = 0, sm_clock_mhz_ = 0, memory_clock_mhz_ = 0;
};

}  // namespace gemvjit::tools
