#include "src/runtime/capturing.h"

#include "src/cuda/library.h"

namespace gemvjit {

// A question about the legacy stream is answered with an error of its own then, and the capture goes on.
bool some_stream_captures(const Device& device) {
  const cuda::DriverApi& driver = *device.driver;
  const CUcontext current = device.current_context();
  const cuda::ContextGuard guard(driver, current != nullptr ? current : device.primary);
  if (!guard.status()) return false;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return driver.cuStreamIsCapturing(nullptr, &status) == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
}

bool may_capture(const Device& device, CUstream stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
  return device.driver->cuStreamIsCapturing(stream, &status) != CUDA_SUCCESS || status != CU_STREAM_CAPTURE_STATUS_NONE;
}

}  // namespace gemvjit
