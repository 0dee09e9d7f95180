#include <fmt/format.h>

#include <sstream>

#include "tools/common/cli_page.h"

namespace gemvjit::tools {
namespace {

struct Footer {
  std::string exit_codes, examples, other;
};

std::string trimmed(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  while (!text.empty() && text.front() == '\n') text.erase(text.begin());
  return text;
}

// "Examples:", or "Example: command", and what is before, perhaps with "Exit codes:".
Footer split_footer(const std::string& text) {
  Footer footer;
  std::string rest = text;
  for (const std::string_view title : {"Examples:", "Example:"}) {
    const std::size_t at = rest.find(title);
    if (at == std::string::npos) continue;
    footer.examples = trimmed(rest.substr(at + title.size()));
    rest.resize(at);
    break;
  }
  constexpr std::string_view codes = "Exit codes:";
  if (const std::size_t at = rest.find(codes); at != std::string::npos) {
    footer.exit_codes = trimmed(rest.substr(at + codes.size()));
    rest.resize(at);
  }
  footer.other = trimmed(rest);
  return footer;
}

// Lines that begin with a number are items, and those after them that do not go on with them; text without such lines
// is a paragraph.
std::string exit_status(const std::string& text) {
  std::string roff;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t digits = line.find_first_not_of("0123456789");
    if (digits > 0 && digits != std::string::npos && line[digits] == ' ') {
      roff += ".TP\n.B " + line.substr(0, digits) + "\n";
      line.erase(0, digits);
    }
    line.erase(0, line.find_first_not_of(' '));
    roff += roff_text(line) + "\n";
  }
  return roff;
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

void add_options(const CliPage& page, std::string& roff) {
  for (const CliOption& option : page.options) {
    roff += ".TP\n\\fB" + roff_text(joined(option.names)) + "\\fR";
    if (!option.value.empty()) roff += " \\fI" + roff_text(option.value) + "\\fR";
    roff += "\n" + roff_text(option.text) + "\n";
  }
}

void add_examples(const std::string& examples, std::string& roff) {
  if (examples.empty()) return;
  roff += ".PP\n.nf\n" + roff_text(examples) + "\n.fi\n";
}

std::string upper_case(std::string text) {
  for (char& letter : text) {
    if (letter >= 'a' && letter <= 'z') letter = static_cast<char>(letter - 'a' + 'A');
  }
  return text;
}

}  // namespace

std::string roff_text(std::string_view text) {
  std::string roff;
  bool line_begins = true;
  for (const char letter : text) {
    if (line_begins && (letter == '.' || letter == '\'')) roff += "\\&";
    line_begins = letter == '\n';
    switch (letter) {
      case '\\':
        roff += "\\e";
        break;
      case '-':  // a minus, as in an option that is to be copied
        roff += "\\-";
        break;
      case '\'':
        roff += "\\(aq";
        break;
      case '`':
        roff += "\\(ga";
        break;
      default:
        roff += letter;
    }
  }
  return roff;
}

std::string man_page(const CliPage& page) {
  const std::string first_sentence = page.text.substr(0, page.text.find('\n'));
  std::string summary = first_sentence;
  while (summary.ends_with('.')) summary.pop_back();
  if (!summary.empty() && summary[0] >= 'A' && summary[0] <= 'Z')
    summary[0] = static_cast<char>(summary[0] - 'A' + 'a');
  std::string roff =
      fmt::format(".TH {} 1 \"\" \"gemvjit {}\" \"gemvjit\"\n", upper_case(roff_text(page.name)), page.version);
  roff += fmt::format(".SH NAME\n{} \\- {}\n", roff_text(page.name), roff_text(summary));
  roff += fmt::format(".SH SYNOPSIS\n\\fB{}\\fR [\\fIOPTIONS\\fR]{}\n", roff_text(page.name),
                      page.commands.empty() ? "" : " \\fICOMMAND\\fR ...");
  roff += ".SH DESCRIPTION\n" + roff_text(page.text) + "\n.SH OPTIONS\n";
  add_options(page, roff);
  if (!page.commands.empty()) roff += ".SH COMMANDS\n";
  for (const CliPage& command : page.commands) {
    roff += ".SS " + roff_text(command.name) + "\n" + roff_text(command.text) + "\n";
    add_options(command, roff);
    const Footer footer = split_footer(command.footer);
    if (!footer.other.empty()) roff += ".PP\n" + roff_text(footer.other) + "\n";
    add_examples(footer.examples, roff);
  }
  const Footer footer = split_footer(page.footer);
  if (!footer.other.empty()) roff += ".SH NOTES\n" + roff_text(footer.other) + "\n";
  if (!footer.exit_codes.empty()) roff += ".SH EXIT STATUS\n" + exit_status(footer.exit_codes);
  if (!footer.examples.empty()) {
    roff += ".SH EXAMPLES\n";
    add_examples(footer.examples, roff);
  }
  roff +=
      ".SH ENVIRONMENT\nOptions of the library: see\n.BR gemvjit\\-config (5).\nNO_COLOR (set and not empty), TERM and "
      "COLUMNS say how a terminal is written to.\n.SH SEE ALSO\n";
  bool first = true;
  for (const char* other : {"gemvjit-bench", "gemvjit-cache", "gemvjit-tune", "gemvjit-verify", "gemvjit-warmup"}) {
    if (page.name == other) continue;
    roff += fmt::format("{}.BR {} (1)", first ? "" : ",\n", roff_text(other));
    first = false;
  }
  return roff + ",\n.BR gemvjit\\-config (5)\n";
}

}  // namespace gemvjit::tools
