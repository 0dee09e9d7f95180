#include "tools/gemvjit_verify/loaded_memory.h"

#include <fmt/format.h>
#include <unistd.h>

#include <fstream>

namespace gemvjit::tools {
namespace {

Result<std::uint64_t> resident_kib() {
  std::ifstream statm("/proc/self/statm");
  std::uint64_t total_pages = 0, resident_pages = 0;
  if (!(statm >> total_pages >> resident_pages)) {
    return Status(StatusCode::io_error, "reading /proc/self/statm for the resident set failed");
  }
  return resident_pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)) / 1024;
}

Status failure(gemvjit_status status) { return {static_cast<StatusCode>(status), gemvjit_last_error()}; }

}  // namespace

Result<LoadedMemory> measure_loaded_memory(gemvjit_context* context) {
  std::vector<gemvjit_problem> problems(kLoadedMemoryShapes);
  for (std::size_t i = 0; i < problems.size(); ++i) {
    const std::int64_t n = kLoadedMemoryNStep * static_cast<std::int64_t>(i + 1);
    if (const auto status = gemvjit_problem_init(&problems[i], GEMVJIT_BF16_GEMV, n, kLoadedMemoryK)) {
      return failure(status);
    }
    problems[i].allow_untuned = 1;
  }
  LoadedMemory memory;
  GEMVJIT_TRY_ASSIGN(memory.driver_only_kib, resident_kib());
  if (const auto status = gemvjit_warmup(context, problems.data(), problems.size(), nullptr)) return failure(status);
  GEMVJIT_TRY_ASSIGN(memory.loaded_kib, resident_kib());
  gemvjit_stats_data stats{};
  stats.struct_size = sizeof stats;
  if (const auto status = gemvjit_stats(context, &stats)) return failure(status);
  if (stats.compiles != 0) {
    return Status(StatusCode::not_ready, fmt::format("{} kernels were not in the cache: warm {} shapes N = {}, {}, ... "
                                                     "x K = {} (bf16) with gemvjit-warmup before",
                                                     stats.compiles, kLoadedMemoryShapes, kLoadedMemoryNStep,
                                                     2 * kLoadedMemoryNStep, kLoadedMemoryK));
  }
  memory.kernels = stats.kernels_loaded;
  return memory;
}

}  // namespace gemvjit::tools
