// A command line as data, and what is made of it: the manual page and the completions of three shells. The data comes
// from the definitions that parse the command line (command_line.h), so that none of these can be out of date.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gemvjit::tools {

struct CliOption {
  std::vector<std::string> names;  // "-j", "--jobs"; of a positional one name without dashes
  std::string value;               // "DIR", "on|off"; "" for a flag
  std::string text;
  bool is_positional() const { return names.front().front() != '-'; }
};

struct CliPage {
  std::string name, text,
      footer;  // footer: "Exit codes: ...\nExamples:\n  a command   # what it does\n", either may lack
  std::string version;
  std::vector<CliOption> options;
  std::vector<CliPage> commands;  // subcommands
};

// The words that a value is one of ("on|off"); none for other values.
std::vector<std::string> choices_of(const CliOption& option);

// One of the formats: "man", "bash", "zsh", "fish"; "" for another one.
std::string render_page(const CliPage& page, std::string_view format);

std::string man_page(const CliPage& page);
std::string bash_completion(const CliPage& page);
std::string zsh_completion(const CliPage& page);
std::string fish_completion(const CliPage& page);

// Text for roff: no line of it is a request, nothing of it an escape.
std::string roff_text(std::string_view text);

}  // namespace gemvjit::tools
