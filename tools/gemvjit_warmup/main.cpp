// gemvjit-warmup: fill the kernel cache. The command line becomes problems or a plan's keys (problem_list,
// kernel_calls, shard), the library does the work, perhaps in processes of its own (isolated_warmup), the results
// become text or JSON and an exit code (results).
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>

#include "gemvjit/gemvjit.h"
#include "tools/common/interrupt.h"
#include "tools/common/output.h"
#include "tools/gemvjit_warmup/arch_report.h"
#include "tools/gemvjit_warmup/budget.h"
#include "tools/gemvjit_warmup/cache_access.h"
#include "tools/gemvjit_warmup/cache_report.h"
#include "tools/gemvjit_warmup/isolated_warmup.h"
#include "tools/gemvjit_warmup/kernel_calls.h"
#include "tools/gemvjit_warmup/problem_list.h"
#include "tools/gemvjit_warmup/remote_use.h"
#include "tools/gemvjit_warmup/results.h"
#include "tools/gemvjit_warmup/run_progress.h"
#include "tools/gemvjit_warmup/shard.h"
#include "tools/gemvjit_warmup/warmup_options.h"
#include "tools/gemvjit_warmup/worker.h"

namespace gemvjit::tools {
namespace {

struct ContextDeleter {
  void operator()(gemvjit_context* context) const { (void)gemvjit_destroy(context); }
};
using ContextPointer = std::unique_ptr<gemvjit_context, ContextDeleter>;

// The bar and the library's log share stderr; before and after the run there is no bar.
struct Reporter {
  explicit Reporter(const WarmupOptions& o) : options(o), results(o.mode), budget(o.max_seconds) {}

  const WarmupOptions& options;
  Results results;
  Budget budget;
  bool out_of_time = false;
  std::size_t left = 0;  // kernels that were not begun for that reason
  std::unique_ptr<RunProgress> progress;

