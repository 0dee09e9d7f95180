#include "src/runtime/kernel_report.h"

#include <algorithm>

namespace gemvjit {

namespace {

KernelReport describe_key_of(const WorkItem& item, const KernelKey& key) {
  KernelReport report;
  report.key = key;
  report.match = item.choice.match;
  report.is_named = item.is_named;
  // What a warmup found in place of what the item names is a substitute too.
  report.is_fallback = item.is_fallback || std::ranges::count(item.candidates, key) == 0;
  report.problem_index = item.problems.empty() ? 0 : item.problems.front();
  if (const Result<KernelSpec> spec = describe_key(key); spec) {
    report.family = spec->family;
    report.dynamic_smem_bytes = launch_config(*spec).smem_bytes;
  }
  return report;
}

}  // namespace

KernelReport describe_item(const Context& context, const WorkItem& item, const EntryId& id) {
  KernelReport report = describe_key_of(item, id.key);
  report.digest = to_hex(id.digest);
  report.path = context.store().path_of(id);
  return report;
}

KernelReport describe_item(const Context& context, const WorkItem& item) {
  const Result<Recipe> recipe = specialize(item.key());
  return recipe ? describe_item(context, item, recipe->id()) : describe_key_of(item, item.key());
}

void describe_entry(KernelReport& report, const Entry& entry) {
  report.compile_ms = entry.cubin.compile_ms;
  report.resources = entry.cubin.resources;
  report.cubin_bytes = entry.cubin.bytes.size();
}

}  // namespace gemvjit
