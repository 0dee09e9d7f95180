// Text that came from a file, such as a tensor's name, made fit for a terminal.
#pragma once

#include <string>
#include <string_view>

namespace gemvjit::tools {

// Control characters as \n, \t or \x1b (C1 and bytes that are no UTF-8 too, and U+2028 to U+202E, U+2066 to U+2069,
// which turn the direction of text or break lines, as \u202e), backslashes doubled; what is longer than 120 bytes then
// is cut there and ends in "...".
std::string printable(std::string_view text);

// A whole message for a terminal, whatever was quoted in it: as above, but lines stay lines, tabs and backslashes what
// they are, and nothing is cut.
std::string printable_message(std::string_view text);

// The same where text is to stay on its line, such as a table's cell: newlines and tabs are escaped, too.
std::string printable_line(std::string_view text);

// Bytes that are no UTF-8 as \xff; all else as it is.
std::string valid_utf8(std::string_view text);

}  // namespace gemvjit::tools
