// The launch path: shape and arguments in, a kernel on the stream. On success no lock, no allocation, no environment,
// no file, no log.
//
// Arguments are checked by the caller; a registered kernel is proof that its shape is valid.
#pragma once

#include <cstdint>

#include "src/launch/launcher.h"
#include "src/runtime/context.h"

namespace gemvjit {

// `detail` has a message only where the code does not say everything: for a failed driver call or compile. The messages
// of not_ready and m_not_covered are left to the caller, who can write them without an allocation.
struct LaunchOutcome {
  StatusCode code = StatusCode::ok;
  Status detail;
};

// 1 <= arguments.m <= 32.
LaunchOutcome launch_gemv(Context& context, const LaunchShape& shape, GemvArguments& arguments, CUstream stream);
LaunchOutcome launch_dequantize(Context& context, const LaunchShape& shape, DequantizeArguments& arguments,
                                CUstream stream);
LaunchOutcome launch_swizzle(Context& context, const LaunchShape& shape, SwizzleArguments& arguments, CUstream stream);

}  // namespace gemvjit
