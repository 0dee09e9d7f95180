// Results: what became of each kernel of a run, and how it is shown and turned into an exit code.
//
// Threads: add() may be called from the library's threads, one at a time; everything else afterwards, from one thread.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "gemvjit/gemvjit.h"
#include "tools/common/exit_codes.h"
#include "tools/common/table.h"
#include "tools/gemvjit_warmup/warmup_options.h"

namespace gemvjit::tools {

// The entry that comes closest to a kernel which is missing.
struct NearestEntry {
  std::string key, path;
  std::string difference;            // the first, for people
  std::string field, wanted, found;  // its parts
};

struct KernelResult {
  std::string key, digest, arch, match, error, path;
  std::optional<NearestEntry> nearest;  // of --check
  std::string from, from_place;         // of --dry-run; see cache_report.h
  std::int64_t n = 0, k = 0;
  std::uint64_t flags = 0;
  int family = 0, nt = 0;
  gemvjit_outcome outcome = GEMVJIT_OUTCOME_FAILED;
  gemvjit_status status = GEMVJIT_OK;
  double milliseconds = 0;
  std::uint32_t registers = 0, smem_bytes = 0, spill_bytes = 0;
  std::size_t problem_index = 0;
};

class Results {
 public:
  explicit Results(WarmupMode mode) : mode_(mode) {}

  const KernelResult& add(const gemvjit_kernel_info& kernel);
  // A problem that failed before it had a kernel; ignored where a kernel of it is reported already.
  void add_failed_problem(std::size_t index, const gemvjit_problem& problem, gemvjit_status status, std::string error);
  // Kernels of which nothing is told, for want of time or because the run was interrupted.
  void set_left(std::size_t left) { left_ = left; }
  // The order of the command line, whatever the order in which threads finished.
  void sort();

  // "compiled", "cached", "failed"; with --check also "missing" and "damaged"; with --dry-run "planned", always.
  const char* status_word(const KernelResult& result) const;
  // The one document of --json. Of the counters, those that tell of something unusual and are not 0 are in its summary.
  nlohmann::ordered_json json(double seconds, const gemvjit_stats_data& stats) const;
  // For people: a table, then a line that sums up.
  Table table() const;
  std::string summary(double seconds) const;
  // Without regard to an interruption.
  ExitCode exit_code() const;
  const std::vector<KernelResult>& all() const { return results_; }
  std::vector<KernelResult>& all() { return results_; }

 private:
  std::size_t count(gemvjit_outcome outcome) const;

  WarmupMode mode_;
  std::size_t left_ = 0;
  std::vector<KernelResult> results_;
};

// "; remote cache: 12 fetched, 3 not there"; "" where none was asked.
std::string remote_text(const gemvjit_stats_data& stats);

}  // namespace gemvjit::tools
