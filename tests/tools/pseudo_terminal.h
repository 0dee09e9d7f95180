// Runs a program whose stdout and stderr are a terminal, and collects what it draws.
#pragma once

#include <fcntl.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "tests/tools/subprocess.h"

namespace gemvjit::test {

struct TerminalOutput {
  int exit_code = -1;
  std::string screen;  // of both streams, \n as the terminal makes it: \r\n
};

// `columns` 0: a terminal that does not know its width. exit_code -1: there was no terminal to be had.
inline TerminalOutput run_on_terminal(const std::vector<std::string>& arguments, const Environment& environment,
                                      unsigned short columns) {
  TerminalOutput output;
  winsize size{};
  size.ws_row = 24;
  size.ws_col = columns;
  int terminal = -1;
  const pid_t pid = ::forkpty(&terminal, nullptr, nullptr, &size);
  if (pid < 0) return output;
  if (pid == 0) {
    for (const auto& [name, value] : environment) {
      value.empty() ? ::unsetenv(name.c_str()) : ::setenv(name.c_str(), value.c_str(), 1);
    }
    std::vector<char*> argv;
    for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  char buffer[4096];
  // The end of what was written is told by EIO, once the program has closed the terminal.
  for (ssize_t got = 0; (got = ::read(terminal, buffer, sizeof buffer)) > 0;) {
    output.screen.append(buffer, static_cast<std::size_t>(got));
  }
  ::close(terminal);
  int status = 0;
  ::waitpid(pid, &status, 0);
  output.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return output;
}

}  // namespace gemvjit::test
