#include "tools/gemvjit_warmup/cache_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tools/cache_view/layers.h"
#include "tools/cache_view/nearest.h"
#include "tools/cache_view/plan_file.h"
#include "tools/common/human_units.h"
#include "tools/gemvjit_warmup/problem_list.h"

namespace gemvjit::tools {
namespace {

// A file that cannot be read is as good as none.
bool is_missing(const KernelResult& result) {
  return result.outcome == GEMVJIT_OUTCOME_MISSING && result.status != GEMVJIT_ENTRY_DAMAGED;
}

bool is_unreadable(const KernelResult& result) { return result.status == GEMVJIT_IO_ERROR; }

bool is_below(const std::string& path, const std::string& folder) {
  return !folder.empty() && path.size() > folder.size() && path.starts_with(folder) &&
         (folder.back() == '/' || path[folder.size()] == '/' || path[folder.size()] == '#');
}

}  // namespace

void explain_misses(const std::string& root, std::vector<KernelResult>& results) {
  if (std::none_of(results.begin(), results.end(), is_missing)) return;
  const std::vector<KnownEntry> entries = list_known_entries(root);
  for (KernelResult& result : results) {
    if (!is_missing(result) || is_unreadable(result)) continue;
    const auto key = KernelKey::parse(result.key);
    const auto digest = parse_digest(result.digest);
    if (!key || !digest) continue;
    const auto nearest = find_nearest(entries, {*key, *digest});
    if (!nearest) continue;
    const KnownEntry& entry = entries[nearest->index];
    result.nearest = NearestEntry{entry.key.text(), entry.path, first_difference_text(*nearest), "", "", ""};
    if (nearest->differences.empty()) continue;
    const Difference& first = nearest->differences.front();
    result.nearest->field = first.field;
    result.nearest->wanted = first.wanted;
    result.nearest->found = first.found;
  }
}

std::string misses_text(const std::vector<KernelResult>& results) {
  std::string text;
  for (const KernelResult& result : results) {
    if (!is_missing(result)) continue;
    text += fmt::format("missing {}: ", result.key);
    if (is_unreadable(result)) {
      text += result.error + "\n";
      continue;
    }
    text += result.nearest
                ? fmt::format("nearest {}, first differing field {}\n", result.nearest->key, result.nearest->difference)
                : "no entry is there\n";
  }
  return text;
}

void locate(const std::string& root, std::vector<KernelResult>& results) {
  const std::vector<std::string> layers = layer_paths();
  for (KernelResult& result : results) {
    result.from = "compile";
    if (result.outcome != GEMVJIT_OUTCOME_CACHED) continue;
    result.from = "cache";
    result.from_place = root;
    if (is_below(result.path, root)) continue;
    for (const std::string& layer : layers) {
      if (!is_below(result.path, layer)) continue;
      result.from = "layer";
      result.from_place = layer;
      break;
    }
  }
}

Forecast make_forecast(const std::string& root, const std::vector<KernelResult>& results, int jobs) {
  Forecast forecast;
  forecast.jobs = jobs;
  std::map<Family, std::size_t> kernels;
  for (const KernelResult& result : results) {
    if (result.from == "cache") ++forecast.from_cache;
    if (result.from == "layer") ++forecast.from_layers;
    if (result.from != "compile") continue;
    ++forecast.compiles;
    ++kernels[static_cast<Family>(result.family)];
  }
  if (kernels.empty()) return forecast;
  const CompileTimes all = recorded_compile_times(root);
  for (const auto& [family, time] : all) {
    if (kernels.contains(family)) forecast.times[family] = time;
  }
  forecast.estimate = estimate(forecast.times, kernels, jobs);
  return forecast;
}

std::string forecast_text(const Forecast& forecast) {
  std::string text = fmt::format("{} kernels from the cache, {} from layers, {} to compile", forecast.from_cache,
                                 forecast.from_layers, forecast.compiles);
  if (forecast.compiles == 0) return text + "\n";
  if (forecast.times.empty()) return text + "; no entry tells how long that takes\n";
  text += fmt::format(": about {}, {} at a time (medians of recorded compile times:",
                      human_seconds(forecast.estimate.seconds), forecast.jobs);
  for (const auto& [family, time] : forecast.times) {
    text += fmt::format(" {} {:.0f} ms of {}", family_name(static_cast<int>(family)), time.median_ms, time.entries);
  }
  text += ")";
  if (forecast.estimate.without_basis > 0) {
    text += fmt::format("; not counted are {} of families without an entry", forecast.estimate.without_basis);
  }
  return text + "\n";
}

nlohmann::ordered_json forecast_json(const Forecast& forecast) {
  nlohmann::ordered_json basis = nlohmann::ordered_json::array();
  for (const auto& [family, time] : forecast.times) {
    basis.push_back(
        {{"family", family_name(static_cast<int>(family))}, {"median_ms", time.median_ms}, {"entries", time.entries}});
  }
  nlohmann::ordered_json seconds = nullptr;
  if (forecast.compiles == 0 || !forecast.times.empty()) {
    seconds = std::round(forecast.estimate.seconds * 1000) / 1000;
  }
  return {{"from_cache", forecast.from_cache},
          {"from_layers", forecast.from_layers},
          {"compiles", forecast.compiles},
          {"jobs", forecast.jobs},
          {"seconds", seconds},
          {"without_basis", forecast.estimate.without_basis},
          {"basis", basis}};
}

}  // namespace gemvjit::tools
