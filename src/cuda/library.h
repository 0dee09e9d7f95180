// Library: owns a cubin that the driver has loaded, and its one kernel.
#pragma once

#include <memory>
#include <string>

#include "src/base/files.h"
#include "src/base/process_end.h"
#include "src/cuda/driver_api.h"

namespace gemvjit::cuda {

// Whether a failure speaks about the bytes that were to be loaded, so that other bytes may do better: no image, one for
// another GPU, a kernel that is not in it. Not so: no memory, a context that is gone, an error left by earlier work.
bool blames_image(CUresult result);

// Loaded once a process (cuLibraryLoadData), however many contexts ask for the same bytes; the CUkernel is valid in
// every context. The driver gets it back when the last of them unloads it. Movable. unload() is explicit and never runs
// from a destructor: graphs and work on streams may use the kernel still, so the owner picks the moment. Loading and
// unloading leave captures alone (CaptureBystander). Threads: const functions from any thread; unload() from one, when
// nobody uses the kernel any more.
class Library {
 public:
  Library() = default;  // holds nothing; kernel() is null
  Library(Library&& other) noexcept = default;
  Library& operator=(Library&& other) noexcept = default;  // what it held stays loaded
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library() = default;

  // `bytes` were verified by the caller: the driver is no integrity check. cuda_error if the driver refuses them (for a
  // cubin of another architecture the refusal comes with the kernel look-up, which this includes). `result`, if not
  // null, gets the driver's answer.
  static Result<Library> load(std::shared_ptr<const DriverApi> driver, const Bytes& bytes,
                              const std::string& entry_name, CUresult* result = nullptr);
  CUkernel kernel() const;
  // In the current context: resolve the function (so that a first launch loads nothing) and, above 48 KiB, set the
  // dynamic shared-memory limit on `device`.
  // `nonportable_cluster`: also allow clusters of more than 8 CTAs. `result` as for load().
  Status prepare(CUdevice device, unsigned smem_bytes, bool nonportable_cluster, CUresult* result = nullptr) const;
  // Gives the library back to the driver. No error: there is nothing that a caller could do about one. Twice is fine.
  void unload();

 private:
  struct Shared;  // what all users of the same bytes hold
  std::shared_ptr<Shared> shared_;
};

// Lets this thread load and unload for a scope while streams capture, in whatever mode: without it the driver refuses
// an unload during a capture in the mode global (any thread's) or thread-local (this thread's), and ends the capture.
class CaptureBystander {
 public:
  explicit CaptureBystander(const DriverApi& driver);
  ~CaptureBystander();
  CaptureBystander(const CaptureBystander&) = delete;
  CaptureBystander& operator=(const CaptureBystander&) = delete;

 private:
  const DriverApi& driver_;
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;  // in between: the thread's own
  bool exchanged_;
  const LibraryCall call_;  // so that exit() waits for its end
};

// Makes a context current in this thread for a scope and restores the caller's. status() says whether it is current;
// with a failure nothing was changed.
class ContextGuard {
 public:
  ContextGuard(const DriverApi& driver, CUcontext context);
  ~ContextGuard();
  ContextGuard(const ContextGuard&) = delete;
  ContextGuard& operator=(const ContextGuard&) = delete;
  const Status& status() const { return status_; }

 private:
  const DriverApi& driver_;
  Status status_;
};

}  // namespace gemvjit::cuda
