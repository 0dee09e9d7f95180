#include "tools/gemvjit_warmup/results.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "src/catalog/reasons.h"
#include "tools/common/human_units.h"
#include "tools/common/table.h"
#include "tools/gemvjit_warmup/problem_list.h"

namespace gemvjit::tools {
namespace {

std::string text_of(const char* text) { return text == nullptr ? "" : text; }

// What does not happen in a run where all is well and this process is alone; named as in gemvjit.h.
std::vector<std::pair<const char*, std::uint64_t>> unusual_counters(const gemvjit_stats_data& stats) {
  return {{"cache_damaged", stats.cache_damaged},
          {"cache_unreadable", stats.cache_unreadable},
          {"cache_quarantined", stats.cache_quarantined},
          {"cache_determinism_alarms", stats.cache_determinism_alarms},
          {"cache_write_failures", stats.cache_write_failures},
          {"cache_writes_refused", stats.cache_writes_refused},
          {"cache_evictions", stats.cache_evictions},
          {"cache_thrashed", stats.cache_thrashed},
          {"remote_hits", stats.remote_hits},
          {"remote_misses", stats.remote_misses},
          {"remote_failures", stats.remote_failures},
          {"remote_uploads", stats.remote_uploads},
          {"remote_upload_failures", stats.remote_upload_failures},
          {"build_waits", stats.build_waits},
          {"build_stale_waits", stats.build_stale_waits},
          {"build_shared_failures", stats.build_shared_failures}};
}

nlohmann::ordered_json nearest_json(const KernelResult& result) {
  if (!result.nearest) return nullptr;
  const NearestEntry& nearest = *result.nearest;
  return {{"key", nearest.key},
          {"path", nearest.path},
          {"field", nearest.field},
          {"wanted", nearest.wanted},
          {"found", nearest.found}};
}

Paint paint_of(std::string_view status) {
  if (status == "compiled" || status == "cached") return Paint::good;
  return status == "missing" ? Paint::warning : Paint::bad;
}

// Why a kernel is not there, else where its configuration comes from.
std::string reason_of(const KernelResult& result, WarmupMode mode) {
  if (result.status == GEMVJIT_ENTRY_DAMAGED) return std::string(reason_token(Reason::entry_damaged));
  if (result.outcome == GEMVJIT_OUTCOME_FAILED) return std::string(reason_token(Reason::build_failed));
  if (mode == WarmupMode::check && result.status == GEMVJIT_IO_ERROR) {
    return std::string(reason_token(Reason::entry_unreadable));
  }
  const bool is_missing = mode == WarmupMode::check && result.outcome == GEMVJIT_OUTCOME_MISSING;
  return is_missing ? std::string(reason_token(Reason::not_in_cache)) : result.match;
}

}  // namespace

const KernelResult& Results::add(const gemvjit_kernel_info& kernel) {
  KernelResult result;
  result.key = text_of(kernel.key);
  result.digest = text_of(kernel.digest);
  result.arch = text_of(kernel.arch);
  result.match = text_of(kernel.match);
  result.error = text_of(kernel.error);
  result.path = text_of(kernel.path);
  result.n = kernel.n;
  result.k = kernel.k;
  result.flags = kernel.flags;
  result.family = kernel.family;
  result.nt = kernel.nt;
  result.outcome = static_cast<gemvjit_outcome>(kernel.outcome);
  result.status = static_cast<gemvjit_status>(kernel.status);
  result.milliseconds = kernel.milliseconds;
  result.registers = kernel.registers;
  result.smem_bytes = kernel.smem_bytes;
  result.spill_bytes = kernel.spill_bytes;
  result.problem_index = kernel.problem_index;
  if (mode_ == WarmupMode::dry_run && result.outcome != GEMVJIT_OUTCOME_CACHED) {
    // That it is not there, or damaged, is why it would be compiled, and no failure.
    if (result.status == GEMVJIT_NOT_READY) result.error.clear();
    result.outcome = GEMVJIT_OUTCOME_MISSING;
    result.status = GEMVJIT_OK;
  }
  results_.push_back(std::move(result));
  return results_.back();
}

void Results::add_failed_problem(std::size_t index, const gemvjit_problem& problem, gemvjit_status status,
                                 std::string error) {
  const bool reported = std::any_of(results_.begin(), results_.end(), [&](const KernelResult& result) {
    return result.outcome == GEMVJIT_OUTCOME_FAILED && (result.problem_index == index || result.status == status);
  });
  if (reported) return;
  KernelResult result;
  result.arch = text_of(problem.arch);
  result.error = std::move(error);
  result.n = problem.n;
  result.k = problem.k;
  result.family = problem.family;
  result.nt = problem.nt;
  result.status = status;
  result.problem_index = index;
  results_.push_back(std::move(result));
}

void Results::sort() {
  std::stable_sort(results_.begin(), results_.end(), [](const KernelResult& a, const KernelResult& b) {
    return std::tie(a.problem_index, a.nt, a.key) < std::tie(b.problem_index, b.nt, b.key);
  });
}

std::size_t Results::count(gemvjit_outcome outcome) const {
  return static_cast<std::size_t>(std::count_if(results_.begin(), results_.end(),
                                                [&](const KernelResult& result) { return result.outcome == outcome; }));
}

const char* Results::status_word(const KernelResult& result) const {
  if (mode_ == WarmupMode::dry_run) return "planned";
  if (result.status == GEMVJIT_ENTRY_DAMAGED) return "damaged";
  switch (result.outcome) {
    case GEMVJIT_OUTCOME_COMPILED:
      return "compiled";
    case GEMVJIT_OUTCOME_CACHED:
      return "cached";
    case GEMVJIT_OUTCOME_MISSING:
      return "missing";
    case GEMVJIT_OUTCOME_FAILED:
      break;
  }
  return "failed";
}

nlohmann::ordered_json Results::json(double seconds, const gemvjit_stats_data& stats) const {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const KernelResult& result : results_) {
    list.push_back({{"key", result.key},
                    {"digest", result.digest},
                    {"family", family_name(result.family)},
                    {"n", result.n},
                    {"k", result.k},
                    {"nt", result.nt},
                    {"flags", fmt::format("{:016x}", result.flags)},
                    {"arch", result.arch},
                    {"status", status_word(result)},
                    {"reason", reason_of(result, mode_)},
                    {"ms", std::round(result.milliseconds * 1000) / 1000},
                    {"error", result.error}});
    if (mode_ == WarmupMode::dry_run) {
      list.back()["from"] = result.from;
      list.back()["from_place"] = result.from_place;
    }
    if (mode_ == WarmupMode::check && result.outcome == GEMVJIT_OUTCOME_MISSING) {
      list.back()["nearest"] = nearest_json(result);
    }
  }
  nlohmann::ordered_json summary{{"total", results_.size() + left_},
                                 {"compiled", count(GEMVJIT_OUTCOME_COMPILED)},
                                 {"cached", count(GEMVJIT_OUTCOME_CACHED)},
                                 {"failed", count(GEMVJIT_OUTCOME_FAILED)},
                                 {"left", left_},
                                 {"seconds", std::round(seconds * 1000) / 1000}};
  for (const auto& [name, value] : unusual_counters(stats)) {
    if (value != 0) summary[name] = value;
  }
  return {{"results", list}, {"summary", summary}};
}

