// Runner: searches all cases on one or several devices. A thread for each device takes case after case from one list; a
// shared pool of threads compiles ahead of them: each device thread keeps a few cases open, and while it measures a
// round of one, the rounds of the others are compiled.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tools/common/progress.h"
#include "tools/gemvjit_tune/baseline.h"
#include "tools/gemvjit_tune/device_bench.h"
#include "tools/gemvjit_tune/kernel_source.h"
#include "tools/gemvjit_tune/sample_book.h"
#include "tools/gemvjit_tune/table_file.h"
#include "tools/gemvjit_tune/work_pool.h"

namespace gemvjit::tools {

struct RunSettings {
  Arch arch;
  bool quick = false;
  std::size_t max_candidates = 64;
  int replays = 15;  // of a finalist; others get a third, at least 3
  bool alternative = true;
  std::string cublaslt;
  double budget_seconds = 0;  // 0: none
  double kernel_seconds = 5;  // after which a chain counts as hanging
  std::string commit, date, tool;
  std::vector<int> devices = {0};
};

struct CaseResult {
  TuneCase tune_case;
  Choice choice;
  double alternative_us = 0;
  std::string alternative;
  Provenance provenance;
  std::string problem;  // not empty: the case could not be measured at all
};

// Everything that the device threads share.
struct RunContext {
  const RunSettings& settings;
  const std::vector<TuneCase>& cases;
  const TableFile& table;
  const Baseline& baseline;
  const KernelSource& source;
  SampleBook& book;
  WorkPool& pool;
  Progress& progress;
  const HostBlocks& blocks;
  std::function<bool()> interrupted;
};

struct RunReport {
  std::vector<CaseResult> results;  // finished cases, in the order of the request
  std::size_t unfinished = 0;
  bool out_of_time = false;
  std::vector<std::string> device_failures;
};

RunReport run_cases(const RunContext& context);

}  // namespace gemvjit::tools
