// CaseSearch: which configurations of one case to measure next, and which one to choose. Pure: it is told what was
// measured and never measures, so tests give it a timer of their own.
//
// Rounds: the seeds; the untried neighbours of the best three (thorough only), up to max_candidates measured; then the
// final, in which the best few, the table's present choice and the best ones without programmatic dependent launch meet
// with more replays. A search with nothing to put into a final ends without a choice.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tools/gemvjit_tune/tune_case.h"

namespace gemvjit::tools {

struct Outcome {
  Configuration configuration;
  double us = 0;         // geometric mean over the case's tokens of the medians
  double spread_us = 0;  // half the distance between the quartiles, scaled alike
  int samples = 0;       // replays of each number of tokens
  std::string failure;   // not empty: did not compile, spills registers, computes wrong numbers, does not run
};

struct Choice {
  bool found = false;
  Outcome best;
  bool kept = false;   // the table's present choice stays: nothing was faster by more than the noise
  int candidates = 0;  // configurations timed
  int failed = 0;      // configurations that were excluded
  std::string first_failure;
};

struct SearchLimits {
  std::size_t max_candidates = 64;
  std::size_t refine_best = 3;  // 0: no second round
  std::size_t finalists = 6;
  std::size_t without_pdl = 3;  // of the finalists, tried with pdl off too
};
SearchLimits thorough_limits(std::size_t max_candidates);
SearchLimits quick_limits(std::size_t max_candidates);

class CaseSearch {
 public:
  using IsValid = std::function<bool(const Configuration&)>;
  // `present`: the table's choice; null if it has none. It takes part even if it is none of the seeds.
  CaseSearch(std::vector<Configuration> seeds, const Configuration* present, IsValid is_valid,
             const SearchLimits& limits);

  // What to measure now; every one must be reported before the next call. Empty: the search is over.
  std::vector<Configuration> next_round();
  bool in_final() const { return stage_ == Stage::final; }
  void report(const Outcome& outcome);
  // Whether a configuration after its first replay is so slow beside the best that was reported (3 times as slow) that
  // more replays of it tell nothing.
  bool is_hopeless(const Outcome& outcome) const;
  // After the last round. `best` is from the final.
  Choice choose() const;

 private:
  enum class Stage { start, seeds, refine, final, over };
  std::vector<const Outcome*> ranked() const;
  std::vector<Configuration> refine_round() const;
  std::vector<Configuration> final_round() const;
  bool tried(const Configuration& configuration) const { return first_.contains(configuration.text()); }

  std::vector<Configuration> seeds_;
  bool has_present_ = false;
  Configuration present_;
  IsValid is_valid_;
  SearchLimits limits_;
  Stage stage_ = Stage::start;
  std::map<std::string, Outcome> first_, final_;  // by the configuration's text
  std::string first_failure_;
};

}  // namespace gemvjit::tools
