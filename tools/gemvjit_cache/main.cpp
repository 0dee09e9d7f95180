// gemvjit-cache: look into the kernel cache, check it, clean it.
#include <fmt/format.h>

#include "gemvjit/gemvjit.h"
#include "tools/cache_view/tool_settings.h"
#include "tools/common/command_line.h"
#include "tools/gemvjit_cache/commands.h"
#include "tools/gemvjit_cache/config_page.h"
#include "tools/gemvjit_cache/exit_texts.h"
#include "tools/gemvjit_cache/target_names.h"

namespace gemvjit::tools {
namespace {

struct Command {
  const char* name;
  const char* text;
  ExitCode (*run)(const CacheArguments& arguments);
  const char* example;  // its arguments
};

constexpr Command commands[] = {
    {"ls", "list the entries: key, size, registers, shared memory, spills, compile time, age", list_entries,
     "ls --json"},
    {"show", "all that is known of one entry", show_entry, "show 3f9a2c"},
    {"verify", "check every file's checksum and name; exit 7 if one is damaged", verify_entries,
     "verify --deep --repair"},
    {"stats", "number and size of entries by target and family", show_stats, "stats --prometheus"},
    {"explain", "why a key would hit or miss; or which kernel a shape gets, why, and what was rejected", explain_key,
     "explain 4096 14336 8 --arch hopper"},
    {"export", "write entries as a bundle (*.gjb), to be read through GEMVJIT_CACHE_RO or imported", export_entries,
     "export kernels.gjb --arch sm_90a"},
    {"import", "verify a bundle and put what is new of it into the cache", import_entries, "import kernels.gjb"},
    {"push", "publish entries in a remote cache, perhaps as a set with a name", push_entries,
     "push --remote https://cache.example/kernels --set 2026-11"},
    {"pull", "fetch a set or the kernels of a plan from a remote cache", pull_entries,
     "pull --remote https://cache.example/kernels --set 2026-11"},
    {"disasm", "the machine code of one entry, by nvdisasm or cuobjdump; or its cubin as a file", disassemble_entry,
     "disasm 3f9a2c --cubin kernel.cubin"},
    {"sign", "sign entries of the cache with a private key", sign_entries, "sign --sign-key release.key"},
    {"rm", "remove entries", remove_entries, "rm --damaged"},
    {"gc", "remove entries by size, age or target, least recently used first, or all that a plan lacks",
     collect_entries, "gc --max-age 30d --max-bytes 512M --dry-run"},
    {"path", "print the cache folder", show_path, "path"},
    {"config", "the options as the library here takes them; --origin: and where each comes from", show_config,
     "config --origin"},
    {"doctor", "what the library finds here: cache, NVRTC, driver, tuning tables; exit 5 if of no use", run_doctor,
     "doctor --json"},
};

constexpr const char* examples =
    "Examples:\n"
    "  gemvjit-cache export kernels.gjb --arch sm_90a          # what an image is to bring\n"
    "  GEMVJIT_CACHE_RO=/opt/kernels.gjb gemvjit-cache doctor  # what a process there would find\n"
    "  gemvjit-cache import kernels.gjb                        # the same into a cache of one's own\n"
    "  gemvjit-cache export --oci kernels --ref 1.0            # for a registry; import takes the folder again\n"
    "  gemvjit-cache explain n4096-k4096-nt1-f0000410208848021-sm_90a\n"
    "  gemvjit-cache explain 4096 14336 8 --arch hopper        # which kernel, why, and what was rejected\n"
    "  gemvjit-cache verify --deep --repair";

void add_remote_arguments(CLI::App& command, bool push, CacheArguments& arguments) {
  command.add_option("--remote", arguments.remote, "http://, https:// or s3:// address; else GEMVJIT_REMOTE")
      ->type_name("URL");
  CLI::Option* set =
      command.add_option("--set", arguments.set, "name of the set, letters, digits and ._-")->type_name("NAME");
  CLI::Option* plan =
      command.add_option("--plan", arguments.plan, "just the kernels of a plan of gemvjit-warmup --plan-out")
          ->type_name("FILE");
  if (push) {
    command.add_flag("--force", arguments.force, "also send what is there already");
    command.add_option("--arch", arguments.arch, "only entries of this target, in any spelling (hopper, 9.0a)")
        ->type_name("TARGET");
  } else {
    set->excludes(plan);
  }
}

void add_arguments(CLI::App& command, const Command& row, CacheArguments& arguments) {
  const std::string name = row.name;
  std::string notes = "Also --cache-dir DIR and --json, before or after the command: see gemvjit-cache --help.\n";
  if (name == "disasm") {
    notes += "GEMVJIT_NVDISASM names the tool; else PATH, $CUDA_HOME/bin and /usr/local/cuda*/bin are looked at.\n";
  }
  command.footer(fmt::format("{}Example: gemvjit-cache {}", notes, row.example));
  if (name == "show") {
    command.add_option("name", arguments.selectors, "a key, or the first digits of a digest")
        ->type_name("KEY-OR-DIGEST-PREFIX")
        ->required()
        ->expected(1);
  }
  if (name == "gc") {
    command.add_option("--max-bytes", arguments.max_bytes, "keep what was used last, up to so many bytes (K, M, G)")
        ->type_name("SIZE");
    command.add_option("--max-age", arguments.max_age, "remove what was not used for so long (s, m, h, d)")
        ->type_name("TIME");
    command
        .add_option("--arch", arguments.arch,
                    "only entries of this target, in any spelling (hopper, 9.0a); alone: all of them")
        ->type_name("TARGET");
    command.add_flag("--other-versions", arguments.other_versions,
                     "also entries of other format versions; without a size or an age those alone, all of them");
    CLI::Option* plan =
        command
            .add_option("--keep-plan", arguments.keep_plan,
                        "remove what a plan of gemvjit-warmup --plan-out does not have, of the plan's targets")
            ->type_name("FILE")
            ->excludes("--max-bytes", "--max-age", "--arch", "--other-versions");
    command.add_flag("--all-archs", arguments.all_archs, "of all targets, also those that the plan has nothing of")
        ->needs(plan);
    command.add_flag("--any-digest", arguments.any_digest, "keep the plan's keys, made of whatever kernel sources")
        ->needs(plan);
    command.add_flag("--dry-run", arguments.dry_run, "say what would be removed");
  }
  if (name == "push" || name == "pull") add_remote_arguments(command, name == "push", arguments);
  if (name == "explain") {
    command
        .add_option("name", arguments.selectors,
                    "a key, or the first digits of the digest of an entry of it; or N K M, what a shape gets for M "
                    "tokens")
        ->type_name("KEY-OR-DIGEST-PREFIX | N K M")
        ->required()
        ->expected(1, 3);
    command
        .add_option("--arch", arguments.arch, "of a shape: the target, such as sm_90a or hopper; else the GPU's here")
        ->type_name("TARGET");
    command.add_flag("--silu", arguments.silu, "of a shape: with the fused activation");
    command.add_flag("--bf16", arguments.bf16, "of a shape: the weight is BF16, not NVFP4");
    command.add_flag("--no-pdl", arguments.no_pdl, "of a shape: without programmatic dependent launch");
    command.add_flag("--tuned-only", arguments.tuned_only, "of a shape: measured configurations only");
  }
  if (name == "disasm") {
    command.add_option("name", arguments.selectors, "a key with one entry, or the first digits of a digest")
        ->type_name("KEY-OR-DIGEST-PREFIX")
        ->required()
        ->expected(1);
    command.add_option("--cubin", arguments.cubin, "write the cubin there and run nothing")
        ->type_name("FILE")
        ->check(file_to_write());
  }
  if (name == "export" || name == "import") {
    CLI::Option* file = command
                            .add_option("file", arguments.file,
                                        name == "export" ? "the bundle, *.gjb; with --oci the folder to make"
                                                         : "the bundle, *.gjb, or the folder of an OCI image layout")
                            ->type_name("FILE")
                            ->required();
    CLI::Option* ref =
        command
            .add_option("--ref", arguments.ref, "which manifest of an OCI image layout, by its name or as sha256:...")
            ->type_name("NAME");
    if (name == "export") {
      file->check(file_to_write());
      CLI::Option* oci = command.add_flag("--oci", arguments.oci,
                                          "an OCI image layout instead, a folder that skopeo, oras and cosign take");
      ref->needs(oci)->description("what the manifest in the OCI image layout is called");
      command.add_flag("--replace", arguments.replace, "also over an OCI image layout that an export has made")
          ->needs(oci);
    }
  }
  if (name == "export") {
    command.add_option("names", arguments.selectors, "keys, or the first digits of digests; all entries without one")
        ->type_name("KEY-OR-DIGEST-PREFIX");
    command.add_option("--arch", arguments.arch, "only entries of this target, in any spelling (hopper, 9.0a)")
        ->type_name("TARGET");
  }
  if (name == "sign") {
    command.add_option("names", arguments.selectors, "keys, or the first digits of digests; all entries without one")
        ->type_name("KEY-OR-DIGEST-PREFIX");
  }
  if (name == "export" || name == "sign") {
    command
        .add_option("--sign-key", arguments.sign_key,
                    "sign with this Ed25519 private key, a PEM file; else GEMVJIT_CACHE_SIGNING_KEY")
        ->type_name("FILE");
  }
  if (name == "verify") {
    CLI::Option* deep = command.add_flag(
        "--deep", arguments.deep, "also every read-only layer of GEMVJIT_CACHE_RO, and whether layers contradict");
    command
        .add_flag("--repair", arguments.repair, "remove what is damaged in the cache folder; layers stay as they are")
        ->needs(deep);
  }
  if (name == "config")
    command.add_flag("--origin", arguments.origin, "and what said so: a variable, a file, or nothing");
  if (name == "stats") command.add_flag("--prometheus", arguments.prometheus, "in Prometheus's text format");
  if (name == "rm") {
    command.add_option("names", arguments.selectors, "keys, or the first digits of digests")
        ->type_name("KEY-OR-DIGEST-PREFIX");
    command.add_flag("--all", arguments.all, "every entry");
    command.add_flag("--damaged", arguments.damaged, "every file that is no whole entry");
  }
}

int run(int argc, char** argv) {
  CLI::App app("Look into the gemvjit kernel cache, check it, clean it.", "gemvjit-cache");
  app.footer(exit_codes_text(exit_texts) + examples);
  app.set_version_flag("--version",
                       fmt::format("{}.{}.{}", GEMVJIT_VERSION_MAJOR, GEMVJIT_VERSION_MINOR, GEMVJIT_VERSION_PATCH));
  app.require_subcommand(1);
  app.fallthrough();  // so that a command may be followed by the options of all
  CacheArguments arguments;
  std::string cache_dir;
  const CLI::Option* cache_option =
      app.add_option("--cache-dir", cache_dir, "else GEMVJIT_CACHE_DIR, $XDG_CACHE_HOME/gemvjit, $HOME/.cache/gemvjit")
          ->type_name("DIR");
  app.add_flag("--json", arguments.json, "one JSON document");
  add_common_options(app);
  for (const Command& command : commands) {
    add_arguments(*app.add_subcommand(command.name, command.text), command, arguments);
  }
  if (argc == 3 && std::string_view(argv[1]) == "--dump-cli" && std::string_view(argv[2]) == "config-man") {
    fmt::print("{}", config_man_page());
    return exit_done;
  }
  if (const auto code = parse_command_line(app, argc, argv)) return *code;
  if (cache_option->count() > 0) {
    if (cache_dir.empty()) {
      complain("--cache-dir is empty; name a folder");
      return exit_usage;
    }
    arguments.cache_dir = cache_dir;
  }
  const auto& settings = tool_settings();
  for (const Command& command : commands) {
    if (!app.get_subcommand(command.name)->parsed()) continue;
    // The doctor has it in its report.
    if (!settings && command.run != run_doctor) {
      complain(settings.status().message());
      return exit_usage;
    }
    const bool takes_target =
        command.run == collect_entries || command.run == export_entries || command.run == push_entries;
    if (takes_target && !arguments.arch.empty()) {
      std::vector<Arch> targets;
      if (const ExitCode code = read_targets(arguments.arch, targets); code != exit_done) return code;
      for (const Arch& target : targets) arguments.targets.push_back(target.text());
    }
    return command.run(arguments);
  }
  return exit_usage;
}

}  // namespace
}  // namespace gemvjit::tools

int main(int argc, char** argv) {
  return gemvjit::tools::run_tool("gemvjit-cache", argc, argv, [&] { return gemvjit::tools::run(argc, argv); });
}
