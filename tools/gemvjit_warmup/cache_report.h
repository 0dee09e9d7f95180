// What --check and --dry-run tell of the cache beside the library's verdict: what comes closest to a miss, where each
// kernel would come from, and how long the rest would take.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tools/cache_view/compile_times.h"
#include "tools/gemvjit_warmup/results.h"

namespace gemvjit::tools {

// Fills `nearest` of the kernels that are missing. `root`: the cache folder, "" for none. Lists folders, reads no entry
// but those of bundles; not at all where nothing is missing.
void explain_misses(const std::string& root, std::vector<KernelResult>& results);
// A line a miss: "missing KEY: nearest KEY, first differing field nt: wanted 2, found 1".
std::string misses_text(const std::vector<KernelResult>& results);

// Fills `from` of a dry run's kernels: "cache", "layer" (and `from_place`: the layer's path) or "compile".
void locate(const std::string& root, std::vector<KernelResult>& results);

// What a dry run expects of the run to come.
struct Forecast {
  std::size_t from_cache = 0, from_layers = 0, compiles = 0;
  int jobs = 1;
  CompileTimes times;  // of the families that are to be compiled
  Estimate estimate;
};
// Reads the entries of the cache and the layers, if anything is to be compiled.
Forecast make_forecast(const std::string& root, const std::vector<KernelResult>& results, int jobs);
std::string forecast_text(const Forecast& forecast);
nlohmann::ordered_json forecast_json(const Forecast& forecast);

}  // namespace gemvjit::tools
