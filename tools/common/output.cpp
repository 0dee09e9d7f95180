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
#include "tools/common/printable.h"

namespace gemvjit::tools {
namespace {

struct State {
  const char* program = "";
  bool json = false;  // --json is among the arguments
  bool document_given = false;
  std::string complaints;
};
State state;

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
  state.program = program;
  for (int i = 1; i < argc; ++i) state.json = state.json || std::string_view(argv[i]) == "--json";
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
  const std::string safe = printable_message(text);
  (void)std::fwrite(safe.data(), 1, safe.size(), stderr);
}

void print_text(std::string_view text) {
  const std::string safe = printable_message(text);
  (void)std::fwrite(safe.data(), 1, safe.size(), stdout);  // run_tool says what could not be written
}

void complain(const std::string& message) {
  if (!state.complaints.empty()) state.complaints += "\n";
  state.complaints += message;
  say(fmt::format("{}: {}\n", state.program, message));
}

void print_json(const nlohmann::ordered_json& document) {
  state.document_given = true;
  const std::string text = document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  std::fwrite(text.data(), 1, text.size(), stdout);
}

}  // namespace gemvjit::tools
