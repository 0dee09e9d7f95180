// A plan: the kernels that somebody wants warm, as a file that one machine writes and another warms, checks or collects
// garbage by. docs/plans.md describes the format for others.
//
// A plan names kernels by key, so it means the same whatever tuning tables its reader has. The same kernels and sources
// give the same bytes: no time, no host, no path of the writer but what its user typed.
//
// Errors: reading is strict and bounded, since the file may be a stranger's; messages name the field and are fit for a
// terminal. Threads: any.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cache/entry.h"
#include "src/base/status.h"

namespace gemvjit::tools {

inline constexpr int kPlanSchema = 1;
inline constexpr std::size_t kPlanSizeLimit = 64u << 20;  // bytes of a file
inline constexpr std::size_t kPlanKeyLimit = 200'000;
inline constexpr std::size_t kPlanSourceLimit = 64;  // of one key; what is more is counted, not named
inline constexpr std::size_t kPlanTextLimit = 256;   // bytes of a source, of made_by

struct PlannedKernel {
  EntryId id;
  std::vector<std::string> sources;  // who wants it: a shape as typed, a model and its layer
};

struct Plan {
  std::string made_by;      // "gemvjit 0.1.0"
  std::string tuning_hash;  // of the tables that chose the keys; 64 hex digits
  std::vector<PlannedKernel> kernels;

  // The targets, sorted, each once.
  std::vector<Arch> archs() const;
};

// Sorts the kernels by the text of their keys and drops repeats; the sources of one kernel are joined, sorted and cut
// to the limits.
void normalize(Plan& plan);

// 64 lower-case hex digits; nothing for anything else.
std::optional<Digest> parse_digest(std::string_view hex);

// The file's text, of a plan that is normalized.
std::string write_plan(const Plan& plan);

// invalid_argument, with what is wrong and where, for anything that write_plan would not write (white space apart).
// What a key means to this version is not asked here.
Result<Plan> parse_plan(std::string_view text);
// The same of a file, its path in front of the message; not_found, io_error (also for one that is too large).
Result<Plan> read_plan(const std::string& path);

// Whether this version makes just these kernels.
struct PlanFit {
  std::size_t other_digests = 0;  // keys that this version makes, of other sources, options or entry format
  std::string first_other;        // text of the first such key
};
// invalid_argument for a key that this version does not make.
Result<PlanFit> fit_plan(const Plan& plan);

// read_plan, then fit_plan: what a tool does first. A plan of other digests is invalid_argument, too, unless
// `any_digest`: then `warning` says so, and it is keys alone that count.
Result<Plan> read_fitting_plan(const std::string& path, bool any_digest, std::string& warning);

}  // namespace gemvjit::tools
