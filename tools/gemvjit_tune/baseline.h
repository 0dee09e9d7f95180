// Baseline: times of other kernels, measured elsewhere, that a table's "alternative" takes into account.
//
// A JSON list of {"family": "nvfp4", "n", "k", "m" (or "nt"), "silu_mul" (or absent), "us", "name"}.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/gemvjit_tune/tune_case.h"

namespace gemvjit::tools {

struct BaselineTime {
  double us = 0;
  std::string name;
};

class Baseline {
 public:
  static Result<Baseline> parse(const std::string& text);
  static Result<Baseline> read(const std::string& path);
  // The fastest kernel's time for a case: that given for its nt, or the geometric mean over those of its tokens that
  // the kernel has times of (for nt 1 one of 1 and 8 is enough: times at small M are alike).
  std::optional<BaselineTime> fastest(const TuneCase& c) const;

 private:
  struct Row {
    TuneCase tune_case;  // nt 0 if given by m
    std::int64_t m = 0;
    BaselineTime time;
  };
  std::vector<Row> rows_;
};

}  // namespace gemvjit::tools
