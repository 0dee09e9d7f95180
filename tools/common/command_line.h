// CLI11 as all tools use it: its errors become exit code 2.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>

#include "tools/common/exit_codes.h"

namespace gemvjit::tools {

// Parses; an exit code if the program is to end now (0 after --help and --version, else 2 with the reason on stderr).
inline std::optional<int> parse_command_line(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? exit_done : exit_usage;
  }
}

}  // namespace gemvjit::tools
