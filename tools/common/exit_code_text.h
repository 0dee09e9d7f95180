// What a tool's exit codes mean, for people: one list, of which --help and the manual page are made. docs/tools.md has
// the same words, and a test holds the two together.
#pragma once

#include <span>
#include <string>

namespace gemvjit::tools {

struct ExitCodeText {
  int code;
  const char* text;
};

// "Exit codes:", and each on lines of its own that begin with the code; ends with a newline.
std::string exit_codes_text(std::span<const ExitCodeText> codes);

}  // namespace gemvjit::tools
