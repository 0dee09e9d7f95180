#include "tools/common/exit_code_text.h"

#include <fmt/format.h>

#include "tools/common/terminal.h"

namespace gemvjit::tools {

std::string exit_codes_text(std::span<const ExitCodeText> codes) {
  constexpr std::size_t columns = 110;
  std::string text = "Exit codes:\n";
  for (const ExitCodeText& code : codes) text += wrap_words(fmt::format("{} {}\n", code.code, code.text), columns);
  return text;
}

}  // namespace gemvjit::tools
