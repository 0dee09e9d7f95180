// gemvjit-verify: both GEMVs on the real weights of a checkpoint, against a float64 reference from the same bytes, with
// the time of a launch. Without a GPU it says so in one line and exits 0.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "gemvjit/gemvjit.h"
#include "tools/common/command_line.h"
#include "tools/common/exit_codes.h"
#include "tools/common/library_status.h"
#include "tools/common/output.h"
#include "tools/common/printable.h"
#include "tools/common/table.h"
#include "tools/gemvjit_verify/checkpoint.h"
#include "tools/gemvjit_verify/exit_texts.h"
#include "tools/gemvjit_verify/launch_overhead.h"
#include "tools/gemvjit_verify/layer_check.h"
#include "tools/gemvjit_verify/loaded_memory.h"

namespace gemvjit::tools {
namespace {

constexpr const char* examples =
    "Examples:\n"
    "  gemvjit-verify --nvfp4 models/minilm-nvfp4 --bf16 models/minilm-bf16 --all\n"
    "  gemvjit-verify --launch-overhead --json";

struct VerifyOptions {
  std::string nvfp4, bf16, cache_dir;
  bool has_cache_dir = false;
  std::vector<std::int64_t> tokens = {1, 8, 16, 32};
  std::uint64_t seed = 1;
  bool all = false, launch_overhead = false, loaded_memory = false, json = false;
};

std::optional<int> parse(int argc, char** argv, VerifyOptions& options) {
  CLI::App app("Run the GEMVs on real weights and compare with a float64 reference.", "gemvjit-verify");
  app.set_version_flag("--version", gemvjit_version());
  app.add_option("--nvfp4", options.nvfp4, "folder of safetensors with NVFP4 layers (ModelOpt's layout)")
      ->type_name("DIR");
  app.add_option("--bf16", options.bf16, "folder of safetensors with BF16, F16 or F32 layers")->type_name("DIR");
  app.add_option("--m", options.tokens, "numbers of tokens")->type_name("N")->delimiter(',')->check(CLI::Range(1, 32));
  app.add_option("--seed", options.seed, "of the random activations")->type_name("N");
  auto* cache = app.add_option("--cache-dir", options.cache_dir, "kernel cache; as for gemvjit-warmup if not said")
                    ->type_name("DIR");
  app.add_flag("--all", options.all, "every layer; else one of each shape");
  app.add_flag("--launch-overhead", options.launch_overhead,
               "measure the host time of a launch against a bare driver call");
  app.add_flag("--loaded-memory", options.loaded_memory, "measure the host memory of about 100 loaded kernels");
  app.add_flag("--json", options.json, "one JSON document on stdout");
  add_common_options(app);
  app.footer(exit_codes_text(exit_texts) + examples);
  if (const auto exit_code = parse_command_line(app, argc, argv)) return exit_code;
  options.has_cache_dir = cache->count() > 0;
  if (options.has_cache_dir && options.cache_dir.empty()) {
    complain("--cache-dir is empty; name a folder");
    return exit_usage;
  }
  if (options.nvfp4.empty() && options.bf16.empty() && !options.launch_overhead && !options.loaded_memory) {
    complain("nothing to do: name a checkpoint with --nvfp4 or --bf16, or use --launch-overhead or --loaded-memory");
    return exit_usage;
  }
  return std::nullopt;
}

struct ContextDeleter {
  void operator()(gemvjit_context* context) const { (void)gemvjit_destroy(context); }
};
using ContextPointer = std::unique_ptr<gemvjit_context, ContextDeleter>;

Result<ContextPointer> make_context(const VerifyOptions& options) {
  gemvjit_options request;
  GEMVJIT_TRY(from_library(gemvjit_options_init(&request)));
  request.device = 0;
  if (options.has_cache_dir) request.cache_dir = options.cache_dir.c_str();
  gemvjit_context* context = nullptr;
  GEMVJIT_TRY(from_library(gemvjit_create(&request, &context)));
  return ContextPointer(context);
}

Status warm(gemvjit_context* context, const std::vector<LinearLayer>& layers) {
  std::vector<gemvjit_problem> problems(layers.size());
  for (std::size_t i = 0; i < layers.size(); ++i) {
    GEMVJIT_TRY(from_library(gemvjit_problem_init(&problems[i], family_of(layers[i]), layers[i].n, layers[i].k)));
    problems[i].allow_untuned = 1;
  }
  return from_library(gemvjit_warmup(context, problems.data(), problems.size(), nullptr));
}

Status check_model(const VerifyOptions& options, const std::string& path, const GpuHarness& gpu,
                   const GpuStream& stream, gemvjit_context* context, std::vector<LayerReport>& reports) {
  GEMVJIT_TRY_ASSIGN(const Checkpoint checkpoint, Checkpoint::open(path, context));
  const auto layers = options.all ? checkpoint.layers() : one_of_each_shape(checkpoint.layers());
  GEMVJIT_TRY(warm(context, layers));
  for (const LinearLayer& layer : layers) {
    GEMVJIT_TRY_ASSIGN(const LayerWeights weights, checkpoint.load(layer));
    GEMVJIT_TRY_ASSIGN(const auto layer_reports,
                       check_layer(gpu, stream, context, weights, options.tokens, options.seed));
    reports.insert(reports.end(), layer_reports.begin(), layer_reports.end());
  }
  return Status::ok();
}

const char* type_name(const LinearLayer& layer) { return layer.type == WeightType::nvfp4 ? "nvfp4" : "bf16"; }

void print_text(const GpuHarness& gpu, const std::vector<LayerReport>& reports,
                const std::vector<LaunchOverhead>& overheads, const std::optional<LoadedMemory>& memory) {
  fmt::print("{}, driver CUDA {}.{}\n", gpu.device_name(), gpu.driver_version() / 1000,
             gpu.driver_version() % 1000 / 10);
  if (!reports.empty()) {
    using Align = Table::Align;
    Table table({{"layer", Align::left},
                 {"type", Align::left},
                 {"N x K", Align::right},
                 {"M", Align::right},
                 {"error/bound", Align::right},
                 {"us", Align::right},
                 {"", Align::left}});
    for (const LayerReport& report : reports) {
      table.add_row({printable(report.layer.name), type_name(report.layer),
                     fmt::format("{}x{}", report.layer.n, report.layer.k), fmt::format("{}", report.m),
                     fmt::format("{:.3f}", report.worst), fmt::format("{:.2f}", report.microseconds),
                     report.within_bounds ? "ok" : "WRONG " + report.first_bad});
    }
    fmt::print("{}", table.text());
    fmt::print("us: one launch in a CUDA graph of {}, median, PDL, weights in the L2 cache\n", kTimedLaunches);
  }
  for (const LaunchOverhead& overhead : overheads) {
    fmt::print(
        "launch of {}: {:.0f} ns, bare cuLaunchKernelEx {:.0f} ns, difference {:.0f} ns (medians of {} batches of "
        "{})\n",
        overhead.key, overhead.library_ns, overhead.bare_ns, overhead.difference_ns(), overhead.batches,
        overhead.launches_per_batch);
  }
  if (memory) {
    fmt::print("{} kernels loaded from the cache: {:.1f} MiB of host memory above the driver's own {:.1f} MiB\n",
               memory->kernels, memory->megabytes(), static_cast<double>(memory->driver_only_kib) / 1024);
  }
}

void print_report(const GpuHarness* gpu, const std::string& skipped, const std::vector<LayerReport>& reports,
                  const std::vector<LaunchOverhead>& overheads, const std::optional<LoadedMemory>& memory) {
  nlohmann::ordered_json document = {{"device", nullptr},
                                     {"results", nlohmann::ordered_json::array()},
                                     {"launch_overhead", nlohmann::ordered_json::array()}};
  if (gpu != nullptr) {
    document["device"] = {{"name", gpu->device_name()}, {"driver_cuda", gpu->driver_version()}};
  } else {
    document["skipped"] = skipped;
  }
  for (const LayerReport& report : reports) {
    document["results"].push_back({{"layer", report.layer.name},
                                   {"type", type_name(report.layer)},
                                   {"n", report.layer.n},
                                   {"k", report.layer.k},
                                   {"m", report.m},
                                   {"error_over_bound", report.worst},
                                   {"ok", report.within_bounds},
                                   {"us", report.microseconds}});
  }
  for (const LaunchOverhead& overhead : overheads) {
    document["launch_overhead"].push_back({{"key", overhead.key},
                                           {"library_ns", overhead.library_ns},
                                           {"bare_ns", overhead.bare_ns},
                                           {"difference_ns", overhead.difference_ns()}});
  }
  if (memory) {
    document["loaded_memory"] = {
        {"kernels", memory->kernels}, {"driver_only_kib", memory->driver_only_kib}, {"loaded_kib", memory->loaded_kib}};
  }
  print_json(document);
}

int exit_code_of(const Status& status) {
  switch (status.code()) {
    case StatusCode::not_found:
      return exit_nothing_found;
    case StatusCode::invalid_argument:
      return exit_usage;
    case StatusCode::io_error:
      return exit_usage;
    case StatusCode::compile_failed:
      return exit_some_failed;
    default:
      return exit_environment;
  }
}

int fail(const Status& status) {
  complain(status.text());
  return exit_code_of(status);
}

int run(const VerifyOptions& options) {
  auto gpu = GpuHarness::open();
  std::string skipped;
  if (!gpu) skipped = gpu.status().message();
  if (gpu && (*gpu)->sm() < 80) {
    skipped = fmt::format("{} is sm_{}: sm_80 and newer are served", (*gpu)->device_name(), (*gpu)->sm());
  }
  if (!skipped.empty()) {
    if (options.json) {
      print_report(nullptr, skipped, {}, {}, std::nullopt);
    } else {
      fmt::print("gemvjit-verify: no supported GPU, nothing was run ({})\n", skipped);
    }
    return exit_done;
  }
  auto context = make_context(options);
  if (!context) return fail(context.status());
  auto stream = GpuStream::create(**gpu);
  if (!stream) return fail(stream.status());
  std::optional<LoadedMemory> memory;
  if (options.loaded_memory) {  // first, while nothing else is loaded
    auto measured = measure_loaded_memory(context->get());
    if (!measured) return fail(measured.status());
    memory = *measured;
  }

  std::vector<LayerReport> reports;
  for (const std::string& path : {options.nvfp4, options.bf16}) {
    if (path.empty()) continue;
    if (const Status status = check_model(options, path, **gpu, *stream, context->get(), reports); !status) {
      return fail(status);
    }
  }
  std::vector<LaunchOverhead> overheads;
  for (const bool pdl : {false, true}) {
    if (!options.launch_overhead) break;
    auto overhead = measure_launch_overhead(**gpu, *stream, context->get(), pdl);
    if (!overhead) return fail(overhead.status());
    overheads.push_back(*overhead);
  }
  if (options.json) {
    print_report(gpu->get(), "", reports, overheads, memory);
  } else {
    print_text(**gpu, reports, overheads, memory);
  }
  for (const LayerReport& report : reports) {
    if (!report.within_bounds) return exit_some_failed;
  }
  return exit_done;
}

}  // namespace
}  // namespace gemvjit::tools

int main(int argc, char** argv) {
  using namespace gemvjit::tools;
  return run_tool("gemvjit-verify", argc, argv, [&]() -> int {
    VerifyOptions options;
    if (const auto exit_code = parse(argc, argv, options)) return *exit_code;
    return run(options);
  });
}
