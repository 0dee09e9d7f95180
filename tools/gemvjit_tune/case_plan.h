// CasePlan: what a case needs before the device has its turn: the seeds of its search and the expected numbers. Host
// work, made by the pool's threads ahead of time.
#pragma once

#include <vector>

#include "tools/gemvjit_tune/candidates.h"
#include "tools/gemvjit_tune/sample_book.h"
#include "tools/gemvjit_tune/search.h"
#include "tools/gemvjit_tune/table_file.h"
#include "tools/measure/cold_data.h"
#include "tools/measure/number_check.h"

namespace gemvjit::tools {

// The configurations to begin with, at most `max_candidates` (thorough: three fifths of it, the rest is for their
// neighbours): first those that did well on the nearest shapes (quick: up to all but two; thorough: up to a fifth),
// then the model's. Fewer if there are not as many.
std::vector<Configuration> make_seeds(const TuneCase& c, const Machine& machine, bool quick, std::size_t max_candidates,
                                      const SampleBook& book, const std::vector<Known>& table);

struct CasePlan {
  CaseSearch search;
  std::vector<SampledReference> references;  // one for each of the case's tokens
};
CasePlan plan_case(const TuneCase& c, const Machine& machine, bool quick, std::size_t max_candidates,
                   const SampleBook& book, const TableFile& table, const HostBlocks& blocks);

}  // namespace gemvjit::tools
