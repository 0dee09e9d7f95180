// Whether streams capture a graph: what must not happen meanwhile asks first.
#pragma once

#include "src/runtime/device.h"

namespace gemvjit {

// Whether an ordinary stream of the caller's context, or of the device's own where none is current, captures a graph.
// Streams made non-blocking are not told of.
bool some_stream_captures(const Device& device);

// A stream that captures, or of which the driver does not say that it does not.
bool may_capture(const Device& device, CUstream stream);

}  // namespace gemvjit
