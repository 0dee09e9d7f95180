// gemvjit-tune: searches the fastest configuration of shapes on the GPUs here and writes a tuning table.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "cache/size_limit.h"
#include "embedded/build_commit.h"
#include "gemvjit/gemvjit.h"
#include "src/cuda/nvrtc_api.h"
#include "tools/common/command_line.h"
#include "tools/common/interrupt.h"
#include "tools/gemvjit_tune/case_plan.h"
#include "tools/gemvjit_tune/predict_command.h"
#include "tools/gemvjit_tune/results.h"
#include "tools/gemvjit_tune/runner.h"
#include "tools/gemvjit_tune/tune_options.h"

namespace gemvjit::tools {
namespace {

int fail(const Status& status, int exit_code) {
  complain(status.text());
  return exit_code;
}

int fail_usage(const Status& status) {
  return fail(status, status.code() == StatusCode::not_found ? exit_nothing_found : exit_usage);
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  char text[16] = "";
  if (gmtime_r(&now, &utc) == nullptr || std::strftime(text, sizeof text, "%Y-%m-%d", &utc) == 0) return "unknown";
  return text;
}

// The device's best target that the compiler has, or the one that was asked for.
Result<Arch> choose_arch(const TuneOptions& options, const Compiler& compiler, int sm) {
  if (!options.arch.empty()) {
    GEMVJIT_TRY_ASSIGN(const Arch arch, Arch::parse(options.arch));
    if (compiler.supports(arch)) return arch;
    return Status(StatusCode::no_compiler, fmt::format("{} does not compile for {}", compiler.version(), arch.text()));
  }
  for (const Arch& arch : targets_for_device(sm / 10, sm % 10)) {
    if (compiler.supports(arch)) return arch;
  }
  return Status(StatusCode::no_compiler, fmt::format("{} does not compile for sm_{}", compiler.version(), sm));
}

int list(const TuneOptions& options, const std::vector<TuneCase>& cases) {
  const auto arch = Arch::parse(options.arch);
  if (!arch) return fail(arch.status(), exit_usage);
  if (const auto facts = arch_facts(*arch); !facts) return fail(facts.status(), exit_usage);
  const auto book = SampleBook::open("");
  const Machine machine{*arch, options.sm_count};
  std::vector<ListedCase> listed;
  for (const TuneCase& c : cases) {
    listed.push_back({c, make_seeds(c, machine, options.quick, options.candidates(), **book, {})});
  }
  options.json ? print_list_json(listed, machine) : print_list(listed, machine);
  return exit_done;
}

// What a run reads before it starts, and the device that says what the target is.
struct Setup {
  std::unique_ptr<GpuHarness> gpu;  // keeps the first device's context for the threads
  std::unique_ptr<Compiler> compiler;
  std::unique_ptr<CubinStore> store;
  std::unique_ptr<SampleBook> book;
  TableFile table = TableFile::fresh("sm_80");
  Baseline baseline;
  RunSettings settings;
};

// An exit code if it cannot start.
int set_up(const TuneOptions& options, Setup& setup) {
  auto gpu = GpuHarness::open(options.devices.front());
  if (!gpu) return fail(gpu.status(), exit_environment);
  setup.gpu = std::move(*gpu);
  const int sm = setup.gpu->sm();
  const auto nvrtc = cuda::load_nvrtc(cuda::nvrtc_search_from_environment(), sm, "compile candidates");
  if (!nvrtc) return fail(nvrtc.status(), exit_environment);
  setup.compiler = make_nvrtc_compiler(*nvrtc);
  const auto arch = choose_arch(options, *setup.compiler, sm);
  if (!arch) {
    return fail(arch.status(), arch.status().code() == StatusCode::invalid_argument ? exit_usage : exit_environment);
  }
  if (!options.cache_dir.empty()) {
    const Log log = Log::create(LogLevel::warning);
    setup.store =
        make_size_limited_store(make_dir_store(options.cache_dir, log), {.max_bytes = options.cache_max_bytes}, log);
  }
  auto book = SampleBook::open(options.samples);
  if (!book) return fail(book.status(), exit_usage);
  setup.book = std::move(*book);
  if (setup.book->damaged_lines() > 0) {
    say(fmt::format("gemvjit-tune: {} lines of {} are damaged and not used\n", setup.book->damaged_lines(),
                    options.samples));
  }
  auto table = options.output.empty() ? TableFile::fresh(arch->text()) : TableFile::read(options.output, arch->text());
  if (!table) return fail(table.status(), exit_usage);
  setup.table = std::move(*table);
  if (!options.baseline.empty()) {
    auto baseline = Baseline::read(options.baseline);
    if (!baseline) return fail(baseline.status(), exit_usage);
    setup.baseline = std::move(*baseline);
  }
  RunSettings& s = setup.settings;
  s.arch = *arch;
  s.quick = options.quick, s.max_candidates = options.candidates(), s.replays = options.replays;
  s.alternative = options.alternative, s.cublaslt = options.cublaslt, s.budget_seconds = options.budget_seconds;
  s.kernel_seconds = options.kernel_seconds;
  s.commit = options.commit.empty() ? build_commit : options.commit;
  s.date = today(), s.tool = fmt::format("gemvjit-tune {}", gemvjit_version());
  s.devices = options.devices;
  return exit_done;
}

int report_run(const TuneOptions& options, Setup& setup, const RunReport& report) {
  options.json ? print_results_json(report) : print_results(report);
  if (!options.output.empty()) {
    setup.table.merge(table_entries(report));
    if (const Status written = setup.table.write(options.output); !written) return fail(written, exit_environment);
  }
  if (report.unfinished > 0) {
    say(fmt::format("gemvjit-tune: {} cases are left{}\n", report.unfinished,
                    options.samples.empty() ? "" : "; run again with the same --samples to go on"));
  }
  for (const std::string& failure : report.device_failures) complain(failure);
  if (*interrupt_flag() != 0) return exit_interrupted;
  const bool all =
      std::all_of(report.results.begin(), report.results.end(), [](const CaseResult& one) { return one.choice.found; });
  return all && report.device_failures.empty() ? exit_done : exit_some_failed;
}

int run(const TuneOptions& options) {
  const auto cases = make_cases(options.request);
  if (!cases) return fail_usage(cases.status());
  if (cases->refused > 0) {
    say(fmt::format("gemvjit-tune: {} shapes are left out, the first: {}\n", cases->refused, cases->first_refusal));
  }
  if (cases->cases.empty()) return fail({StatusCode::not_found, "no shapes to tune"}, exit_nothing_found);
  if (options.list) return list(options, cases->cases);
  Setup setup;
  if (const int exit_code = set_up(options, setup); exit_code != exit_done) return exit_code;
  catch_interrupts();
  const HostBlocks blocks;
  const KernelSource source(*setup.compiler, setup.store.get(), *setup.book);
  RunReport report;
  {
    Progress progress(progress_mode(options.progress, options.quiet, style_of(STDERR_FILENO)));
    progress.event("start", nlohmann::ordered_json::object());
    // Last: its threads use all of the above.
    const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    WorkPool pool(options.jobs > 0 ? options.jobs : cores);
    report = run_cases({setup.settings, cases->cases, setup.table, setup.baseline, source, *setup.book, pool, progress,
                        blocks, [] { return *interrupt_flag() != 0; }});
    progress.finish();
    progress.event("end", nlohmann::ordered_json::object());
  }
  return report_run(options, setup, report);
}

}  // namespace
}  // namespace gemvjit::tools

int main(int argc, char** argv) {
  using namespace gemvjit::tools;
  return run_tool("gemvjit-tune", argc, argv, [&]() -> int {
    TuneOptions options;
    if (const auto exit_code = parse_tune_options(argc, argv, options)) return *exit_code;
    return options.predict.archs.empty() ? run(options) : predict_command(options);
  });
}
