// Runs a program and collects what it says: for tests of the command-line tools.
#pragma once

#include <fcntl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "tests/support/temp_dir.h"

namespace gemvjit::test {

struct ProgramOutput {
  int exit_code = -1;  // 128 + signal for a program that a signal ended
  std::string out, err;
};

// Variables to set; an empty value removes the variable.
using Environment = std::map<std::string, std::string>;

class Program {
 public:
  // Starts it. Output goes to files, so that no pipe can fill up; stdout to `stdout_path` if that is not empty.
  Program(const std::vector<std::string>& arguments, const Environment& environment,
          const std::string& stdout_path = "", bool as_nobody = false) {
    const std::string out = stdout_path.empty() ? folder_.path("out") : stdout_path, err = folder_.path("err");
    std::ofstream(folder_.path("out"));
    pid_ = ::fork();
    if (pid_ != 0) return;
    for (const auto& [name, value] : environment) {
      value.empty() ? ::unsetenv(name.c_str()) : ::setenv(name.c_str(), value.c_str(), 1);
    }
    std::vector<char*> argv;
    for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    ::dup2(::open("/dev/null", O_RDONLY), STDIN_FILENO);
    ::dup2(::open(out.c_str(), O_WRONLY | O_CREAT, 0600), STDOUT_FILENO);
    ::dup2(::open(err.c_str(), O_WRONLY | O_CREAT, 0600), STDERR_FILENO);
    if (as_nobody && ::setuid(65534) != 0) ::_exit(126);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }

  void send(int signal) const { ::kill(pid_, signal); }

  ProgramOutput wait() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    ProgramOutput output;
    output.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    output.out = read_text(folder_.path("out"));
    output.err = read_text(folder_.path("err"));
    return output;
  }

 private:
  TempDir folder_;
  pid_t pid_ = -1;
};

inline ProgramOutput run_program(const std::vector<std::string>& arguments, const Environment& environment = {}) {
  return Program(arguments, environment).wait();
}

}  // namespace gemvjit::test
