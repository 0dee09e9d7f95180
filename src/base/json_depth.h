// How deep JSON text is nested, asked before it is parsed: the parser's values are built, copied, printed and destroyed
// by recursion, so that a small file of brackets alone would overflow the stack of whoever reads it.
//
// Pure, without recursion and memory of its own; any thread.
#pragma once

#include <string>
#include <string_view>

namespace gemvjit {

// What this project's files never need: tuning tables have 4 levels, lists of shapes 6.
inline constexpr int kMaxJsonLevels = 64;

// Whether some object or list of `text` is within `levels` others or more. Text that is no JSON is judged up to where a
// parser gives up, and may be judged too deep for what follows.
bool json_nests_deeper_than(std::string_view text, int levels);

// What an exception of nlohmann::json says, without the exception's own name in brackets before it; other text as it
// is.
std::string json_error_text(std::string_view what);

}  // namespace gemvjit
