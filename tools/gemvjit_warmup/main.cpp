// gemvjit-warmup: fill the kernel cache. The command line becomes problems (problem_list), the library does the work,
// the results become text or JSON and an exit code (results).
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <exception>
#include <memory>

#include "gemvjit/gemvjit.h"
#include "tools/common/interrupt.h"
#include "tools/common/progress.h"
#include "tools/gemvjit_warmup/cache_access.h"
#include "tools/gemvjit_warmup/problem_list.h"
#include "tools/gemvjit_warmup/results.h"
#include "tools/gemvjit_warmup/warmup_options.h"

namespace gemvjit::tools {
namespace {

struct ContextDeleter {
  void operator()(gemvjit_context* context) const { (void)gemvjit_destroy(context); }
};
using ContextPointer = std::unique_ptr<gemvjit_context, ContextDeleter>;

void complain(const std::string& message) { fmt::print(stderr, "gemvjit-warmup: {}\n", message); }

// The bar and the library's log share stderr; before and after the run there is no bar.
struct Reporter {
  explicit Reporter(const WarmupOptions& o) : options(o), results(o.mode) {}

  const WarmupOptions& options;
  Results results;
  std::unique_ptr<Progress> progress;

  void say(const std::string& line) {
    if (progress) {
      progress->message(line);
    } else {
      fmt::print(stderr, "{}\n", line);
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
  if (reporter.progress) reporter.progress->update(kernel->done, kernel->total);
  if (reporter.options.verbosity > 0) {
    reporter.say(fmt::format("{} {} {:.1f} ms ({})", reporter.results.status_word(result), result.key,
                             result.milliseconds, kernel->flags_text == nullptr ? "" : kernel->flags_text));
  }
  return *interrupt_flag() != 0 ? 1 : 0;
}

gemvjit_log_level log_level(const WarmupOptions& options) {
  if (options.quiet) return GEMVJIT_LOG_ERROR;
  if (options.verbosity == 0) return GEMVJIT_LOG_DEFAULT;
  return options.verbosity == 1 ? GEMVJIT_LOG_INFO : GEMVJIT_LOG_DEBUG;
}

ContextPointer make_context(const WarmupOptions& options, Reporter& reporter) {
  gemvjit_options library_options;
  (void)gemvjit_options_init(&library_options);
  library_options.device = options.wants_native() ? GEMVJIT_DEVICE_CURRENT : GEMVJIT_DEVICE_NONE;
  library_options.cache_dir = options.cache_dir ? options.cache_dir->c_str() : nullptr;
  library_options.compile_threads = options.jobs;
  library_options.log_level = log_level(options);
  library_options.log_callback = on_log;
  library_options.log_user = &reporter;
  gemvjit_context* context = nullptr;
  if (gemvjit_create(&library_options, &context) != GEMVJIT_OK) return nullptr;
  return ContextPointer(context);
}

// A cache that cannot be written is an error only if something has to be written.
bool cache_usable(gemvjit_context* context, const ProblemList& list, Reporter& reporter) {
  const Status writable = try_cache_folder(gemvjit_cache_dir(context));
  if (writable) return true;
  if (gemvjit_check(context, list.problems.data(), list.problems.size(), nullptr, nullptr) == GEMVJIT_OK) {
    reporter.note(fmt::format("{}; nothing has to be written: all is warm", writable.message()));
    return true;
  }
  complain(writable.message());
  return false;
}

gemvjit_status run_mode(gemvjit_context* context, const ProblemList& list, Reporter& reporter) {
  const gemvjit_problem* problems = list.problems.data();
  const std::size_t count = list.problems.size();
  if (reporter.options.mode == WarmupMode::dry_run) return gemvjit_plan(context, problems, count, on_kernel, &reporter);
  if (reporter.options.mode == WarmupMode::check) return gemvjit_check(context, problems, count, on_kernel, &reporter);

  std::vector<gemvjit_status> statuses(count, GEMVJIT_OK);
  gemvjit_warmup_options warmup{};
  warmup.struct_size = sizeof warmup;
  warmup.on_kernel = on_kernel;
  warmup.user = &reporter;
  warmup.cancel = interrupt_flag();
  warmup.problem_status = statuses.data();
  warmup.compile_only = 1;
  warmup.require_cache = 1;
  const gemvjit_status status = gemvjit_warmup(context, problems, count, &warmup);
  if (status != GEMVJIT_OK && status != GEMVJIT_CANCELLED) {
    const std::string error = gemvjit_last_error();
    for (std::size_t i = 0; i < count; ++i) {
      if (statuses[i] == GEMVJIT_OK || statuses[i] == GEMVJIT_CANCELLED) continue;
      reporter.results.add_failed_problem(i, problems[i], statuses[i],
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

void print_results(gemvjit_context* context, const WarmupOptions& options, const Results& results, double seconds) {
  if (options.json) {
    const std::string document = results.json(seconds);
    std::fwrite(document.data(), 1, document.size(), stdout);
  } else {
    const char* folder = gemvjit_cache_dir(context);
    fmt::print("{}{}; cache {}\n", results.table(), results.summary(seconds), *folder != 0 ? folder : "in memory only");
  }
  std::fflush(stdout);
}

int run(const WarmupOptions& options) {
  Reporter reporter(options);
  const ContextPointer context = make_context(options, reporter);
  if (!context) {
    complain(gemvjit_last_error());
    return exit_usage;  // with a GPU not asked for by number, only a bad option or variable fails
  }
  ProblemList list;
  std::string error;
  if (const ExitCode code = make_problem_list(context.get(), options, list, error); code != exit_done) {
    complain(error);
    return code;
  }
  for (const std::string& note : list.notes) reporter.note(note);
  if (options.mode == WarmupMode::build && !cache_usable(context.get(), list, reporter)) return exit_cache_not_writable;

  const auto start = std::chrono::steady_clock::now();
  reporter.progress = std::make_unique<Progress>(Progress::mode_for_stderr(options.quiet));
  const gemvjit_status status = run_mode(context.get(), list, reporter);
  const std::string last_error = gemvjit_last_error();
  reporter.progress->finish();
  reporter.progress.reset();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();

  reporter.results.sort();
  print_results(context.get(), options, reporter.results, seconds);
  show_errors(reporter.results);
  if (status == GEMVJIT_CANCELLED || (*interrupt_flag() != 0 && status != GEMVJIT_OK)) {
    complain("interrupted; what was finished is kept, run again to go on");
    return exit_interrupted;
  }
  const ExitCode code = reporter.results.exit_code();
  if (code == exit_done && status != GEMVJIT_OK) {
    complain(last_error);
    return exit_some_failed;
  }
  return code;
}

}  // namespace
}  // namespace gemvjit::tools

int main(int argc, char** argv) {
  using namespace gemvjit::tools;
  try {
    WarmupOptions options;
    if (const auto code = parse_warmup_options(argc, argv, options)) return *code;
    catch_interrupts();
    return run(options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "gemvjit-warmup: {}\n", error.what());
    return exit_some_failed;
  }
}
