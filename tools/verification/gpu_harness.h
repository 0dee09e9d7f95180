// GpuHarness: one CUDA device for tests and tools, through a driver table of its own (libcuda.so.1 by dlopen), with
// streams, graphs and timing. Device memory is in device_memory.h. Without a driver or a device, open() says why, so
// that a test can skip with that reason.
//
// Ownership: objects made from a harness hold a pointer to it and must end before it. Threads: use each object from one
// thread at a time; call make_current() in a thread other than the one that opened the harness.
#pragma once

#include <cuda.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "src/base/status.h"

namespace gemvjit {

struct GpuApi {
#define X(name, exported) decltype(&::name) name = nullptr;
#include "tools/verification/gpu_symbols.inc"
#undef X
};

class GpuHarness {
 public:
  // Retains the primary context of device `ordinal` and makes it current. no_driver if libcuda, a function of it or the
  // device is missing.
  static Result<std::unique_ptr<GpuHarness>> open(int ordinal = 0);
  ~GpuHarness();
  GpuHarness(const GpuHarness&) = delete;
  GpuHarness& operator=(const GpuHarness&) = delete;

  const GpuApi& api() const { return api_; }
  CUdevice device() const { return device_; }
  const std::string& device_name() const { return device_name_; }
  int sm() const { return sm_; }                          // 10 * major + minor
  int driver_version() const { return driver_version_; }  // 13000 for 13.0
  // Bytes of device memory free now; 0 if the driver does not tell.
  std::size_t free_bytes() const;

  Status make_current() const;
  // Waits for all work of the context.
  Status synchronize() const;
  // ok, or cuda_error with the driver's name and text and what was being done.
  Status check(CUresult result, const std::string& doing) const;

 private:
  GpuHarness() = default;

  GpuApi api_;
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
  std::string device_name_;
  int sm_ = 0, driver_version_ = 0;
};

// A non-blocking stream.
class GpuStream {
 public:
  static Result<GpuStream> create(const GpuHarness& gpu);
  ~GpuStream();
  GpuStream(GpuStream&& other) noexcept;
  GpuStream& operator=(GpuStream&&) = delete;

  CUstream get() const { return stream_; }
  Status synchronize() const;
  // Whether all work was done within `seconds`; the failure of that work, if it failed. Polls.
  Result<bool> done_within(double seconds) const;

 private:
  GpuStream(const GpuHarness& gpu, CUstream stream) : gpu_(&gpu), stream_(stream) {}
  const GpuHarness* gpu_;
  CUstream stream_;
};

// What `record` put into a stream, captured and instantiated.
class GpuGraph {
 public:
  // The failure of `record`, or of the capture. The stream is usable afterwards in either case. `mode`: GLOBAL, the
  // strictest, proves that nothing unfit for a capture is called; with other threads at work on the driver
  // (THREAD_LOCAL) their calls must not break this capture.
  static Result<GpuGraph> capture(const GpuHarness& gpu, const GpuStream& stream, const std::function<Status()>& record,
                                  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL);
  ~GpuGraph();
  GpuGraph(GpuGraph&& other) noexcept;
  GpuGraph& operator=(GpuGraph&& other) noexcept;

  std::size_t nodes() const { return nodes_; }
  Status launch(const GpuStream& stream) const;
  // Microseconds of each of `repeats` launches, one after another. Waits for the stream.
  Result<std::vector<double>> times_us(const GpuStream& stream, int repeats) const;
  // Microseconds of one launch: median over `repeats`, after one launch for warming up. Waits for the stream.
  Result<double> median_us(const GpuStream& stream, int repeats) const;

 private:
  GpuGraph(const GpuHarness& gpu, CUgraphExec exec, std::size_t nodes) : gpu_(&gpu), exec_(exec), nodes_(nodes) {}
  const GpuHarness* gpu_;
  CUgraphExec exec_;
  std::size_t nodes_;
};

}  // namespace gemvjit