Table Results::table() const {
  using Align = Table::Align;
  if (mode_ == WarmupMode::dry_run) {
    Table table({Table::Column{.title = "KEY", .can_shorten = true},
                 {"FAMILY"},
                 {.title = "CONFIGURATION", .can_drop = true},
                 {.title = "DIGEST", .can_drop = true},
                 {.title = "FROM", .can_shorten = true}});
    for (const KernelResult& result : results_) {
      table.add_row({result.key, family_name(result.family), result.match, result.digest.substr(0, 16),
                     result.from == "layer" ? "layer " + result.from_place : result.from});
    }
    return table;
  }
  Table table({Table::Column{.title = "KEY", .can_shorten = true},
               {"FAMILY"},
               Table::Column{.title = "STATUS", .paint = paint_of},
               {"MS", Align::right},
               {.title = "REGS", .align = Align::right, .can_drop = true},
               {.title = "SMEM", .align = Align::right, .can_drop = true},
               {.title = "SPILL", .align = Align::right, .can_drop = true}});
  for (const KernelResult& result : results_) {
    const bool built = result.outcome == GEMVJIT_OUTCOME_COMPILED || result.outcome == GEMVJIT_OUTCOME_CACHED;
    const auto number = [&](std::uint32_t value) { return built ? fmt::format("{}", value) : std::string("-"); };
    const std::string key = result.key.empty() ? fmt::format("{}x{} {}", result.n, result.k, result.arch) : result.key;
    table.add_row({key, family_name(result.family), status_word(result), fmt::format("{:.1f}", result.milliseconds),
                   number(result.registers), number(result.smem_bytes), number(result.spill_bytes)});
  }
  return table;
}

std::string Results::summary(double seconds) const {
  const std::size_t total = results_.size(), cached = count(GEMVJIT_OUTCOME_CACHED);
  switch (mode_) {
    case WarmupMode::dry_run:
      return fmt::format("{} kernels planned", total);
    case WarmupMode::check:
      return fmt::format("{} kernels: {} cached, {} missing, {} failed or damaged, in {}", total, cached,
                         count(GEMVJIT_OUTCOME_MISSING), count(GEMVJIT_OUTCOME_FAILED), human_seconds(seconds));
    case WarmupMode::build:
      break;
  }
  const std::string left = left_ == 0 ? "" : fmt::format(", {} left", left_);
  return fmt::format("{} kernels: {} compiled, {} cached, {} failed{}, in {}", total + left_,
                     count(GEMVJIT_OUTCOME_COMPILED), cached, count(GEMVJIT_OUTCOME_FAILED), left,
                     human_seconds(seconds));
}

std::string remote_text(const gemvjit_stats_data& stats) {
  if (stats.remote_hits + stats.remote_misses + stats.remote_failures == 0) return "";
  const std::string failed = stats.remote_failures == 0 ? "" : fmt::format(", {} failed", stats.remote_failures);
  return fmt::format("; remote cache: {} fetched, {} not there{}", stats.remote_hits, stats.remote_misses, failed);
}

ExitCode Results::exit_code() const {
  const auto any = [&](auto predicate) { return std::any_of(results_.begin(), results_.end(), predicate); };
  const auto any_status = [&](gemvjit_status status) {
    return any([&](const KernelResult& result) { return result.status == status; });
  };
  // What has one cause for many kernels comes first; a damaged entry says more than a missing one.
  if (any_status(GEMVJIT_CACHE_NOT_WRITABLE)) return exit_cache_not_writable;
  if (any_status(GEMVJIT_NO_COMPILER) || any_status(GEMVJIT_NO_DRIVER) || any_status(GEMVJIT_CUDA_ERROR)) {
    return exit_environment;
  }
  if (mode_ == WarmupMode::check && any_status(GEMVJIT_ENTRY_DAMAGED)) return exit_entry_damaged;
  if (count(GEMVJIT_OUTCOME_FAILED) > 0) return exit_some_failed;
  if (mode_ == WarmupMode::check && count(GEMVJIT_OUTCOME_MISSING) > 0) return exit_not_warm;
  if (left_ > 0) return exit_not_warm;
  return exit_done;
}

}  // namespace gemvjit::tools
