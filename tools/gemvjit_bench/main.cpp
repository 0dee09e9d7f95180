// gemvjit-bench: the kernels' time per op, cold, in a CUDA graph chain, beside read ceilings and
// cuBLASLt measured in the same run.
#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "gemvjit/gemvjit.h"
#include "tools/common/command_line.h"
#include "tools/common/exit_codes.h"
#include "tools/common/library_status.h"
#include "tools/common/table.h"
#include "tools/gemvjit_bench/bench_case.h"

namespace gemvjit::tools {
namespace {

// Weight shapes (N x K) of decode steps of common models, small to large.
const std::vector<std::string> kDefaultShapes = {"1024x8192",  "8192x1024",  "1536x7168",  "2048x7168", "7168x2048",
                                                 "7168x2304",  "4096x4096",  "6144x4096",  "5120x5120", "4096x14336",
                                                 "10240x8192", "28672x4096", "8192x28672", "57344x8192"};

constexpr const char* footer =
    "Exit codes: 0 done, 2 usage, 3 a kernel could not be built or a result is out of bounds, 5 no driver, device or\n"
    "NVRTC.\n"
    "Examples:\n"
    "  gemvjit-bench --shape 4096x4096 --shape 28672x4096:silu --family nvfp4 --m 1\n"
    "  gemvjit-bench --m 1 --chain --json";

struct BenchOptions {
  std::vector<std::string> shapes, families = {"nvfp4", "bf16"};
  std::vector<std::int64_t> tokens = {1, 8, 16, 32};
  std::string cache_dir, cublaslt, pdl = "on";
  bool has_cache_dir = false, warm = false, chain = false, json = false, ceilings = true, alternative = true;
  int replays = 15;
};

std::optional<int> parse(int argc, char** argv, BenchOptions& options) {
  CLI::App app("Time the kernels cold, in a CUDA graph chain, beside read ceilings measured in the same run.",
               "gemvjit-bench");
  app.set_version_flag("--version", gemvjit_version());
  app.add_option("--shape", options.shapes, "NxK, or NxK:silu; repeatable; 14 shapes of common models if not said")
      ->type_name("SHAPE");
  app.add_option("--family", options.families, "nvfp4, bf16")
      ->type_name("nvfp4|bf16")
      ->delimiter(',')
      ->check(one_of({"nvfp4", "bf16"}));
  app.add_option("--m", options.tokens, "numbers of tokens")->type_name("N")->delimiter(',')->check(CLI::Range(1, 32));
  app.add_option("--pdl", options.pdl, "on or off")->type_name("on|off")->check(one_of({"on", "off"}));
  app.add_option("--replays", options.replays, "of each graph")->type_name("N")->check(CLI::Range(3, 10000));
  auto* cache = app.add_option("--cache-dir", options.cache_dir, "kernel cache; as for gemvjit-warmup if not said")
                    ->type_name("DIR");
  app.add_flag("--warm", options.warm, "one copy of the weights, in L2 where it fits");
  app.add_flag("--chain", options.chain, "each op's x is the previous op's out, where the shape allows it");
  add_off_flag(app, "--no-ceilings", options.ceilings, "time the kernels only");
  add_off_flag(app, "--no-alternative", options.alternative, "do not time cuBLASLt");
  app.add_option("--cublaslt", options.cublaslt, "the libcublasLt to use; looked for where NVRTC is if not said")
      ->type_name("FILE");
  app.add_flag("--json", options.json, "one JSON document on stdout");
  add_common_options(app);
  app.footer(footer);
  if (const auto exit_code = parse_command_line(app, argc, argv)) return exit_code;
  options.has_cache_dir = cache->count() > 0;
  if (options.shapes.empty()) options.shapes = kDefaultShapes;
  return std::nullopt;
}

Result<std::vector<BenchCase>> make_cases(const BenchOptions& options) {
  std::vector<BenchCase> cases;
  for (const std::string& text : options.shapes) {
    BenchCase bench;
    char rest[8] = "";
    long long n = 0, k = 0;
    const int read = std::sscanf(text.c_str(), "%lldx%lld%7s", &n, &k, rest);
    const std::string flag = rest;
    if (read < 2 || text.find(' ') != std::string::npos || n <= 0 || k <= 0 || (!flag.empty() && flag != ":silu")) {
      return Status(StatusCode::invalid_argument,
                    fmt::format("shape {} is not understood; accepted: NxK or NxK:silu", text));
    }
    bench.n = n, bench.k = k, bench.silu_mul = !flag.empty();
    bench.pdl = options.pdl == "on", bench.warm = options.warm;
    bench.chain = options.chain && k <= (bench.silu_mul ? n / 2 : n);
    for (const std::string& family : options.families) {
      bench.family = family == "nvfp4" ? GEMVJIT_NVFP4_GEMV : GEMVJIT_BF16_GEMV;
      for (const std::int64_t m : options.tokens) {
        bench.m = m;
        cases.push_back(bench);
      }
    }
  }
  return cases;
}

Status warm_up(gemvjit_context* context, const std::vector<BenchCase>& cases) {
  std::vector<gemvjit_problem> problems;
  for (const BenchCase& bench : cases) {
    gemvjit_problem problem;
    GEMVJIT_TRY(from_library(gemvjit_problem_init(&problem, bench.family, bench.n, bench.k)));
    problem.silu_mul = bench.silu_mul, problem.pdl = bench.pdl, problem.allow_untuned = 1;
    problem.nt = bench.m <= 8 ? 1 : bench.m <= 16 ? 2 : 4;
    problems.push_back(problem);
  }
  return from_library(gemvjit_warmup(context, problems.data(), problems.size(), nullptr));
}

const char* family_name(const BenchCase& bench) { return bench.family == GEMVJIT_NVFP4_GEMV ? "nvfp4" : "bf16"; }

// "-" where the ceiling was not timed.
std::string ratio(double us, double ceiling_us) {
  return ceiling_us > 0 ? fmt::format("{:.2f}", us / ceiling_us) : "-";
}

void print_text(const GpuHarness& gpu, const std::vector<BenchResult>& results) {
  using Align = Table::Align;
  Table table({{"N x K", Align::right},
               {"type", Align::left},
               {"M", Align::right},
               {"MB", Align::right},
               {"us", Align::right},
               {"plain", Align::right},
               {"pdl", Align::right},
               {"pdl+x+out", Align::right},
               {"cublasLt", Align::right},
               {"us/pdl", Align::right},
               {"us/pdl+x+out", Align::right},
               {"", Align::left}});
  std::map<std::string, std::pair<double, int>> log_ratios;
  for (const BenchResult& r : results) {
    table.add_row({fmt::format("{}x{}{}", r.bench.n, r.bench.k, r.bench.silu_mul ? ":silu" : ""), family_name(r.bench),
                   fmt::format("{}", r.bench.m), fmt::format("{:.1f}", static_cast<double>(r.bytes) / 1e6),
                   fmt::format("{:.2f}", r.us), fmt::format("{:.2f}", r.plain_us), fmt::format("{:.2f}", r.pdl_us),
                   fmt::format("{:.2f}", r.pdl_x_out_us),
                   r.cublaslt_us > 0 ? fmt::format("{:.2f}", r.cublaslt_us) : "-", ratio(r.us, r.pdl_us),
                   ratio(r.us, r.pdl_x_out_us), r.problem.empty() ? "" : "WRONG " + r.problem});
    if (r.pdl_us <= 0) continue;
    auto& [sum, count] = log_ratios[fmt::format("{} M={}", family_name(r.bench), r.bench.m)];
    sum += std::log(r.us / r.pdl_us), ++count;
  }
  fmt::print("{}, driver CUDA {}.{}\n{}", gpu.device_name(), gpu.driver_version() / 1000,
             gpu.driver_version() % 1000 / 10, table.text());
  for (const auto& [name, ratio] : log_ratios) {
    fmt::print("geomean over the PDL ceiling, {}: {:.3f}\n", name, std::exp(ratio.first / ratio.second));
  }
}

void print_report(const GpuHarness& gpu, const std::vector<BenchResult>& results) {
  nlohmann::ordered_json document = {{"device", gpu.device_name()},
                                     {"driver_cuda", gpu.driver_version()},
                                     {"results", nlohmann::ordered_json::array()}};
  for (const BenchResult& r : results) {
    document["results"].push_back({{"family", family_name(r.bench)},
                                   {"n", r.bench.n},
                                   {"k", r.bench.k},
                                   {"m", r.bench.m},
                                   {"silu_mul", r.bench.silu_mul},
                                   {"pdl", r.bench.pdl},
                                   {"warm", r.bench.warm},
                                   {"chain", r.bench.chain},
                                   {"bytes", r.bytes},
                                   {"copies", r.copies},
                                   {"us", r.us},
                                   {"spread_us", r.spread_us},
                                   {"plain_us", r.plain_us},
                                   {"pdl_us", r.pdl_us},
                                   {"pdl_x_out_us", r.pdl_x_out_us},
                                   {"cublaslt_us", r.cublaslt_us},
                                   {"error_over_bound", r.worst},
                                   {"problem", r.problem}});
  }
  print_json(document);
}

int fail(const Status& status, int exit_code) {
  complain(status.text());
  return exit_code;
}

// Null, with a note, where it cannot be timed: that is no reason not to time the kernels.
std::unique_ptr<Alternative> open_alternative(const GpuHarness& gpu, const BenchOptions& options) {
  if (!options.alternative) return nullptr;
  auto opened = Alternative::open(gpu, options.cublaslt);
  if (opened) return std::move(*opened);
  say(fmt::format("gemvjit-bench: cuBLASLt is not timed: {}\n", opened.status().message()));
  return nullptr;
}

int run(const BenchOptions& options) {
  const auto cases = make_cases(options);
  if (!cases) return fail(cases.status(), exit_usage);
  const auto gpu = GpuHarness::open();
  if (!gpu) return fail(gpu.status(), exit_environment);
  gemvjit_options request;
  (void)gemvjit_options_init(&request);
  request.device = 0;
  if (options.has_cache_dir) request.cache_dir = options.cache_dir.c_str();
  gemvjit_context* raw = nullptr;
  if (const Status status = from_library(gemvjit_create(&request, &raw)); !status)
    return fail(status, exit_environment);
  const std::unique_ptr<gemvjit_context, gemvjit_status (*)(gemvjit_context*)> context(raw, gemvjit_destroy);
  if (const Status status = warm_up(raw, *cases); !status) return fail(status, exit_some_failed);
  std::unique_ptr<CeilingKernels> ceilings;
  if (options.ceilings) {
    auto compiled = CeilingKernels::compile(**gpu);
    if (!compiled) return fail(compiled.status(), exit_environment);
    ceilings = std::move(*compiled);
  }
  const auto stream = GpuStream::create(**gpu);
  if (!stream) return fail(stream.status(), exit_environment);
  const std::unique_ptr<Alternative> alternative = open_alternative(**gpu, options);
  BenchRunner runner(**gpu, *stream, raw, ceilings.get(), alternative.get(), options.replays);
  std::vector<BenchResult> results;
  bool right = true;
  for (const BenchCase& bench : *cases) {
    const auto result = runner.run(bench);
    if (!result) return fail(result.status(), exit_some_failed);
    right = right && result->problem.empty();
    results.push_back(*result);
  }
  if (options.json) {
    print_report(**gpu, results);
  } else {
    print_text(**gpu, results);
  }
  return right ? exit_done : exit_some_failed;
}

}  // namespace
}  // namespace gemvjit::tools

int main(int argc, char** argv) {
  using namespace gemvjit::tools;
  return run_tool("gemvjit-bench", argc, argv, [&]() -> int {
    BenchOptions options;
    if (const auto exit_code = parse(argc, argv, options)) return *exit_code;
    return run(options);
  });
}
