// KernelReport: what is said about one kernel of a warmup, plan or check.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "src/runtime/work_plan.h"

namespace gemvjit {

enum class Outcome : int { compiled = 1, cached = 2, failed = 3, missing = 4 };

struct KernelReport {
  KernelKey key;
  std::string digest;                   // 64 hex digits; "" if the key could not be specialized
  std::string path;                     // the cache file; "" for memory only
  Match match = Match::family_default;  // says nothing where is_named
  bool is_named = false;
  bool is_fallback = false;  // in place of a kernel with a cluster; match says nothing
  Family family = Family::nvfp4_gemv;
  Outcome outcome = Outcome::missing;
  Status status;
  double milliseconds = 0;
  std::uint32_t compile_ms = 0;
  KernelResources resources;
  std::uint32_t dynamic_smem_bytes = 0;
  std::uint64_t cubin_bytes = 0;
  std::size_t problem_index = 0;
  std::size_t done = 0, total = 0;
};

// Returns whether to go on.
using KernelCallback = std::function<bool(const KernelReport&)>;

// Key, digest, path and shape facts of an item's kernel; outcome missing. The first form is for an item whose digest is
// known, since working it out means hashing all sources; the second takes the item's first candidate.
KernelReport describe_item(const Context& context, const WorkItem& item, const EntryId& id);
KernelReport describe_item(const Context& context, const WorkItem& item);
// What a compiled kernel says of itself.
void describe_entry(KernelReport& report, const Entry& entry);

}  // namespace gemvjit
