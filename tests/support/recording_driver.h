// A CUDA driver for tests: a DriverApi table whose functions write down what they are called with and answer as the
// devices that the test describes. Nothing is executed.
//
// The table holds plain function pointers, so that there is one current RecordingState a process: the one that
// make_recording_driver() was last called with. Calls without one (it was destroyed) answer CUDA_ERROR_NOT_INITIALIZED.
// Threads: the driver's functions may be called from any thread. Describe devices and errors before, read afterwards.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "src/cuda/driver_api.h"

namespace gemvjit::test {

struct FakeDevice {
  std::string name = "Recording GPU";
  int major = 9, minor = 0;
  int multiprocessors = 132;
  int max_smem_per_block = 232448;               // with the opt-in attribute
  std::map<CUdevice_attribute, int> attributes;  // asked for first, before the fields above; all else answers 0
};

struct RecordedLaunch {
  CUfunction function = nullptr;  // a CUkernel or CUfunction, as it was passed
  unsigned grid[3] = {};
  unsigned block[3] = {};
  unsigned smem_bytes = 0;
  CUstream stream = nullptr;
  CUcontext context = nullptr;  // current in the thread that launched
  std::vector<CUlaunchAttribute> attributes;
  void** argument_pointers = nullptr;                // the array itself; its storage is gone after the launch
  std::vector<std::vector<std::uint8_t>> arguments;  // bytes of each, by RecordingState::argument_sizes

  unsigned cluster_x() const;  // 1 if there is no cluster attribute
  bool has(CUlaunchAttributeID id) const;
  bool pdl() const;  // the attribute is there and allows it
};

struct RecordedKernelAttribute {
  CUkernel kernel = nullptr;
  CUfunction_attribute attribute = CU_FUNC_ATTRIBUTE_MAX;
  int value = 0;
  CUdevice device = 0;
};

struct RecordedFunction {  // of cuKernelGetFunction
  CUkernel kernel = nullptr;
  CUcontext context = nullptr;
};

struct RecordingState {
  RecordingState();
  ~RecordingState();
  RecordingState(const RecordingState&) = delete;
  RecordingState& operator=(const RecordingState&) = delete;

  // What the fake answers.
  std::vector<FakeDevice> devices = {FakeDevice{}};
  int driver_version = 13000;
  std::atomic<bool> capturing{false};  // what cuStreamIsCapturing tells of every stream
  int max_active_clusters = 66;        // what cuOccupancyMaxActiveClusters tells
  // Whether the thread that last exchanged its mode of capturing has it relaxed now.
  std::atomic<bool> capture_mode_relaxed{false};
  std::map<std::string, CUresult> errors;   // by function name, "cuLaunchKernelEx"; such a call is recorded, and fails
  std::vector<std::size_t> argument_sizes;  // if set, launches copy that many arguments of these sizes
  std::function<CUresult(const void* image)> on_load;              // asked by cuLibraryLoadData
  std::function<CUresult(const std::string& name)> on_get_kernel;  // asked by cuLibraryGetKernel
  std::function<CUresult()> on_function;                           // asked by cuKernelGetFunction
  std::function<void()> on_unload;                                 // called by cuLibraryUnload
  std::function<int()> on_occupancy;  // asked by cuOccupancyMaxActiveClusters instead of max_active_clusters
  std::function<void(const RecordedLaunch&)> on_launch;  // called without the lock held

  // What was called. Copies are taken under the lock.
  std::vector<std::string> calls() const;
  std::size_t count(const std::string& function) const;
  std::vector<RecordedLaunch> launches() const;
  std::vector<RecordedKernelAttribute> kernel_attributes() const;
  std::vector<RecordedFunction> functions() const;
  std::vector<std::string> kernel_names() const;  // asked of cuLibraryGetKernel, in order
  std::size_t libraries_loaded() const;           // loads that succeeded, less unloads
  void forget_calls();                            // empties all of the above but the number of loaded libraries

  // The handle of a device's primary context, and what is current in the calling thread (as the engine's own doing).
  CUcontext primary_context(int device) const;
  void set_current_context(CUcontext context);
  CUcontext current_context() const;
  int primary_contexts_retained(int device) const;  // retains less releases

 private:
  friend struct RecordingFunctions;  // the table's functions

  std::uint64_t id_;  // an address may be that of an earlier state
  mutable std::mutex mutex_;
  std::vector<std::string> calls_;
  std::vector<RecordedLaunch> launches_;
  std::vector<RecordedKernelAttribute> kernel_attributes_;
  std::vector<RecordedFunction> functions_;
  std::vector<std::string> kernel_names_;
  std::map<int, int> retained_;
  std::size_t libraries_loaded_ = 0;
  std::uintptr_t next_handle_ = 0x1000;
};

// The table, its path "recording". Makes `state` the current one, which must outlive the calls made through the table.
std::shared_ptr<cuda::DriverApi> make_recording_driver(RecordingState& state);

}  // namespace gemvjit::test
