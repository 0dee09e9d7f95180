// How long compiles took, as a cache remembers it, and what follows for those to come.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cache/build_records.h"
#include "src/catalog/catalog.h"

namespace gemvjit::tools {

struct CompileTime {
  double median_ms = 0;
  std::size_t entries = 0;  // that it is the median of
};
using CompileTimes = std::map<Family, CompileTime>;

// The medians of some times; of an even number the mean of the middle two.
CompileTimes medians(const std::map<Family, std::vector<std::uint32_t>>& times);

// When and how long an entry was compiled: as it says itself, if it was made by a version that wrote that into entries,
// else as the folder's records say. Nothing: not known, as of one that came from elsewhere.
std::optional<BuildRecord> build_of(const Entry& entry, const BuildRecords& records);

// The medians of all whole entries of a folder with the cache's layout and of the layers that GEMVJIT_CACHE_RO names,
// as far as they are known. Reads every entry.
CompileTimes recorded_compile_times(const std::string& root);

struct Estimate {
  double seconds = 0;             // of the kernels with a basis, `jobs` at a time
  std::size_t without_basis = 0;  // kernels of families of which no entry is there
};
// `kernels`: how many are to be compiled of each family.
Estimate estimate(const CompileTimes& times, const std::map<Family, std::size_t>& kernels, int jobs);

// How many kernels the library compiles at a time where a tool was told `requested` (0: nothing).
int compile_jobs(int requested);

}  // namespace gemvjit::tools
