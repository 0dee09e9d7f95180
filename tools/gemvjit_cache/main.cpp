// gemvjit-cache: look into the kernel cache, check it, clean it.
#include <fmt/format.h>

#include <cstdio>
#include <exception>

#include "tools/common/command_line.h"
#include "tools/gemvjit_cache/commands.h"

namespace gemvjit::tools {

void complain(const std::string& message) { fmt::print(stderr, "gemvjit-cache: {}\n", message); }

namespace {

struct Command {
  const char* name;
  const char* text;
  ExitCode (*run)(const CacheArguments& arguments);
};

constexpr Command commands[] = {
    {"ls", "list the entries: key, size, registers, shared memory, spills, compile time, age", list_entries},
    {"show", "all that is known of one entry", show_entry},
    {"verify", "check every file's checksum and name; exit 7 if one is damaged", verify_entries},
    {"stats", "number and size of entries by target and family", show_stats},
    {"rm", "remove entries", remove_entries},
    {"path", "print the cache folder", show_path},
    {"doctor", "what the library finds here: cache, NVRTC, driver, tuning tables; exit 5 if of no use", run_doctor},
};

constexpr const char* footer =
    "Exit codes: 0 done, 2 usage or an ambiguous name, 4 no such entry, 5 no cache folder or an unusable one (doctor:\n"
    "neither NVRTC nor a device), 6 an entry could not be removed, 7 an entry is damaged (verify).";

void add_options(CLI::App& command, const std::string& name, CacheArguments& arguments, std::string& cache_dir) {
  command.add_option("--cache-dir", cache_dir, "else GEMVJIT_CACHE_DIR, $XDG_CACHE_HOME/gemvjit, $HOME/.cache/gemvjit")
      ->type_name("DIR");
  command.add_flag("--json", arguments.json, "one JSON document");
  if (name == "show") {
    command.add_option("name", arguments.selectors, "a key, or the first digits of a digest")
        ->type_name("KEY-OR-DIGEST-PREFIX")
        ->required()
        ->expected(1);
  }
  if (name == "rm") {
    command.add_option("names", arguments.selectors, "keys, or the first digits of digests")
        ->type_name("KEY-OR-DIGEST-PREFIX");
    command.add_flag("--all", arguments.all, "every entry");
    command.add_flag("--damaged", arguments.damaged, "every file that is no whole entry");
  }
}

int run(int argc, char** argv) {
  CLI::App app("Look into the gemvjit kernel cache, check it, clean it.", "gemvjit-cache");
  app.footer(footer);
  app.require_subcommand(1);
  CacheArguments arguments;
  std::string cache_dir;
  for (const Command& command : commands) {
    add_options(*app.add_subcommand(command.name, command.text), command.name, arguments, cache_dir);
  }
  if (const auto code = parse_command_line(app, argc, argv)) return *code;
  for (const Command& command : commands) {
    const CLI::App& subcommand = *app.get_subcommand(command.name);
    if (!subcommand.parsed()) continue;
    if (subcommand.count("--cache-dir") > 0) {
      if (cache_dir.empty()) {
        complain("--cache-dir is empty; name a folder");
        return exit_usage;
      }
      arguments.cache_dir = cache_dir;
    }
    return command.run(arguments);
  }
  return exit_usage;
}

}  // namespace
}  // namespace gemvjit::tools

int main(int argc, char** argv) {
  try {
    return gemvjit::tools::run(argc, argv);
  } catch (const std::exception& error) {
    gemvjit::tools::complain(error.what());
    return gemvjit::tools::exit_environment;
  }
}
