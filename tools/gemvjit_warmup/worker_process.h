// A compile worker as its parent sees it: a process of this program, keys to it on one pipe, replies on another.
//
// Ownership: the destructor closes the pipes, upon which an idle worker ends, and waits for it; kill() first for one
// that is busy. A worker ends with its parent, whatever ends that. Threads: one.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "src/base/status.h"

namespace gemvjit::tools {

class WorkerProcess {
 public:
  // `arguments` without the program's name. io_error where no process can be made.
  static Result<WorkerProcess> start(const std::vector<std::string>& arguments);
  WorkerProcess(WorkerProcess&& other) noexcept;
  WorkerProcess& operator=(WorkerProcess&& other) noexcept;
  ~WorkerProcess();

  pid_t pid() const { return pid_; }
  int reply_fd() const { return reply_fd_; }  // readable: call receive()

  // False where the worker reads no more. SIGPIPE has to be ignored.
  bool send(const std::string& line);
  // What has come so far, as whole lines appended to `lines`. False at the end of the stream.
  bool receive(std::vector<std::string>& lines);
  void kill();
  // Closes the pipes, waits for the end and says how it ended: "was ended by signal 11 (Segmentation fault)". Once.
  std::string wait();

 private:
  WorkerProcess() = default;
  void close_pipes() noexcept;
  int reap() noexcept;

  pid_t pid_ = -1;
  int key_fd_ = -1, reply_fd_ = -1;
  std::string partial_;
};

}  // namespace gemvjit::tools
