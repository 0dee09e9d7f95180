// Selection: which kernel a problem gets for M tokens, and what was rejected on the way, each with its reason.
#pragma once

#include <optional>
#include <vector>

#include "src/tuning/tuning_table.h"

namespace gemvjit {

struct NtSelection {
  int nt = 0;  // 0 for a family without tokens
  bool is_chosen = false;
  std::optional<Choice> choice;
  std::optional<KernelKey> key;
  Reason reason = Reason::none;       // the class of match; none if there is no kernel
  std::optional<Reason> not_chosen;   // why the kernel is not the one for M
  std::optional<Reason> without_pdl;  // why it has no programmatic dependent launch
  std::string detail;                 // of `not_chosen`, or why there is no kernel; "" if there is nothing to say
  std::vector<Rejected> rejected;
};

struct Selection {
  int nt = 0;                        // of the chosen kernel; see is_served
  bool is_served = false;            // a kernel was chosen
  Reason reason = Reason::none;      // its class of match, or why there is none
  std::vector<NtSelection> kernels;  // one for each nt of the family; empty where the shape itself is refused
  std::string detail;                // which rule the shape breaks; else ""
};

// The kernel that TuningTables::pick_nt() and lookup() choose; pure.
Selection select_kernel(const TuningTables& tables, const Arch& arch, const Problem& problem, std::int64_t m,
                        bool allow_untuned);

// The reason with the name of the match.
Reason reason_of(Match match);

}  // namespace gemvjit
