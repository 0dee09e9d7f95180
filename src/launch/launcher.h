// launch: a loaded kernel goes onto a stream. The launch path: no lock, no allocation, no environment, no file, no log.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/shared/scale_segments.h"
#include "src/catalog/launch_config.h"
#include "src/cuda/driver_api.h"

namespace gemvjit {

// Driver attributes of one launch, on the caller's stack (a shared array would let two threads race).
struct LaunchAttributes {
  std::array<CUlaunchAttribute, 2> attributes;
  unsigned count = 0;
};

// Cluster dimension if the cluster is larger than 1; programmatic stream serialization if config.pdl.
void marshal_attributes(const LaunchConfig& config, LaunchAttributes& out);

// One cuLaunchKernelEx for m tokens (any m where the kernel has none); `kernel_arguments` as the driver wants them: an
// array of pointers to the arguments. The raw result, so that the caller makes a message only when there is a failure
// to tell.
CUresult launch(const cuda::DriverApi& driver, CUkernel kernel, const LaunchConfig& config, unsigned m,
                void** kernel_arguments, CUstream stream);

// The kernels' parameters, in order and type as the .cu files declare them.
struct GemvArguments {
  const void* x;              // BF16 [m, x_row_stride]
  std::int64_t x_row_stride;  // elements
  const void* weight;
  const void* weight_scale;   // null for BF16
  const float* global_scale;  // null for BF16
  void* out;                  // BF16 [m, n] or [m, n/2]
  std::int32_t m;
  ScaleSegments* segments = nullptr;  // takes the place of global_scale where the kernel has segments
};
struct DequantizeArguments {
  const void* weight;
  const void* weight_scale;
  void* out;  // BF16 [n, k]
};

// Pointers to each field, for cuLaunchKernelEx.
inline std::array<void*, 7> argument_pointers(GemvArguments& a) {
  void* scale = &a.global_scale;
  if (a.segments != nullptr) scale = a.segments;
  return {&a.x, &a.x_row_stride, &a.weight, &a.weight_scale, scale, &a.out, &a.m};
}
struct SwizzleArguments {
  const void* row_major;
  void* swizzled;
};
inline std::array<void*, 2> argument_pointers(SwizzleArguments& a) { return {&a.row_major, &a.swizzled}; }
inline std::array<void*, 3> argument_pointers(DequantizeArguments& a) { return {&a.weight, &a.weight_scale, &a.out}; }

}  // namespace gemvjit
