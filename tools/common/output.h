// What a tool says: its result on stdout, everything else on stderr, both with what would steer a terminal escaped;
// with
// --json one document on stdout, for an error as well. Streams and exit code belong to the process, so this is one
// state for it. Threads: the main one.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "tools/common/terminal.h"

namespace gemvjit::tools {

class Table;

// A tool's main: runs `body` and returns the process's exit code. `program` is the tool's name in front of its errors.
// - An exception that leaves `body` is an error, exit_environment.
// - Where --json is among the arguments, body ended with an error and gave no document, the document is
//   {"error": {"message", "exit_code"}}, with what complain() was told.
// - --color=always|never holds from the first message on. With --progress=json every message is a line
//   {"schema": 1, "event": "message", "level": "info" or "error", "text"}.
// - Stdout that could not be written turns exit_done into exit_environment, with a message.
int run_tool(const char* program, int argc, char** argv, const std::function<int()>& body);

// To stderr, with what would steer a terminal escaped (printable.h). That nobody can read it is no reason to stop, or
// to throw as fmt does.
void say(std::string_view text);
void complain(const std::string& message);  // an error, to stderr, with the tool's name

// A result for people, to stdout, escaped as say() does. Not for what programs read.
void print_text(std::string_view text);
template <typename... Parts>
void tell(fmt::format_string<Parts...> format, Parts&&... parts) {
  print_text(fmt::format(format, std::forward<Parts>(parts)...));
}

// A table, to stdout: in color and as narrow as stdout's style asks. Cells escape themselves.
void print_table(const Table& table);
// "DAMAGED path: why" with its first word in color, to stdout: a word of state, then the rest of the line, escaped.
void print_state(std::string_view word, Paint color, std::string_view rest);

// The one document of --json; bytes that are no UTF-8 (in a path) are replaced.
void print_json(const nlohmann::ordered_json& document);

}  // namespace gemvjit::tools
