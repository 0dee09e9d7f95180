// CLI11 as all tools use it: its errors become exit code 2, with what was perhaps meant; its definitions become manual
// pages and completions (cli_page.h).
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gemvjit/gemvjit.h"
#include "src/base/suggestion.h"
#include "tools/common/cli_page.h"
#include "tools/common/exit_codes.h"
#include "tools/common/output.h"

namespace gemvjit::tools {

// The name of an option that was given nothing ("--arch ''"), which is never the same as not giving it; else "".
inline std::string empty_option(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->count() == 0 || option->get_expected_max() == 0) continue;
    for (const std::string& value : option->results()) {
      if (value.empty()) return option->get_name();
    }
  }
  for (const CLI::App* command : app.get_subcommands()) {
    if (std::string name = empty_option(*command); !name.empty()) return name;
  }
  return "";
}

// A check of a value that is one of a few words. Use joined_words() of the same as type name.
inline CLI::Validator one_of(std::vector<std::string> words) {
  return CLI::Validator(
      [words = std::move(words)](const std::string& value) -> std::string {
        if (std::find(words.begin(), words.end(), value) != words.end()) return "";
        return fmt::format("'{}': accepted: {}{}", value, fmt::join(words, ", "), did_you_mean(value, words));
      },
      "");
}

inline std::string joined_words(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, "|"));
}

// A check of the name of a file that is to be written.
inline CLI::Validator file_to_write() {
  return CLI::Validator(
      [](const std::string& name) -> std::string {
        return name == "-" ? "'-' is no name for stdout here: name a file, or ./- for one that is called so" : "";
      },
      "");
}

// A flag "--no-x" that switches off what is on. CLI11's own way, "!--no-x", shows "{false}" in the help.
inline CLI::Option* add_off_flag(CLI::App& app, const std::string& name, bool& value, const std::string& text) {
  return app.add_flag_function(
      name, [&value](std::int64_t) { value = false; }, text);
}

// Options that every tool has. run_tool (output.h) looks for --color itself, so that also errors of the command line
// heed it.
inline void add_common_options(CLI::App& app) {
  const std::vector<std::string> choices{"auto", "always", "never"};
  app.add_option_function<std::string>(
         "--color", [](const std::string&) {},
         "auto: on a terminal, unless NO_COLOR is set or TERM is dumb; auto if not said")
      ->type_name(joined_words(choices))
      ->check(one_of(choices));
}

inline CliPage page_of(const CLI::App& app) {
  CliPage page;
  page.name = app.get_name();
  page.text = app.get_description();
  page.footer = app.get_footer();
  page.version = fmt::format("{}.{}.{}", GEMVJIT_VERSION_MAJOR, GEMVJIT_VERSION_MINOR, GEMVJIT_VERSION_PATCH);
  for (const CLI::Option* option : app.get_options()) {
    CliOption one;
    for (const std::string& name : option->get_snames()) one.names.push_back("-" + name);
    for (const std::string& name : option->get_lnames()) one.names.push_back("--" + name);
    if (one.names.empty()) one.names.push_back(option->get_name());
    one.text = option->get_description();
    if (option->get_type_size() != 0) {
      // "N:INT in [1 - 256]": a name and what checks say.
      const std::string type = option->get_type_name();
      const std::size_t colon = type.find(':');
      one.value = type.substr(0, colon);
      if (colon != std::string::npos) one.text += fmt::format(" ({})", type.substr(colon + 1));
    }
    page.options.push_back(std::move(one));
  }
  std::stable_partition(page.options.begin(), page.options.end(),
                        [](const CliOption& one) { return one.is_positional(); });
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    page.commands.push_back(page_of(*command));
  }
  return page;
}

// What there is in the place of a word that nobody took: options, or commands. What is said of it, or "".
inline std::string suggestion_for(const CLI::App& app) {
  const std::vector<std::string> unknown = app.remaining(true);
  if (unknown.empty()) return "";
  // What follows an unknown option is its value, most likely.
  const auto option =
      std::find_if(unknown.begin(), unknown.end(), [](const auto& one) { return one.starts_with('-'); });
  const bool is_option = option != unknown.end();
  const std::string word = is_option ? option->substr(0, option->find('=')) : unknown.front();
  std::vector<std::string> words;
  std::vector<const CLI::App*> apps{&app};
  for (const CLI::App* command : app.get_subcommands()) apps.push_back(command);
  for (const CLI::App* one : apps) {
    const CliPage page = page_of(*one);
    for (const CliPage& command : page.commands) {
      if (!is_option && apps.size() == 1) words.push_back(command.name);
    }
    for (const CliOption& known : page.options) {
      if (is_option && !known.is_positional()) words.insert(words.end(), known.names.begin(), known.names.end());
    }
  }
  return did_you_mean(word, words);
}

// Parses; an exit code if the program is to end now (0 after --help and --version, else 2 with the reason on stderr).
// "--dump-cli man|bash|zsh|fish", which the build alone uses, prints the manual page or a completion.
inline std::optional<int> parse_command_line(CLI::App& app, int argc, char** argv) {
  if (argc == 3 && std::string_view(argv[1]) == "--dump-cli") {
    const std::string text = render_page(page_of(app), argv[2]);
    fmt::print("{}", text);
    if (!text.empty()) return exit_done;
    complain(fmt::format("--dump-cli {}: accepted: man, bash, zsh, fish; it is there for the build", argv[2]));
    return exit_usage;
  }
  try {
    app.parse(argc, argv);
    const std::string empty = empty_option(app);
    if (empty.empty()) return std::nullopt;
    complain(fmt::format("{} is empty; see --help", empty));
  } catch (const CLI::Success& asked) {
    app.exit(asked);  // prints the help or the version
    return exit_done;
  } catch (const CLI::ConversionError& error) {
    complain(fmt::format("{}: not a value that this option takes; see --help", error.what()));
  } catch (const CLI::RequiredError& error) {
    const std::vector<std::string> unknown = app.remaining();
    const bool no_command = app.get_subcommands().empty() && !unknown.empty();
    complain(no_command
                 ? fmt::format("'{}' is no command or option{}; see --help", unknown.front(), suggestion_for(app))
                 : fmt::format("{}; see --help", error.what()));
  } catch (const CLI::ParseError& error) {
    complain(fmt::format("{}{}; see --help", error.what(), suggestion_for(app)));
  }
  return exit_usage;
}

// The parts of comma-separated values, of an option that may be repeated. False if a part is empty.
inline bool split_at_commas(const std::vector<std::string>& values, std::vector<std::string>& parts) {
  for (const std::string& value : values) {
    std::size_t begin = 0;
    for (std::size_t end = 0; end != std::string::npos; begin = end + 1) {
      end = value.find(',', begin);
      const std::string part = value.substr(begin, end == std::string::npos ? end : end - begin);
      if (part.empty()) return false;
      parts.push_back(part);
    }
  }
  return true;
}

}  // namespace gemvjit::tools
