#include "tools/gemvjit_tune/tune_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "gemvjit/gemvjit.h"
#include "src/base/suggestion.h"
#include "src/catalog/arch_names.h"
#include "tools/common/command_line.h"
#include "tools/common/printable.h"
#include "tools/common/progress.h"

namespace gemvjit::tools {
namespace {

constexpr const char* footer =
    "Exit codes: 0 done (also when the budget ran out), 2 usage or an unreadable table, baseline or samples file, 3 a\n"
    "case without a working configuration or a device that failed, 4 no shapes, 5 no driver, device or NVRTC, or the\n"
    "table could not be written, 130 interrupted.\n"
    "Examples:\n"
    "  gemvjit-tune --shape 4096x4096 --shape 28672x4096:silu --output t.json --samples samples.jsonl\n"
    "  gemvjit-tune --shape 4096x4096 --list --arch sm_90a --sm-count 132     # no GPU needed\n"
    "  gemvjit-tune --predict sm_100a --sm-count 148 --from tuning_tables/sm_90a.json --output sm_100a.json";

// A quantity. CLI11's own ranges let NaN through, which is neither below nor above anything.
CLI::Validator quantity() {
  return CLI::Validator(
      [](const std::string& text) -> std::string {
        double value = 0;
        if (!CLI::detail::lexical_cast(text, value)) return text + " is no number";
        return value >= 1e-6 && value <= 1e9 ? "" : text + " is not within 1e-6 and 1e9";
      },
      "NUMBER");
}

void add_predict_options(CLI::App& app, PredictOptions& predict) {
  app.add_option("--predict", predict.archs,
                 "write a predicted table for these targets, in any spelling; no GPU needed")
      ->type_name("TARGETS")
      ->delimiter(',');
  app.add_option("--from", predict.from, "for --predict: the measured table")->type_name("FILE");
  app.add_option("--from-sm-count", predict.from_sm_count, "its GPU's multiprocessors, where it does not say")
      ->type_name("N")
      ->check(CLI::Range(1, 4096));
  app.add_option("--bandwidth", predict.gb_per_s, "memory bandwidth of the GPU to predict for, GB/s")
      ->type_name("GB/s")
      ->check(quantity());
  app.add_option("--from-bandwidth", predict.from_gb_per_s, "and of the measured one")
      ->type_name("GB/s")
      ->check(quantity());
  add_off_flag(app, "--no-clusters", predict.clusters, "for --predict: no configurations with clusters");
  app.add_option("--sample-compile", predict.sample, "entries to compile, evenly spread; 0: nothing; all if not said")
      ->type_name("N");
}

// Whether what --predict needs is there.
bool can_predict(const TuneOptions& options) {
  const PredictOptions& predict = options.predict;
  const CaseRequest& request = options.request;
  if (predict.from.empty() || options.output.empty() || options.sm_count == 0) {
    complain("--predict needs --from, --output and --sm-count");
  } else if ((predict.gb_per_s > 0) != (predict.from_gb_per_s > 0)) {
    complain("--bandwidth and --from-bandwidth go together");
  } else if (!request.shapes.empty() || !request.shapes_files.empty() || !request.models.empty() || options.list) {
    complain("--predict takes its shapes from --from: no --shape, --shapes-file, --model or --list");
  } else {
    return true;
  }
  return false;
}

// Names as people write them become targets' own spelling, with a word on stderr for what they stand for. False, with
// the reason told, for what names none.
bool spell_out(const char* option, std::vector<std::string>& names) {
  std::vector<std::string> spelt;
  for (const std::string& name : names) {
    const Result<NamedTargets> named = parse_targets(name);
    if (!named || named->targets.empty()) {
      complain(named ? fmt::format("{} native: name a target", option)
                     : fmt::format("{}: {}", option, named.status().message()));
      return false;
    }
    if (!named->note.empty()) say(fmt::format("gemvjit-tune: {} {}: {}\n", option, printable(name), named->note));
    for (const Arch& arch : named->targets) {
      if (std::ranges::find(spelt, arch.text()) == spelt.end()) spelt.push_back(arch.text());
    }
  }
  names = std::move(spelt);
  return true;
}

// The one target of --arch; "native" is what it is without.
bool spell_out_arch(std::string& arch) {
  if (lower_case(arch) == "native") arch.clear();
  if (arch.empty()) return true;
  std::vector<std::string> names{arch};
  if (!spell_out("--arch", names)) return false;
  if (names.size() > 1) {
    complain(fmt::format("--arch {} is {}: a search is for one of them", printable(arch), fmt::join(names, ", ")));
    return false;
  }
  arch = names.front();
  return true;
}

}  // namespace

std::optional<int> parse_tune_options(int argc, char** argv, TuneOptions& options) {
  CLI::App app("Find the fastest configuration of each shape on the GPU here, and write a tuning table.",
               "gemvjit-tune");
  app.set_version_flag("--version", gemvjit_version());
  app.footer(footer);
  std::vector<std::string> families = {"nvfp4", "bf16"};
  std::string search = "thorough";
  CaseRequest& request = options.request;
  app.add_option("--shape", request.shapes, "NxK, or NxK:silu; repeatable")->type_name("SHAPE");
  app.add_option("--shapes-file", request.shapes_files, "JSON of models with their layers by tensor parallelism")
      ->type_name("FILE");
  app.add_option("--model", request.models, "a model folder: its linear layers")->type_name("DIR");
  app.add_option("--tp", request.tensor_parallel, "tensor parallelism to take from --shapes-file")
      ->type_name("TPS")
      ->delimiter(',');
  app.add_option("--family", families, "nvfp4, bf16")
      ->type_name("nvfp4|bf16")
      ->delimiter(',')
      ->check(one_of({"nvfp4", "bf16"}));
  app.add_option("--nt", request.nt, "token tiles")->type_name("1|2|4")->delimiter(',')->check(one_of({"1", "2", "4"}));
  app.add_option("--arch", options.arch,
                 "one target: sm_90a, 9.0a, hopper; the device's best that this NVRTC knows if not said")
      ->type_name("TARGET");
  app.add_option("--search", search, "thorough or quick")
      ->type_name("thorough|quick")
      ->check(one_of({"thorough", "quick"}));
  app.add_option("--max-candidates", options.max_candidates, "configurations a case; 64 if not said, or quick 8")
      ->type_name("N")
      ->check(CLI::Range(1, 100000));
  app.add_option("--budget", options.budget_seconds, "seconds after which to stop and keep what is finished")
      ->type_name("SECONDS")
      ->check(quantity());
  app.add_option("--kernel-timeout", options.kernel_seconds,
                 "seconds after which a kernel counts as hanging; 5 if not said")
      ->type_name("SECONDS")
      ->check(quantity());
  app.add_option("--output", options.output, "the tuning table to write, or to add to")
      ->type_name("FILE")
      ->check(file_to_write());
  app.add_option("--samples", options.samples, "file of all measurements: read first, then added to")
      ->type_name("FILE")
      ->check(file_to_write());
  app.add_option("--baseline", options.baseline, "JSON list of other kernels' times")->type_name("FILE");
  add_off_flag(app, "--no-alternative", options.alternative, "do not time cuBLASLt");
  app.add_option("--cublaslt", options.cublaslt, "the libcublasLt to use; looked for where NVRTC is if not said")
      ->type_name("FILE");
  app.add_option("--replays", options.replays, "of a finalist's graph; others get a third")
      ->type_name("N")
      ->check(CLI::Range(3, 10000));
  app.add_option("--jobs,-j", options.jobs, "compile threads; one a core if not said")
      ->type_name("N")
      ->check(CLI::Range(1, 1024));
  app.add_option("--devices", options.devices, "GPUs, by number")
      ->type_name("GPUS")
      ->delimiter(',')
      ->check(CLI::Range(0, 1023));
  app.add_option("--cache-dir", options.cache_dir, "keep compiled kernels here; nowhere if not said")->type_name("DIR");
  app.add_option("--cache-max-bytes", options.cache_max_bytes, "cap of that folder; 0: none")
      ->type_name("BYTES")
      ->envname("GEMVJIT_CACHE_MAX_BYTES");
  app.add_option("--commit", options.commit, "commit of the sources, for the table; of the build if not said")
      ->type_name("TEXT");
  app.add_flag("--list", options.list, "print the first candidates of each case; no GPU needed");
  app.add_option("--sm-count", options.sm_count, "for --list, --predict: multiprocessors of the GPU")
      ->type_name("N")
      ->check(CLI::Range(1, 4096));
  app.add_flag("--json", options.json, "one JSON document on stdout");
  app.add_flag("-q,--quiet", options.quiet, "no progress");
  app.add_option("--progress", options.progress,
                 "on stderr: a line on a terminal, plain lines elsewhere, JSON events or none; auto if not said")
      ->type_name(joined_words(progress_choices()))
      ->check(one_of(progress_choices()));
  add_common_options(app);
  add_predict_options(app, options.predict);
  if (const auto exit_code = parse_command_line(app, argc, argv)) return exit_code;
  options.quick = search == "quick";
  request.families.clear();
  for (const std::string& name : families) request.families.push_back(find_family(name)->family);
  if (!spell_out_arch(options.arch) || !spell_out("--predict", options.predict.archs)) return exit_usage;
  if (!options.predict.archs.empty()) return can_predict(options) ? std::nullopt : std::optional<int>(exit_usage);
  if (request.shapes.empty() && request.shapes_files.empty() && request.models.empty()) {
    complain("no shapes: name some with --shape, --shapes-file or --model; see --help");
    return exit_usage;
  }
  if (options.list && (options.arch.empty() || options.sm_count == 0)) {
    complain("--list needs --arch and --sm-count, since it asks no GPU");
    return exit_usage;
  }
  return std::nullopt;
}

}  // namespace gemvjit::tools
