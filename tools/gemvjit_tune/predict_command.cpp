#include "tools/gemvjit_tune/predict_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <thread>

#include "src/base/files.h"
#include "src/cuda/nvrtc_api.h"
#include "src/tuning/table_data.h"
#include "tools/common/command_line.h"
#include "tools/gemvjit_tune/prediction.h"

namespace gemvjit::tools {
namespace {

int fail(const Status& status, int exit_code) {
  complain(status.text());
  return exit_code;
}

Result<std::vector<Arch>> served_targets(const std::vector<std::string>& names) {
  std::vector<Arch> archs;
  for (const std::string& name : names) {
    GEMVJIT_TRY_ASSIGN(const Arch arch, Arch::parse(name));
    GEMVJIT_TRY(arch_facts(arch).status());
    archs.push_back(arch);
  }
  return archs;
}

// What the library would refuse is refused, with its message. not_found is said by the reader for an absent file, of
// which a table to predict from must not be made up.
Result<TableFile> read_source(const std::string& path) {
  constexpr std::size_t kTableLimit = 64u << 20;
  GEMVJIT_TRY_ASSIGN(const Bytes bytes, read_file(path, kTableLimit));
  const std::string text(bytes.begin(), bytes.end());
  GEMVJIT_TRY(parse_table(path, text).status());
  return TableFile::parse(path, text);
}

// What was measured took a GPU: it is not overwritten.
Status check_output(const std::string& path) {
  const auto present = read_source(path);
  if (!present) return present.status().code() == StatusCode::not_found ? Status::ok() : present.status();
  if (present->known().empty()) return Status::ok();
  return {StatusCode::invalid_argument, fmt::format("{} holds measured entries: predict into another file", path)};
}

void print_report(const TuneOptions& options, const PredictionReport& report) {
  if (options.json) {
    print_json({{"output", options.output},
                {"archs", options.predict.archs},
                {"entries", report.entries.size()},
                {"defaults", report.defaults.size()},
                {"compiled", report.compiled},
                {"stepped_back", report.stepped_back},
                {"failures", report.failures}});
    return;
  }
  fmt::print("{}: {} entries and {} default rows predicted; {} kernels compiled, {} configurations stepped back\n",
             options.output, report.entries.size(), report.defaults.size(), report.compiled, report.stepped_back);
}

}  // namespace

int predict_command(const TuneOptions& options) {
  const PredictOptions& asked = options.predict;
  const auto targets = served_targets(asked.archs);
  if (!targets) return fail(targets.status(), exit_usage);
  const auto source = read_source(asked.from);
  if (!source) return fail(source.status(), exit_usage);
  const auto from_archs = served_targets(source->archs());
  if (!from_archs) return fail(from_archs.status(), exit_usage);
  if (from_archs->empty()) return fail({StatusCode::invalid_argument, asked.from + " lists no target"}, exit_usage);
  if (const Status writable = check_output(options.output); !writable) return fail(writable, exit_usage);
  std::unique_ptr<Compiler> compiler;
  if (asked.sample > 0) {
    const auto nvrtc = cuda::load_nvrtc(cuda::nvrtc_search_from_environment(), targets->front().sm, "compile kernels");
    if (!nvrtc) return fail(nvrtc.status(), exit_environment);
    compiler = make_nvrtc_compiler(*nvrtc);
    for (const Arch& arch : *targets) {
      if (compiler->supports(arch)) continue;
      return fail({StatusCode::no_compiler, fmt::format("{} has no {}", compiler->version(), arch.text())},
                  exit_environment);
    }
  }
  const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  WorkPool pool(options.jobs > 0 ? options.jobs : cores);
  const auto report =
      predict_table(*source, {*from_archs, asked.from_sm_count, asked.from_gb_per_s},
                    {*targets, options.sm_count, asked.gb_per_s, asked.clusters}, asked.sample, compiler.get(), pool);
  if (!report) return fail(report.status(), exit_usage);
  const TableFile made = TableFile::predicted(asked.archs, report->entries, report->defaults);
  if (const auto checked = parse_table(options.output, made.text()); !checked) {
    return fail({StatusCode::internal_error,
                 fmt::format("what was predicted is no table of the library: {}", checked.status().message())},
                exit_environment);
  }
  const Status written = made.write(options.output);
  if (!written) return fail(written, exit_environment);
  print_report(options, *report);
  for (const std::string& failure : report->failures) complain(failure);
  return report->failures.empty() ? exit_done : exit_some_failed;
}

}  // namespace gemvjit::tools