  void say(const std::string& line) {
    if (progress) {
      progress->message(line);
    } else {
      tools::say(line + "\n");
    }
  }
  void note(const std::string& line) {
    if (!options.quiet) say(line);
  }
};

void on_log(void* user, gemvjit_log_level level, const char* message) {
  const char* name = level == GEMVJIT_LOG_ERROR     ? "error"
                     : level == GEMVJIT_LOG_WARNING ? "warning"
                     : level == GEMVJIT_LOG_INFO    ? "info"
                                                    : "debug";
  static_cast<Reporter*>(user)->say(fmt::format("gemvjit {}: {}", name, message));
}

int on_kernel(void* user, const gemvjit_kernel_info* kernel) {
  Reporter& reporter = *static_cast<Reporter*>(user);
  const KernelResult& result = reporter.results.add(*kernel);
  if (reporter.progress) reporter.progress->kernel(*kernel, reporter.results.status_word(result));
  if (reporter.options.verbosity > 0) {
    reporter.say(fmt::format("{} {} {:.1f} ms ({})", reporter.results.status_word(result), result.key,
                             result.milliseconds, kernel->flags_text == nullptr ? "" : kernel->flags_text));
  }
  if (*interrupt_flag() != 0) return 1;  // what is left is counted at the end
  if (reporter.options.mode != WarmupMode::build || !reporter.budget.is_spent()) return 0;
  reporter.left = kernel->total - kernel->done;  // those under way are still reported, and make it less
  reporter.out_of_time = reporter.out_of_time || reporter.left > 0;
  return reporter.out_of_time ? 1 : 0;
}

gemvjit_log_level log_level(const WarmupOptions& options) {
  if (options.quiet) return GEMVJIT_LOG_ERROR;
  if (options.verbosity == 0) return GEMVJIT_LOG_DEFAULT;
  return options.verbosity == 1 ? GEMVJIT_LOG_INFO : GEMVJIT_LOG_DEBUG;
}

// Null, with the exit code, if there can be none; the reason is gemvjit_last_error().
ContextPointer make_context(const WarmupOptions& options, Reporter& reporter, ExitCode& code) {
  gemvjit_options library_options;
  (void)gemvjit_options_init(&library_options);
  library_options.device = options.wants_native() ? GEMVJIT_DEVICE_CURRENT : GEMVJIT_DEVICE_NONE;
  library_options.cache_dir = options.cache_dir ? options.cache_dir->c_str() : nullptr;
  library_options.compile_threads = options.jobs;
  library_options.log_level = log_level(options);
  library_options.log_callback = on_log;
  library_options.log_user = &reporter;
  gemvjit_context* context = nullptr;
  switch (gemvjit_create(&library_options, &context)) {
    case GEMVJIT_OK:
      code = exit_done;
      break;
    case GEMVJIT_INVALID_ARGUMENT:  // an option or variable that means nothing, a tuning table that does not parse
    case GEMVJIT_NOT_FOUND:         // the folder of tuning tables
    case GEMVJIT_IO_ERROR:
      code = exit_usage;
      break;
    default:  // a driver that is there and fails
      code = exit_environment;
  }
  return ContextPointer(context);
}

std::string folder_of(const gemvjit_kernel_info& kernel) {
  const std::string path = kernel.path;
  return path.substr(0, path.rfind('/'));
}

// Folders of the list's entries, one for each target.
std::set<std::string> entry_folders(gemvjit_context* context, const ProblemList& list) {
  std::set<std::string> folders;
  const auto on_planned = [](void* user, const gemvjit_kernel_info* kernel) {
    static_cast<std::set<std::string>*>(user)->insert(folder_of(*kernel));
    return 0;
  };
  std::set<const char*> seen;  // arch of a problem: all of one target point to the same text
  for (const gemvjit_problem& problem : list.problems) {
    if (!seen.insert(problem.arch).second) continue;
    (void)gemvjit_plan(context, &problem, 1, on_planned, &folders);
  }
  std::set<std::string> targets;
  for (const std::string& key : list.keys) {
    if (!targets.insert(key.substr(key.rfind('-') + 1)).second) continue;
    const char* text = key.c_str();
    (void)gemvjit_plan_keys(context, &text, 1, on_planned, &folders);
  }
  return folders;
}

// The folders that lack a whole entry.
std::set<std::string> folders_to_write(gemvjit_context* context, const ProblemList& list) {
  std::set<std::string> folders;
  const auto on_checked = [](void* user, const gemvjit_kernel_info* kernel) {
    if (kernel->outcome != GEMVJIT_OUTCOME_CACHED)
      static_cast<std::set<std::string>*>(user)->insert(folder_of(*kernel));
    return 0;
  };
  (void)check_kernels(context, list, on_checked, &folders);
  return folders;
}

// A folder that cannot be written is an error only if something has to be written there.
bool cache_usable(gemvjit_context* context, const ProblemList& list, Reporter& reporter) {
  std::set<std::string> needed;
  bool checked = false;
  for (const std::string& folder : entry_folders(context, list)) {
    const Status writable = try_cache_folder(folder, reporter.options.cache_dir.value_or(""));
    if (writable) continue;
    if (!checked) needed = folders_to_write(context, list);
    checked = true;
    if (needed.contains(folder)) {
      complain(writable.message());
      return false;
    }
    reporter.note(fmt::format("{}; nothing has to be written there: all is warm", writable.message()));
  }
  return true;
}

gemvjit_status run_isolated(gemvjit_context* context, const ProblemList& list, Reporter& reporter) {
  IsolationOptions isolation;
  isolation.jobs = compile_jobs(reporter.options.jobs);
  isolation.timeout_s = reporter.options.isolate_timeout_s;
  isolation.memory_mb = reporter.options.isolate_memory_mb;
  isolation.log_level = log_level(reporter.options);
  isolation.log_callback = on_log;
  isolation.on_kernel = on_kernel;
  isolation.user = &reporter;
  isolation.cancel = interrupt_flag();
  return warm_isolated(context, list, isolation);
}

// What the cache has and lacks is a dry run's answer, and no failure.
gemvjit_status run_mode(gemvjit_context* context, const ProblemList& list, Reporter& reporter) {
  const std::size_t count = list.keys.empty() ? list.problems.size() : list.keys.size();
  const WarmupMode mode = reporter.options.mode;
  if (mode != WarmupMode::build) {
    const gemvjit_status status = check_kernels(context, list, on_kernel, &reporter);
    const bool is_answer = status == GEMVJIT_NOT_READY || status == GEMVJIT_ENTRY_DAMAGED;
    return mode == WarmupMode::dry_run && is_answer ? GEMVJIT_OK : status;
  }
  if (reporter.options.isolate) {
    fetch_for_workers(context, list);
    const NoRemoteForWorkers no_remote_for_workers;
    return run_isolated(context, list, reporter);
  }

  std::vector<gemvjit_status> statuses(count, GEMVJIT_OK);
  gemvjit_warmup_options warmup{};
  warmup.struct_size = sizeof warmup;
  warmup.on_kernel = on_kernel;
  warmup.user = &reporter;
  warmup.cancel = interrupt_flag();
  warmup.problem_status = statuses.data();
  warmup.level = GEMVJIT_LEVEL_COMPILED;
  warmup.require_cache = 1;
  const gemvjit_status status = warm_kernels(context, list, warmup);
  if (status != GEMVJIT_OK && status != GEMVJIT_CANCELLED) {
    const std::string error = gemvjit_last_error();
    for (std::size_t i = 0; i < count; ++i) {
      if (statuses[i] == GEMVJIT_OK || statuses[i] == GEMVJIT_CANCELLED) continue;
      const gemvjit_problem problem = list.keys.empty() ? list.problems[i] : gemvjit_problem{};
      reporter.results.add_failed_problem(i, problem, statuses[i],
                                          statuses[i] == status ? error : gemvjit_status_name(statuses[i]));
    }
  }
  return status;
}

// Failed kernels often have one cause: each text is shown once, with the kernels it stands for.
void show_errors(const Results& results) {
  std::vector<std::pair<std::string, std::size_t>> errors;
  for (const KernelResult& result : results.all()) {
    if (result.outcome != GEMVJIT_OUTCOME_FAILED) continue;
    auto place = errors.begin();
    while (place != errors.end() && place->first != result.error) ++place;
    if (place != errors.end()) {
      ++place->second;
    } else {
      errors.emplace_back(result.error, 1);
    }
  }
  for (const auto& [error, count] : errors) {
    complain(count == 1 ? error : fmt::format("{} ({} kernels)", error, count));
  }
}

gemvjit_stats_data counters(gemvjit_context* context) {
  gemvjit_stats_data stats{};
  stats.struct_size = sizeof stats;
  (void)gemvjit_stats(context, &stats);
  return stats;
}

void print_results(gemvjit_context* context, const WarmupOptions& options, const ProblemList& list, Results& results,
                   double seconds) {
  const std::string folder = gemvjit_cache_dir(context);
  std::optional<Forecast> forecast;
  if (options.mode == WarmupMode::check) explain_misses(folder, results.all());
  if (options.mode == WarmupMode::dry_run) {
    locate(folder, results.all());
    forecast = make_forecast(folder, results.all(), compile_jobs(options.jobs));
  }
  if (options.json) {
    nlohmann::ordered_json document = results.json(seconds, counters(context));
    if (forecast) document["summary"]["forecast"] = forecast_json(*forecast);
    if (!list.models.empty()) document["models"] = list.models;
    if (!options.arch_names.empty()) document["archs"] = archs_json(options);
    print_json(document);
  } else {
    print_table(results.table());
    tell("{}{}; cache {}\n", options.mode == WarmupMode::check ? misses_text(results.all()) : "",
         results.summary(seconds) + remote_text(counters(context)), folder.empty() ? "in memory only" : folder);
    if (forecast) tell("{}", wrap_words(forecast_text(*forecast), style_of(STDOUT_FILENO).columns));
  }
  std::fflush(stdout);
}

ExitCode make_list(gemvjit_context* context, const WarmupOptions& options, ProblemList& list, std::string& error) {
  ExitCode code = options.plan_in.empty() ? make_problem_list(context, options, list, error)
                                          : make_planned_list(context, options, list, error);
  if (code == exit_done && !options.plan_out.empty()) {
    code = write_plan_file(options.plan_out, plan_of(context, list), error);
  }
  if (code == exit_done) cut_to_shard(context, options.shard, list);
  return code;
}

// What a build finds, said first. Nothing where nobody is to be told.
std::optional<Preview> show_preview(gemvjit_context* context, const ProblemList& list, ProgressMode mode,
                                    Reporter& reporter) {
  const WarmupOptions& options = reporter.options;
  if (options.mode != WarmupMode::build || mode == ProgressMode::none) return std::nullopt;
  Preview preview = look_ahead(context, list, compile_jobs(options.jobs));
  if (mode != ProgressMode::json) {
    std::string text = preview_text(preview, style_of(STDERR_FILENO));
    text.pop_back();  // note() ends the line
    reporter.note(text);
  }
  return preview;
}

// Of an interrupted run: the kernels of which nothing was reported, whether one was or not.
std::size_t count_left(gemvjit_context* context, const ProblemList& list, const Results& results) {
  std::size_t total = 0;
  const auto on_planned = [](void* user, const gemvjit_kernel_info* kernel) {
    *static_cast<std::size_t*>(user) = kernel->total;
    return 1;
  };
  (void)plan_kernels(context, list, on_planned, &total);
  return total - std::min(total, results.all().size());
}

// What stands on stderr and stdout after the run.
ExitCode report(gemvjit_context* context, const ProblemList& list, Reporter& reporter, gemvjit_status status,
                double seconds) {
  const std::string last_error = gemvjit_last_error();
  const bool interrupted = *interrupt_flag() != 0 && status != GEMVJIT_OK;
  if (interrupted) reporter.left = count_left(context, list, reporter.results);
  reporter.results.sort();
  reporter.results.set_left(reporter.left);
  print_results(context, reporter.options, list, reporter.results, seconds);
  show_errors(reporter.results);
  if (status == GEMVJIT_CANCELLED && !interrupted && reporter.out_of_time) {
    reporter.note(fmt::format("--max-seconds {} are over, {} kernels are left: run again to go on",
                              reporter.options.max_seconds, reporter.left));
    return reporter.results.exit_code();
  }
  if (status == GEMVJIT_CANCELLED || interrupted) {
    complain(
        fmt::format("interrupted; what was finished is kept, {} kernels are left: run again to go on", reporter.left));
    return exit_interrupted;
  }
  const ExitCode code = reporter.results.exit_code();
  if (code == exit_done && status != GEMVJIT_OK) {
    complain(last_error);
    return exit_some_failed;
  }
  return code;
}

int run(const WarmupOptions& options) {
  Reporter reporter(options);
  ExitCode context_code = exit_done;
  name_remote(options);
  const ContextPointer context = make_context(options, reporter, context_code);
  if (!context) {
    complain(gemvjit_last_error());
    return context_code;
  }
  ProblemList list;
  std::string error;
  if (const ExitCode code = make_list(context.get(), options, list, error); code != exit_done) {
    complain(error);
    return code;
  }
  for (const std::string& note : arch_notes(options)) reporter.note(note);
  for (const std::string& note : list.notes) reporter.note(note);
  if (options.mode == WarmupMode::build && !cache_usable(context.get(), list, reporter)) return exit_cache_not_writable;

  const ProgressMode mode = progress_mode(options.progress, options.quiet, style_of(STDERR_FILENO));
  const std::optional<Preview> preview = show_preview(context.get(), list, mode, reporter);
  const auto start = std::chrono::steady_clock::now();
  reporter.progress = std::make_unique<RunProgress>(mode, options.mode, preview ? &*preview : nullptr);
  const gemvjit_status status = run_mode(context.get(), list, reporter);
  reporter.progress->stop_drawing();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  ExitCode code = report(context.get(), list, reporter, status, seconds);
  if (options.mode == WarmupMode::build) code = finish_remote(context.get(), options, list, code);
  if (mode == ProgressMode::json)
    reporter.progress->end(reporter.results.json(seconds, counters(context.get()))["summary"], code);
  return code;
}

}  // namespace
}  // namespace gemvjit::tools

int main(int argc, char** argv) {
  using namespace gemvjit::tools;
  if (argc > 1 && std::string_view(argv[1]) == kWorkerArgument) return run_worker(argc, argv);
  return run_tool("gemvjit-warmup", argc, argv, [&]() -> int {
    WarmupOptions options;
    if (const auto code = parse_warmup_options(argc, argv, options)) return *code;
    catch_interrupts();
    // Who reads stderr or stdout no more, as head, ends no compile: stderr is not missed, stdout is told at the end.
    ignore_broken_pipes();
    return run(options);
  });
}
