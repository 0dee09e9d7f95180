// CLI11 as all tools use it: its errors become exit code 2.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

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

// Parses; an exit code if the program is to end now (0 after --help and --version, else 2 with the reason on stderr).
inline std::optional<int> parse_command_line(CLI::App& app, int argc, char** argv) {
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
  } catch (const CLI::ParseError& error) {
    complain(fmt::format("{}; see --help", error.what()));
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
