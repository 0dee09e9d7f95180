// What gemvjit-tune prints.
#pragma once

#include <vector>

#include "tools/gemvjit_tune/candidates.h"
#include "tools/gemvjit_tune/runner.h"

namespace gemvjit::tools {

// A line a case, then the totals.
void print_results(const RunReport& report);
void print_results_json(const RunReport& report);

// --list: the seeds of each case, with the model's estimate.
struct ListedCase {
  TuneCase tune_case;
  std::vector<Configuration> seeds;
};
void print_list(const std::vector<ListedCase>& cases, const Machine& machine);
void print_list_json(const std::vector<ListedCase>& cases, const Machine& machine);

// Entries for the table: cases with a choice.
std::vector<MeasuredEntry> table_entries(const RunReport& report);

}  // namespace gemvjit::tools
