// What the command line of gemvjit-tune says.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "tools/gemvjit_tune/shape_sources.h"

namespace gemvjit::tools {

// Of --predict, which needs no GPU.
struct PredictOptions {
  std::vector<std::string> archs;  // empty: no prediction
  std::string from;                // the table to predict from
  int from_sm_count = 0;           // 0: as its measurements say
  double gb_per_s = 0, from_gb_per_s = 0;
  bool clusters = true;
  std::size_t sample = std::numeric_limits<std::size_t>::max();
};

struct TuneOptions {
  CaseRequest request;
  PredictOptions predict;
  std::string arch;  // "": the first device's
  int sm_count = 0;  // of --list and --predict
  bool quick = false;
  std::size_t max_candidates = 0;  // 0: the search's own
  double budget_seconds = 0, kernel_seconds = 5;
  std::string output, samples, baseline, cublaslt, cache_dir, commit;
  std::uint64_t cache_max_bytes = std::uint64_t{1} << 30;  // of cache_dir; 0: no cap
  bool alternative = true;
  int replays = 15;
  int jobs = 0;  // 0: one a core
  std::vector<int> devices = {0};
  bool list = false, json = false, quiet = false;
  std::string progress = "auto";  // one of progress_choices()

  std::size_t candidates() const { return max_candidates > 0 ? max_candidates : quick ? 8 : 64; }
};

// An exit code if the program is to end now.
std::optional<int> parse_tune_options(int argc, char** argv, TuneOptions& options);

}  // namespace gemvjit::tools
