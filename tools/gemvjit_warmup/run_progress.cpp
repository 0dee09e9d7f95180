#include "tools/gemvjit_warmup/run_progress.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <tuple>

#include "tools/common/human_units.h"
#include "tools/common/table.h"
#include "tools/gemvjit_warmup/kernel_calls.h"

namespace gemvjit::tools {
namespace {

const char* mode_name(WarmupMode mode) {
  switch (mode) {
    case WarmupMode::build:
      return "build";
    case WarmupMode::dry_run:
      return "dry_run";
    case WarmupMode::check:
      return "check";
  }
  return "unknown";
}

// Nothing without a preview: a look takes no time worth a guess.
std::optional<TimeLeft> guess_of(const Preview* preview) {
  if (preview == nullptr) return std::nullopt;
  std::map<int, TimeLeft::Work> work;
  for (const KernelResult& kernel : preview->kernels) {
    if (kernel.from == "compile") ++work[kernel.family].steps;
  }
  for (auto& [family, one] : work) {
    const auto known = preview->forecast.times.find(static_cast<Family>(family));
    if (known != preview->forecast.times.end()) one.remembered_ms = known->second.median_ms;
  }
  return TimeLeft(std::move(work), preview->forecast.jobs, Progress::now());
}

}  // namespace

Preview look_ahead(gemvjit_context* context, const ProblemList& list, int jobs) {
  Results results(WarmupMode::dry_run);
  const auto on_kernel = [](void* user, const gemvjit_kernel_info* kernel) {
    (void)static_cast<Results*>(user)->add(*kernel);
    return 0;
  };
  (void)check_kernels(context, list, on_kernel, &results);
  const std::string root = gemvjit_cache_dir(context);
  Preview preview;
  preview.kernels = std::move(results.all());
  locate(root, preview.kernels);
  preview.forecast = make_forecast(root, preview.kernels, jobs);
  return preview;
}

std::string preview_text(const Preview& preview, const StreamStyle& style) {
  struct Counts {
    std::size_t cache = 0, layers = 0, compile = 0;
  };
  std::map<std::pair<int, std::string>, Counts> groups;
  for (const KernelResult& kernel : preview.kernels) {
    Counts& counts = groups[{kernel.family, kernel.arch}];
    ++(kernel.from == "cache" ? counts.cache : kernel.from == "layer" ? counts.layers : counts.compile);
  }
  using Align = Table::Align;
  Table table({{"FAMILY"},
               {"TARGET"},
               {.title = "KERNELS", .align = Align::right, .can_drop = true},
               {"CACHE", Align::right},
               {.title = "LAYERS", .align = Align::right, .can_drop = true},
               {"COMPILE", Align::right},
               {.title = "EACH", .align = Align::right, .can_drop = true}});
  for (const auto& [group, counts] : groups) {
    const auto time = preview.forecast.times.find(static_cast<Family>(group.first));
    const bool has_time = counts.compile > 0 && time != preview.forecast.times.end();
    table.add_row({family_name(group.first), group.second,
                   fmt::format("{}", counts.cache + counts.layers + counts.compile), fmt::format("{}", counts.cache),
                   fmt::format("{}", counts.layers), fmt::format("{}", counts.compile),
                   has_time ? human_seconds(time->second.median_ms / 1000) : "-"});
  }
  return (groups.empty() ? "" : table.text(style)) + wrap_words(forecast_text(preview.forecast), style.columns);
}

RunProgress::RunProgress(ProgressMode mode, WarmupMode run_mode, const Preview* preview)
    : left_(guess_of(preview)), progress_(mode, [this](double now) { return seconds_left(now); }) {
  nlohmann::ordered_json fields{{"mode", mode_name(run_mode)}};
  if (preview != nullptr) {
    for (const KernelResult& kernel : preview->kernels) {
      if (kernel.from == "compile") to_compile_.emplace(kernel.key, kernel.family);
    }
    progress_.update(0, preview->kernels.size());
    fields["forecast"] = forecast_json(preview->forecast);
  }
  progress_.event("start", fields);
}

std::optional<double> RunProgress::seconds_left(double now) {
  const std::lock_guard lock(mutex_);
  return left_ ? left_->seconds(now) : std::nullopt;
}

void RunProgress::kernel(const gemvjit_kernel_info& kernel, const char* status) {
  const std::string key = kernel.key == nullptr ? "" : kernel.key;
  {
    const std::lock_guard lock(mutex_);
    const auto place = to_compile_.find(key);
    if (left_ && place != to_compile_.end()) {
      // Its compile time, as entries remember it: what another process built, or what failed, tells none.
      const bool compiled = kernel.outcome == GEMVJIT_OUTCOME_COMPILED;
      left_->finished(place->second, compiled ? std::optional<double>(kernel.compile_ms) : std::nullopt,
                      Progress::now());
      to_compile_.erase(place);
    }
  }
  progress_.update(kernel.done, kernel.total, key);
  progress_.event("kernel", {{"key", key},
                             {"family", family_name(kernel.family)},
                             {"arch", kernel.arch == nullptr ? "" : kernel.arch},
                             {"status", status},
                             {"ms", std::round(kernel.milliseconds * 1000) / 1000},
                             {"error", kernel.error == nullptr ? "" : kernel.error}});
}

void RunProgress::end(const nlohmann::ordered_json& summary, int exit_code) {
  progress_.event("end", {{"exit_code", exit_code}, {"summary", summary}});
}

}  // namespace gemvjit::tools
