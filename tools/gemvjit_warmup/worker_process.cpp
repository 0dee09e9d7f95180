#include "tools/gemvjit_warmup/worker_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

extern char** environ;

namespace gemvjit::tools {
namespace {

constexpr int worker_reply_fd = 3;              // what worker.cpp writes to
constexpr std::size_t longest_line = 4u << 20;  // compile logs are far shorter

void close_fd(int& fd) {
  if (fd >= 0) ::close(fd);
  fd = -1;
}

Status system_failure(const char* what, int error) {
  return {StatusCode::io_error, fmt::format("{}: {}", what, std::strerror(error))};
}

}  // namespace

Result<WorkerProcess> WorkerProcess::start(const std::vector<std::string>& arguments) {
  int keys[2] = {-1, -1}, replies[2] = {-1, -1};
  if (::pipe2(keys, O_CLOEXEC) != 0) return system_failure("a pipe for a worker", errno);
  if (::pipe2(replies, O_CLOEXEC) != 0) {
    const int error = errno;
    close_fd(keys[0]);
    close_fd(keys[1]);
    return system_failure("a pipe for a worker", error);
  }
  std::vector<std::string> texts{"gemvjit-warmup"};
  texts.insert(texts.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  argv.reserve(texts.size() + 1);
  for (std::string& text : texts) argv.push_back(text.data());
  argv.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, keys[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, replies[1], worker_reply_fd);
  WorkerProcess worker;
  // By file, not by name: this very program.
  const int error = ::posix_spawn(&worker.pid_, "/proc/self/exe", &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close_fd(keys[0]);
  close_fd(replies[1]);
  worker.key_fd_ = keys[1];
  worker.reply_fd_ = replies[0];
  if (error != 0) {
    worker.pid_ = -1;
    return system_failure("a worker process", error);
  }
  ::fcntl(worker.reply_fd_, F_SETFL, O_NONBLOCK);
  return worker;
}

WorkerProcess::WorkerProcess(WorkerProcess&& other) noexcept { *this = std::move(other); }

WorkerProcess& WorkerProcess::operator=(WorkerProcess&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(key_fd_, other.key_fd_);
  std::swap(reply_fd_, other.reply_fd_);
  std::swap(partial_, other.partial_);
  return *this;
}

WorkerProcess::~WorkerProcess() {
  close_pipes();
  (void)reap();
}

void WorkerProcess::close_pipes() noexcept {
  close_fd(key_fd_);
  close_fd(reply_fd_);
}

bool WorkerProcess::send(const std::string& line) {
  const std::string text = line + "\n";
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t written = ::write(key_fd_, text.data() + done, text.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    done += static_cast<std::size_t>(written);
  }
  return true;
}

bool WorkerProcess::receive(std::vector<std::string>& lines) {
  char buffer[16384];
  for (;;) {
    const ssize_t got = ::read(reply_fd_, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
    if (got == 0) return false;
    for (ssize_t i = 0; i < got; ++i) {
      if (buffer[i] != '\n') {
        if (partial_.size() < longest_line) partial_ += buffer[i];
        continue;
      }
      lines.push_back(std::move(partial_));
      partial_.clear();
    }
  }
}

void WorkerProcess::kill() {
  if (pid_ > 0) ::kill(pid_, SIGKILL);
}

// The status that waitpid gave; -1 where there is no process to wait for.
int WorkerProcess::reap() noexcept {
  if (pid_ <= 0) return -1;
  int status = 0;
  pid_t ended = -1;
  do {
    ended = ::waitpid(pid_, &status, 0);
  } while (ended < 0 && errno == EINTR);
  pid_ = -1;
  return ended < 0 ? -1 : status;
}

std::string WorkerProcess::wait() {
  close_pipes();
  const int status = reap();
  if (status < 0) return "ended in an unknown way";
  if (!WIFSIGNALED(status)) return fmt::format("ended with exit code {}", WEXITSTATUS(status));
  const int signal = WTERMSIG(status);
  return fmt::format("was ended by signal {} ({}){}", signal, ::strsignal(signal),
                     signal == SIGKILL ? ", perhaps by the system for want of memory" : "");
}

}  // namespace gemvjit::tools
