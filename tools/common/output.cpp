#include "tools/common/output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <nlohmann/json.hpp>
#include <string_view>

#include "tools/common/exit_codes.h"
#include "tools/common/interrupt.h"
#include "tools/common/printable.h"
#include "tools/common/table.h"
#include "tools/common/terminal.h"

namespace gemvjit::tools {
namespace {

struct State {
  const char* program = "";
  bool json = false;            // --json is among the arguments
  bool message_events = false;  // and so is --progress=json
  bool document_given = false;
  std::string complaints;
};
State state;

// What the arguments say of how to say things, for errors that come before they are parsed, or because they cannot be.
void look_at(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i], next = i + 1 < argc ? argv[i + 1] : "";
    state.json = state.json || argument == "--json";
    const auto is = [&](std::string_view name, std::string_view value) {
      return (argument == name && next == value) ||
             (argument.size() == name.size() + 1 + value.size() && argument.starts_with(name) &&
              argument[name.size()] == '=' && argument.ends_with(value));
    };
    state.message_events = state.message_events || is("--progress", "json");
    if (is("--color", "always")) set_color_choice(ColorChoice::always);
    if (is("--color", "never")) set_color_choice(ColorChoice::never);
    if (is("--color", "auto")) set_color_choice(ColorChoice::automatic);
  }
}

void write_stderr(const std::string& text) { (void)std::fwrite(text.data(), 1, text.size(), stderr); }

// With --progress=json stderr holds objects only, so a message is one, too.
void write_event(const char* level, std::string_view text) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  const nlohmann::ordered_json event{{"schema", 1}, {"event", "message"}, {"level", level}, {"text", text}};
  write_stderr(event.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

// A file that the program opens must not become its stdout or stderr: who closed these gets what cannot be written to.
void hold_standard_descriptors() {
  for (int fd = 0; fd <= 2; ++fd) {
    if (::fcntl(fd, F_GETFD) < 0 && errno == EBADF && ::open("/dev/null", O_RDONLY) != fd) return;
  }
}

// errno is not kept from the write that failed, so the flush's own reason is given where it has one.
bool flush_stdout(std::string& reason) {
  errno = 0;
  const bool flushed = std::fflush(stdout) == 0;
  if (flushed && std::ferror(stdout) == 0) return true;
  reason = errno != 0 ? std::strerror(errno) : "a write failed";
  return false;
}

int finish(int code) {
  if (state.json && code != exit_done && !state.document_given && std::ferror(stdout) == 0) {
    print_json({{"error", {{"message", state.complaints}, {"exit_code", code}}}});
  }
  std::string reason;
  if (flush_stdout(reason)) return code;
  say(fmt::format("{}: the result could not be written to stdout: {}\n", state.program, reason));
  return code == exit_done ? exit_environment : code;
}

}  // namespace

int run_tool(const char* program, int argc, char** argv, const std::function<int()>& body) {
  hold_standard_descriptors();
  ignore_file_size_signal();
  state.program = program;
  look_at(argc, argv);
  int code = exit_environment;
  try {
    code = body();
  } catch (const std::exception& error) {
    // A full stdout also ends up here, because fmt throws; finish() says that better.
    if (std::ferror(stdout) == 0)
      complain(error.what());
    else
      code = exit_done;
  }
  return finish(code);
}

void say(std::string_view text) {
  if (state.message_events) return write_event("info", text);
  write_stderr(paint_prefix(printable_message(text), style_of(STDERR_FILENO).color));
}

void print_text(std::string_view text) {
  const std::string safe = printable_message(text);
  (void)std::fwrite(safe.data(), 1, safe.size(), stdout);  // run_tool says what could not be written
}

void print_table(const Table& table) {
  const std::string text = table.text(style_of(STDOUT_FILENO));  // print_text() would show the escapes of colors
  (void)std::fwrite(text.data(), 1, text.size(), stdout);
}

void print_state(std::string_view word, Paint color, std::string_view rest) {
  const std::string shown = paint(printable_line(word), color, style_of(STDOUT_FILENO).color);
  (void)std::fwrite(shown.data(), 1, shown.size(), stdout);
  print_text(rest);
}

void complain(const std::string& message) {
  if (!state.complaints.empty()) state.complaints += "\n";
  state.complaints += message;
  if (state.message_events) return write_event("error", message);
  const std::string program = paint(fmt::format("{}:", state.program), Paint::bad, style_of(STDERR_FILENO).color);
  write_stderr(fmt::format("{} {}\n", program, printable_message(message)));
}

void print_json(const nlohmann::ordered_json& document) {
  state.document_given = true;
  const std::string text = document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  std::fwrite(text.data(), 1, text.size(), stdout);
}

}  // namespace gemvjit::tools
