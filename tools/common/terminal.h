// What a stream is: a terminal or not, how wide, whether it may be coloured and redrawn. The one reader of NO_COLOR,
// TERM and COLUMNS. Threads: set_color_choice from the main one before others are there; the rest from any.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gemvjit::tools {

enum class ColorChoice { automatic, always, never };

// What the system and the environment say of a stream.
struct StreamFacts {
  bool is_terminal = false;
  std::size_t terminal_columns = 0;           // as the kernel knows them; 0: it does not
  std::string no_color{}, term{}, columns{};  // variables; "" if not set
};
StreamFacts stream_facts(int fd);

struct StreamStyle {
  bool is_terminal = false;
  bool can_redraw = false;  // a terminal that understands escapes: TERM is set, and not "dumb"
  bool color = false;
  std::size_t columns = 0;  // 0: not a terminal, as long as a line likes
};
// A pure function of both: --color decides before NO_COLOR (set and not empty), which decides before the stream.
// Terminals are as wide as the kernel says, else as COLUMNS says, else 80.
StreamStyle stream_style(const StreamFacts& facts, ColorChoice choice);

// --color of this process.
void set_color_choice(ColorChoice choice);
// Of a stream of this process, as it is now: a window may have been made narrower.
StreamStyle style_of(int fd);

enum class Paint { none, good, warning, bad };
// The text between the escapes of its paint, which is as text alone without color or for Paint::none.
std::string paint(std::string_view text, Paint paint, bool color);

// What a message begins with, "error:" or "warning:", also behind "gemvjit ", in its color.
std::string paint_prefix(std::string_view message, bool color);

// Text broken at spaces into lines of at most `columns`, those after the first begun by two spaces; a longer word stays
// whole. Lines that are there stay. 0: as it is.
std::string wrap_words(std::string_view text, std::size_t columns);

// Text of at most `columns` bytes: "n4096-k4...-sm_90a". What is too long loses its middle; of fewer than 5 columns
// only the beginning is left. 0: as it is.
std::string shorten_middle(std::string_view text, std::size_t columns);

}  // namespace gemvjit::tools
