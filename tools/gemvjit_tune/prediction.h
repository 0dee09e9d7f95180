// Prediction: configurations for a chip that nobody here has, derived from those measured on another.
//
// The rules, for a measured configuration of a case:
//   1. `rounds` above 1 is scaled by the ratio of the SM counts and rounded up: an SM gets about as many CTAs as where
//      it was measured, and never more. 1 stays 1. Where clusters are not to be used, `cluster_k` becomes 1.
//   2. `stages` becomes the one whose bytes of weights in flight on an SM come nearest to the measured configuration's
//      times the ratio of memory bandwidth per SM (latency x bandwidth is what must be in flight, and the latency is
//      taken to be the same); of equals the nearest to the measured one. Not below 2 where it was 2 or more: with one
//      stage a warp cannot load and decode at once.
//   3. Where no number of stages gives a kernel that every target can have (12.x: 99 KiB of shared memory for a CTA),
//      `x_path` is lowered, and 2 is asked again.
//   4. Where that does not help either: of the valid candidates (candidates.h) of no later variant, no larger x_path
//      and no larger cluster the one with the least model time, each field that differs counting as a tenth more.
//   5. A kernel that spills registers on some target steps back: fewer `min_ctas`, then fewer `stages`, then half the
//      `row_tiles` with all stages again, and so on.
// All other fields, and PDL on or off, are the measured ones.
//
// Threads: all of it is pure but settle(), which compiles and may be called from any thread.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "src/compile/nvrtc_compiler.h"
#include "tools/gemvjit_tune/table_file.h"
#include "tools/gemvjit_tune/tune_case.h"
#include "tools/gemvjit_tune/work_pool.h"

namespace gemvjit::tools {

struct Chip {
  std::vector<Arch> archs;  // of a chip to predict for: every target of the table; at least one
  int sm_count = 0;
  double gb_per_s = 0;   // 0, on either side: taken to be equal per SM
  bool clusters = true;  // may be used
};

// Rules 1 to 4. Nothing if the chip can have no configuration for the case.
std::optional<Configuration> predict(const TuneCase& c, const Configuration& measured, const Chip& from,
                                     const Chip& to);
// Rule 5: what to try after `configuration`, in this order.
std::vector<Configuration> step_backs(const Configuration& configuration);

struct Settled {
  std::optional<Configuration> configuration;  // the first without spills on all targets
  int compiled = 0, steps = 0;                 // kernels; steps back
  std::string failure;                         // why there is none
};
Settled settle(const TuneCase& c, const Configuration& start, const std::vector<Arch>& archs, Compiler& compiler);

// A row of a table's "defaults", with the case that stands for the shapes it serves: N near 4096, a K too
// long for any number of stages, the row's nt or the largest. Its bounds of N are scaled by the ratio of the SM counts
// (to multiples of 16), since they say how many CTAs an SM gets.
struct DefaultCase {
  TuneCase tune_case;
  Configuration configuration;
  std::int64_t short_k = 0;  // a K with few turns, for which the compiler unrolls more and needs more registers
};
Result<DefaultCase> default_case(const nlohmann::ordered_json& row);
nlohmann::ordered_json predicted_row(const nlohmann::ordered_json& row, const Configuration& configuration,
                                     int from_sm_count, int to_sm_count);

// `count` of 0..total-1, evenly spread, in order; all if there are fewer.
std::vector<std::size_t> spread_sample(std::size_t total, std::size_t count);

struct PredictionReport {
  std::vector<PredictedEntry> entries;
  nlohmann::ordered_json defaults = nlohmann::ordered_json::array();
  int compiled = 0, stepped_back = 0;  // kernels; configurations
  std::vector<std::string> failures;   // a line for each entry left out and each default row that spills
};
// For all measured entries and defaults of `source`. Of the entries at most `sample` are compiled (those with the same
// family, nt, silu_mul and configuration take the same step back); defaults are, unless `sample` is 0. `from.sm_count`
// serves the entries whose measurement does not say it. invalid_argument where neither does.
Result<PredictionReport> predict_table(const TableFile& source, const Chip& from, const Chip& to, std::size_t sample,
                                       Compiler* compiler, WorkPool& pool);

}  // namespace gemvjit::tools
