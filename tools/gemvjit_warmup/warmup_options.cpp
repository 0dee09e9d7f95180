#include "tools/gemvjit_warmup/warmup_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "gemvjit/gemvjit.h"
#include "src/catalog/arch_names.h"
#include "src/remote/remote_options.h"
#include "tools/common/command_line.h"
#include "tools/common/printable.h"
#include "tools/common/progress.h"
#include "tools/gemvjit_warmup/exit_texts.h"

namespace gemvjit::tools {
namespace {

constexpr const char* description =
    "Compile the GEMV kernels of given shapes or of a model into the cache, so that an engine finds them there.\n"
    "Needs libnvrtc for what is not cached yet, and a GPU only for --arch native.";

constexpr const char* examples =
    "Examples:\n"
    "  gemvjit-warmup --shape 4096x14336 --shape 28672x4096:bf16:silu --arch sm_90a,sm_100a\n"
    "  gemvjit-warmup --model /models/llama --engine vllm --tp 1,2,4,8 --arch sm_100a\n"
    "  gemvjit-warmup --model /models/llama --arch sm_90a --dry-run --plan-out plan.json\n"
    "  gemvjit-warmup --plan plan.json --progress=json 2>events.jsonl\n"
    "  gemvjit-warmup --plan plan.json --check    # in milliseconds, without CUDA";

template <typename T>
void drop_repeats(std::vector<T>& values) {
  std::vector<T> kept;
  for (T& value : values) {
    if (std::find(kept.begin(), kept.end(), value) == kept.end()) kept.push_back(std::move(value));
  }
  values = std::move(kept);
}

int usage_error(const std::string& message) {
  complain(message);
  return exit_usage;
}

// Empty, or what is wrong with --nt.
std::string read_nts(const std::vector<std::string>& values, std::vector<int>& nts) {
  std::vector<std::string> parts;
  const bool whole = split_at_commas(values, parts);
  for (const std::string& part : parts) {
    if (part != "1" && part != "2" && part != "4") {
      return fmt::format("--nt {}: accepted: 1, 2 and 4, several joined by commas", printable(part));
    }
    nts.push_back(part[0] - '0');
  }
  return whole ? "" : "--nt: a value is empty; accepted: 1, 2 and 4, several joined by commas";
}

// Empty, or what is wrong with --arch.
std::string read_archs(const std::vector<std::string>& values, WarmupOptions& options) {
  std::vector<std::string> names;
  if (!split_at_commas(values, names)) {
    return "--arch: a target is empty; accepted: native, or targets such as sm_90a, joined by commas";
  }
  if (names.empty() && options.plan_in.empty()) names.emplace_back("native");
  drop_repeats(names);
  for (const std::string& name : names) {
    const Result<NamedTargets> named = parse_targets(name);
    if (!named) return "--arch: " + named.status().message();
    WarmupOptions::ArchName& arch = options.arch_names.emplace_back();
    arch.name = name;
    arch.note = named->note;
    for (const Arch& target : named->targets) arch.targets.push_back(target.text());
    if (named->targets.empty()) arch.targets.emplace_back("native");
    options.archs.insert(options.archs.end(), arch.targets.begin(), arch.targets.end());
  }
  drop_repeats(options.archs);
  return "";
}

// Empty, or what is wrong with --tp.
std::string read_tps(const std::vector<std::string>& values, std::vector<std::int64_t>& tps) {
  constexpr const char* accepted = "accepted: whole numbers of 1 to 1024, several joined by commas";
  std::vector<std::string> parts;
  const bool whole = split_at_commas(values, parts);
  for (const std::string& part : parts) {
    int tp = 0;
    const auto [end, code] = std::from_chars(part.data(), part.data() + part.size(), tp);
    if (code != std::errc() || end != part.data() + part.size() || tp < 1 || tp > 1024) {
      return fmt::format("--tp {}: {}", printable(part), accepted);
    }
    tps.push_back(tp);
  }
  if (!whole) return fmt::format("--tp: a value is empty; {}", accepted);
  if (tps.empty()) tps.push_back(1);
  drop_repeats(tps);
  return {};
}

}  // namespace

bool WarmupOptions::wants_native() const { return std::find(archs.begin(), archs.end(), "native") != archs.end(); }

std::optional<int> parse_warmup_options(int argc, char** argv, WarmupOptions& options) {
  CLI::App app(description, "gemvjit-warmup");
  app.footer(exit_codes_text(exit_texts) + examples);
  app.set_version_flag("--version", gemvjit_version());

  std::vector<std::string> shapes, archs, nts, tps;
  std::string pdl = "on", cache_dir, shard;
  bool dry_run = false, check = false;
  app.add_option("--shape", shapes,
                 "NxK[:nvfp4|:bf16|:dequant|:swizzle][:silu][:segments]; nvfp4 if not said (repeatable)")
      ->type_name("SHAPE")
      ->allow_extra_args(false);
  app.add_option("--model", options.models, "folder of safetensors: every linear layer in it (repeatable)")
      ->type_name("DIR")
      ->allow_extra_args(false);
  app.add_option("--tp", tps, "ranks of tensor parallelism that --model is for: 1,2,4,8; 1 if not said")
      ->type_name("TPS")
      ->allow_extra_args(false);
  app.add_option("--engine", options.engine, "how --model is merged and padded; none (as stored) if not said")
      ->type_name("vllm|sglang|trtllm|none")
      ->check(one_of({"vllm", "sglang", "trtllm", "none"}));
  app.add_flag("--scan", options.scan, "read the scales of --model, too, and look for NaN");
  app.add_option("--arch", archs,
                 "targets: sm_90a, 9.0a, hopper, native, several by commas; native (the GPU here) if not said")
      ->type_name("ARCHS")
      ->allow_extra_args(false);
  app.add_option("--nt", nts, "8-token tiles: 1,2,4 (M <= 8*nt); all if not said")
      ->type_name("NTS")
      ->allow_extra_args(false);
  app.add_option("--pdl", pdl, "programmatic dependent launch allowed: on, off or both; on if not said")
      ->type_name("on|off|both")
      ->check(one_of({"on", "off", "both"}));
  CLI::Option* cache_option =
      app.add_option("--cache-dir", cache_dir, "else GEMVJIT_CACHE_DIR, $XDG_CACHE_HOME/gemvjit, $HOME/.cache/gemvjit")
          ->type_name("DIR");
  app.add_option("-j,--jobs", options.jobs, "kernels compiled at a time, of at most 500 MB each")
      ->type_name("N")
      ->check(CLI::Range(1, 256));
  CLI::Option* shard_option =
      app.add_option("--shard", shard, "only the kernels of rank I of N, counted from 0: together all, each once")
          ->type_name("I/N");
  app.add_option("--max-seconds", options.max_seconds, "begin nothing more after so long; run again to go on")
      ->type_name("SECONDS")
      ->check([](const std::string& text) {  // CLI::Range would let "nan" pass
        double seconds = 0;
        const bool is_number = CLI::detail::lexical_cast(text, seconds);
        return is_number && seconds >= 1e-3 && seconds <= 1e9 ? "" : "not in 0.001 to 1000000000: " + printable(text);
      });
  CLI::Option* plan_option =
      app.add_option("--plan", options.plan_in, "just the kernels of a plan, whatever the tuning tables here say")
          ->type_name("FILE");
  app.add_option("--plan-out", options.plan_out, "first write the list of kernels as a plan")
      ->type_name("FILE")
      ->check(file_to_write());
  app.add_flag("--any-digest", options.any_digest, "take a plan of other kernel sources by its keys alone")
      ->needs(plan_option);
  std::vector<CLI::Option*> remote_options = {
      app.add_option("--remote", options.remote,
                     "fetch from this cache first: http://, https:// or s3:// address, or none; else GEMVJIT_REMOTE")
          ->type_name("URL"),
      app.add_flag("--remote-write", options.remote_write, "also publish there what is compiled"),
      app.add_flag("--remote-required", options.remote_required, "exit with 8 if the remote cache fails")};
  CLI::Option* isolate_option = app.add_flag("--isolate", options.isolate,
                                             "compile in processes of their own: a compiler that crashes fails one "
                                             "kernel");
  app.add_option("--isolate-timeout", options.isolate_timeout_s, "after so long a kernel's process is killed (600)")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.01, 86400.0))
      ->needs(isolate_option);
  app.add_option("--isolate-memory", options.isolate_memory_mb, "address space of such a process; no limit if not said")
      ->type_name("MB")
      ->check(CLI::Range(64, 1 << 20))
      ->needs(isolate_option);
  CLI::Option* dry_option =
      app.add_flag("--dry-run", dry_run, "name the kernels, where each would come from and the time it would take");
  CLI::Option* check_option =
      app.add_flag("--check", check, "look whether all are in the cache, compile nothing")->excludes(dry_option);
  for (CLI::Option* option : remote_options) option->excludes(dry_option)->excludes(check_option);
  app.add_flag("--tuned-only", options.tuned_only, "leave out shapes without a measured configuration");
  app.add_flag("--segments", options.segments, "also the NVFP4 kernels that take scale segments, for merged weights");
  app.add_flag("--swizzle", options.swizzle, "also the kernels that swizzle block scales on the device, for loading");
  app.add_flag("--cluster-fallbacks", options.cluster_fallbacks,
               "also what serves where a device cannot run a cluster, such as a MIG partition");
  app.add_flag("--json", options.json, "results as one JSON document");
  CLI::Option* quiet_option = app.add_flag("-q,--quiet", options.quiet, "no progress; errors only");
  app.add_flag("-v,--verbose", options.verbosity, "each kernel as it is finished; twice: the library's debug log")
      ->excludes(quiet_option);
  app.add_option("--progress", options.progress,
                 "on stderr: a line on a terminal, plain lines elsewhere, JSON events or none; auto if not said")
      ->type_name(joined_words(progress_choices()))
      ->check(one_of(progress_choices()));
  add_common_options(app);
  if (const auto code = parse_command_line(app, argc, argv)) return code;

  for (const std::string& text : shapes) {
    Result<ShapeSpec> shape = parse_shape(text);
    if (!shape) return usage_error(shape.status().message());
    options.shapes.push_back(*shape);
  }
  if (*plan_option) {
    if (options.plan_in.empty()) return usage_error("--plan is empty; name a file");
    const bool more = !shapes.empty() || !options.models.empty() || !archs.empty() || !nts.empty() ||
                      options.tuned_only || options.segments || options.swizzle || options.cluster_fallbacks ||
                      app.get_option("--pdl")->count() > 0;
    if (more) {
      return usage_error(
          "--plan: a plan says all; leave --shape, --model, --arch, --nt, --pdl, --tuned-only, --segments, --swizzle "
          "and --cluster-fallbacks to the run that writes it");
    }
  } else if (options.shapes.empty() && options.models.empty()) {
    return usage_error(
        "nothing to warm: name shapes with --shape NxK, a model with --model DIR or a plan with --plan FILE (see "
        "--help)");
  }
  if (const std::string problem = read_archs(archs, options); !problem.empty()) return usage_error(problem);
  if (const std::string problem = read_nts(nts, options.nts); !problem.empty()) return usage_error(problem);
  if (const std::string problem = read_tps(tps, options.tps); !problem.empty()) return usage_error(problem);
  if (options.models.empty() && (!tps.empty() || options.engine != "none" || options.scan)) {
    return usage_error("--tp, --engine and --scan say how to take a --model, and there is none");
  }
  for (const std::string& model : options.models) {
    if (model.empty()) return usage_error("--model is empty; name a folder or a .safetensors file");
  }
  if (*shard_option) {
    const std::optional<Shard> parsed = parse_shard(shard);
    if (!parsed) {
      return usage_error(fmt::format("--shard {}: accepted: I/N with 0 <= I < N <= 4096, as 0/8", printable(shard)));
    }
    options.shard = *parsed;
  }
  if (*remote_options.front() && options.remote != no_remote) {
    if (const Status accepted = check_remote_url(options.remote); !accepted) {
      return usage_error("--remote: " + accepted.message());
    }
  }
  if (*cache_option && cache_dir.empty()) return usage_error("--cache-dir is empty; name a folder");
  if (*cache_option) options.cache_dir = cache_dir;
  drop_repeats(options.nts);
  options.pdl = pdl == "both" ? PdlChoice::both : pdl == "off" ? PdlChoice::off : PdlChoice::on;
  options.mode = check ? WarmupMode::check : dry_run ? WarmupMode::dry_run : WarmupMode::build;
  return std::nullopt;
}

}  // namespace gemvjit::tools
