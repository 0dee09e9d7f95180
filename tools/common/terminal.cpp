#include "tools/common/terminal.h"

#include <fmt/color.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdlib>

namespace gemvjit::tools {
namespace {

std::atomic<ColorChoice> color_choice{ColorChoice::automatic};

std::string variable(const char* name) {
  const char* value = ::secure_getenv(name);
  return value == nullptr ? "" : value;
}

// 0 for what is no width.
std::size_t width_of(const std::string& text) {
  std::size_t width = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), width);
  return error == std::errc() && end == text.data() + text.size() && width <= 10000 ? width : 0;
}

}  // namespace

StreamFacts stream_facts(int fd) {
  StreamFacts facts;
  facts.is_terminal = ::isatty(fd) == 1;
  winsize size{};
  if (facts.is_terminal && ::ioctl(fd, TIOCGWINSZ, &size) == 0) facts.terminal_columns = size.ws_col;
  facts.no_color = variable("NO_COLOR");
  facts.term = variable("TERM");
  facts.columns = variable("COLUMNS");
  return facts;
}

StreamStyle stream_style(const StreamFacts& facts, ColorChoice choice) {
  StreamStyle style;
  style.is_terminal = facts.is_terminal;
  style.can_redraw = facts.is_terminal && !facts.term.empty() && facts.term != "dumb";
  style.color =
      choice == ColorChoice::always || (choice == ColorChoice::automatic && style.can_redraw && facts.no_color.empty());
  if (!facts.is_terminal) return style;
  style.columns = facts.terminal_columns > 0 ? facts.terminal_columns : width_of(facts.columns);
  if (style.columns == 0) style.columns = 80;
  return style;
}

void set_color_choice(ColorChoice choice) { color_choice = choice; }

StreamStyle style_of(int fd) { return stream_style(stream_facts(fd), color_choice); }

std::string paint(std::string_view text, Paint paint, bool color) {
  if (!color || paint == Paint::none) return std::string(text);
  const auto shade = paint == Paint::good      ? fmt::terminal_color::green
                     : paint == Paint::warning ? fmt::terminal_color::yellow
                                               : fmt::terminal_color::red;
  return fmt::format(fmt::fg(shade), "{}", text);
}

std::string paint_prefix(std::string_view message, bool color) {
  if (!color) return std::string(message);
  for (const auto& [word, shade] :
       {std::pair{std::string_view("error:"), Paint::bad}, std::pair{std::string_view("warning:"), Paint::warning}}) {
    for (const std::string_view before : {std::string_view(), std::string_view("gemvjit ")}) {
      if (!message.starts_with(before) || !message.substr(before.size()).starts_with(word)) continue;
      return std::string(before) + paint(word, shade, color) + std::string(message.substr(before.size() + word.size()));
    }
  }
  return std::string(message);
}

std::string shorten_middle(std::string_view text, std::size_t columns) {
  if (columns == 0 || text.size() <= columns) return std::string(text);
  if (columns < 5) return std::string(text.substr(0, columns));
  const std::size_t kept = columns - 3;
  std::size_t front = (kept + 1) / 2, back = text.size() - (kept - front);
  const auto is_inside = [&](std::size_t at) { return at < text.size() && (text[at] & 0xc0) == 0x80; };
  while (front > 0 && is_inside(front)) --front;  // no character is cut in two
  while (is_inside(back)) ++back;
  return std::string(text.substr(0, front)) + "..." + std::string(text.substr(back));
}

std::string wrap_words(std::string_view text, std::size_t columns) {
  if (columns == 0) return std::string(text);
  std::string result;
  std::size_t used = 0;  // of the line
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(" \n"), text.size());
    const std::string_view word = text.substr(0, end);
    if (used > 2 && used + word.size() > columns) {
      if (result.ends_with(' ')) result.pop_back();
      result += "\n  ";
      used = 2;
    }
    result += word;
    used += word.size();
    if (end < text.size()) {
      result += text[end];
      used = text[end] == '\n' ? 0 : used + 1;
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return result;
}

}  // namespace gemvjit::tools
