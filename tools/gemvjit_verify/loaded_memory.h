// What loaded kernels cost in host memory: a process with about a hundred kernels loaded from the cache, against the
// same process with only a driver context.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gemvjit/gemvjit.h"
#include "src/base/status.h"

namespace gemvjit::tools {

struct LoadedMemory {
  std::uint64_t kernels = 0;
  std::uint64_t driver_only_kib = 0;  // resident set before the first kernel is loaded
  std::uint64_t loaded_kib = 0;       // and after the last
  double megabytes() const { return (static_cast<double>(loaded_kib) - static_cast<double>(driver_only_kib)) / 1024; }
};

// The shapes whose kernels are loaded: BF16, K 1024, N 256, 512, ... (34 of them, three nt each).
inline constexpr std::int64_t kLoadedMemoryShapes = 34, kLoadedMemoryNStep = 256, kLoadedMemoryK = 1024;

// Loads them into `context`, whose cache must hold them all (gemvjit-warmup before): not_ready if something had to be
// compiled, since NVRTC would then be counted. Call it before anything else is loaded.
Result<LoadedMemory> measure_loaded_memory(gemvjit_context* context);

}  // namespace gemvjit::tools
