#include "tools/cache_view/compile_times.h"

#include <algorithm>

#include "cache/entry_files.h"
#include "src/runtime/options.h"
#include "tools/cache_view/cache_refusal.h"
#include "tools/cache_view/layers.h"
#include "tools/cache_view/tool_settings.h"

namespace gemvjit::tools {

CompileTimes medians(const std::map<Family, std::vector<std::uint32_t>>& times) {
  CompileTimes result;
  for (const auto& [family, all] : times) {
    if (all.empty()) continue;
    std::vector<std::uint32_t> sorted = all;
    std::sort(sorted.begin(), sorted.end());
    const std::size_t middle = sorted.size() / 2;
    const double upper = sorted[middle];
    const double lower = sorted.size() % 2 == 0 ? sorted[middle - 1] : upper;
    result[family] = {(lower + upper) / 2, sorted.size()};
  }
  return result;
}

std::optional<BuildRecord> build_of(const Entry& entry, const BuildRecords& records) {
  if (entry.created_unix_seconds == 0 && entry.cubin.compile_ms == 0) return records.find(entry.id.digest);
  return BuildRecord{entry.created_unix_seconds, entry.cubin.compile_ms};
}

CompileTimes recorded_compile_times(const std::string& root) {
  std::map<Family, std::vector<std::uint32_t>> times;
  const auto add = [&](const ListedEntry& listed, const BuildRecords& records) {
    if (!listed.entry) return;
    const auto spec = describe_key(listed.entry->id.key);
    const std::optional<BuildRecord> build = build_of(*listed.entry, records);
    if (spec && build) times[spec->family].push_back(build->milliseconds);
  };
  const EntryGuard guard = guard_of_root(root);
  const BuildRecords records = BuildRecords::read(root);
  const auto add_of_root = [&](const ListedEntry& listed) { add(listed, records); };
  if (!root.empty()) (void)visit_entries(root, add_of_root, &guard);
  for (LayerView& view : open_layers()) {
    const BuildRecords of_layer = BuildRecords::read(view.path);  // none of a bundle
    for (const ListedEntry& listed : list_layer(view)) add(listed, of_layer);
  }
  return medians(times);
}

Estimate estimate(const CompileTimes& times, const std::map<Family, std::size_t>& kernels, int jobs) {
  Estimate result;
  double milliseconds = 0;
  for (const auto& [family, count] : kernels) {
    const auto known = times.find(family);
    if (known == times.end()) {
      result.without_basis += count;
    } else {
      milliseconds += known->second.median_ms * static_cast<double>(count);
    }
  }
  result.seconds = milliseconds / 1000 / std::max(jobs, 1);
  return result;
}

int compile_jobs(int requested) {
  OptionRequest request;
  request.compile_threads = requested;
  const auto options = resolve_options(request, tool_environment());
  return options ? options->compile_threads : std::max(requested, 1);
}

}  // namespace gemvjit::tools
