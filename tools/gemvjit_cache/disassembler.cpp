#include "tools/gemvjit_cache/disassembler.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <glob.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

#include "src/base/descriptor.h"
#include "src/base/files.h"
#include "src/base/folder.h"
#include "src/runtime/options.h"

namespace gemvjit::tools {
namespace {

std::string error_text(int error) { return std::generic_category().message(error); }

bool is_program(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && ::access(path.c_str(), X_OK) == 0;
}

std::vector<std::string> toolkit_folders() {
  std::vector<std::string> folders;
  glob_t matches{};
  if (::glob("/usr/local/cuda*/bin", 0, nullptr, &matches) == 0) {
    folders.assign(matches.gl_pathv, matches.gl_pathv + matches.gl_pathc);
  }
  ::globfree(&matches);
  return folders;
}

std::vector<std::string> search_folders(const EnvironmentReader& environment) {
  std::vector<std::string> folders;
  const std::string path = environment("PATH").value_or("");
  for (std::size_t begin = 0; begin < path.size();) {
    const std::size_t end = std::min(path.find(':', begin), path.size());
    // A relative folder of PATH would run what happens to be in the current one.
    if (path[begin] == '/') folders.push_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
  if (const std::string home = environment("CUDA_HOME").value_or(""); !home.empty()) folders.push_back(home + "/bin");
  const std::vector<std::string> toolkits = toolkit_folders();
  folders.insert(folders.end(), toolkits.begin(), toolkits.end());
  return folders;
}

Disassembler as_tool(const std::string& path) {
  const bool is_cuobjdump = path.substr(path.rfind('/') + 1).starts_with("cuobjdump");
  return {path, is_cuobjdump ? std::vector<std::string>{"-sass"} : std::vector<std::string>{}};
}

// A folder of mode 0700 with one file, both gone with it.
class PrivateFile {
 public:
  static Result<PrivateFile> write(const std::vector<std::uint8_t>& bytes) {
    std::string place = process_environment()("TMPDIR").value_or("");
    if (!place.starts_with('/')) place = "/tmp";
    GEMVJIT_TRY_ASSIGN(Folder parent, Folder::open(place));
    const std::string name = "gemvjit-" + temporary_file_name(0).substr(temporary_file_prefix.size());
    GEMVJIT_TRY_ASSIGN(Folder folder, parent.make_folder(name, 0700));
    PrivateFile file(std::move(parent), std::move(folder), name);
    GEMVJIT_TRY_ASSIGN(const struct stat info, file.folder_.examine());
    if (info.st_uid != ::geteuid() || (info.st_mode & 077) != 0) {
      return Status(StatusCode::io_error, fmt::format("{} is not this user's alone", file.folder_.path()));
    }
    GEMVJIT_TRY(file.folder_.publish(file_name, bytes.data(), bytes.size(), {.replace = true, .mode = 0600}).status());
    return file;
  }
  PrivateFile(PrivateFile&& other) noexcept
      : parent_(std::move(other.parent_)), folder_(std::move(other.folder_)), name_(std::move(other.name_)) {
    other.name_.clear();
  }
  PrivateFile& operator=(PrivateFile&&) = delete;
  ~PrivateFile() {
    if (name_.empty()) return;
    (void)folder_.remove(file_name);
    (void)::unlinkat(parent_.descriptor(), name_.c_str(), AT_REMOVEDIR);
  }
  std::string path() const { return folder_.path_of(file_name); }

 private:
  static constexpr const char* file_name = "kernel.cubin";
  PrivateFile(Folder parent, Folder folder, std::string name)
      : parent_(std::move(parent)), folder_(std::move(folder)), name_(std::move(name)) {}
  Folder parent_, folder_;
  std::string name_;
};

// Starts the program with its stdout at `out`; 0 or the errno.
int spawn(const std::vector<std::string>& command, int out, pid_t& child) {
  std::vector<char*> argv;
  for (const std::string& argument : command) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  sigset_t defaults;
  sigemptyset(&defaults);
  sigaddset(&defaults, SIGPIPE);
  sigaddset(&defaults, SIGXFSZ);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  const int error = ::posix_spawn(&child, argv[0], &actions, &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

constexpr int look_every_ms = 200;

// Until the end of the output, or false: until `cancel`. A signal that reaches this process alone leaves the child
// running, and the read waiting.
bool read_all(int fd, const std::function<void(std::string_view)>& on_output, const volatile std::int32_t* cancel) {
  std::array<char, 65536> buffer;
  for (;;) {
    if (*cancel != 0) return false;
    pollfd ready{fd, POLLIN, 0};
    if (::poll(&ready, 1, look_every_ms) <= 0) continue;
    const ssize_t got = ::read(fd, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return true;
    on_output({buffer.data(), static_cast<std::size_t>(got)});
  }
}

}  // namespace

Result<Disassembler> find_disassembler() {
  const EnvironmentReader environment = process_environment();
  if (const std::string named = environment("GEMVJIT_NVDISASM").value_or(""); !named.empty()) {
    if (is_program(named) && named.find('/') != std::string::npos) return as_tool(named);
    return Status(StatusCode::not_found,
                  fmt::format("GEMVJIT_NVDISASM names {}, which is no path of a program", named));
  }
  const std::vector<std::string> folders = search_folders(environment);
  std::string tried;
  for (const char* name : {"nvdisasm", "cuobjdump"}) {
    for (const std::string& folder : folders) {
      const std::string path = folder + "/" + name;
      if (is_program(path)) return as_tool(path);
      tried += "\n  " + path;
    }
  }
  return Status(
      StatusCode::not_found,
      "no disassembler: install nvdisasm or cuobjdump of the CUDA toolkit, name one with GEMVJIT_NVDISASM, or "
      "take the cubin elsewhere with --cubin FILE; looked for" +
          (tried.empty() ? " nothing: PATH and CUDA_HOME are empty" : tried));
}

Status run_disassembler(const Disassembler& tool, const std::vector<std::uint8_t>& cubin,
                        const std::function<void(std::string_view)>& on_output, const volatile std::int32_t* cancel) {
  GEMVJIT_TRY_ASSIGN(const PrivateFile file, PrivateFile::write(cubin));
  std::vector<std::string> command{tool.path};
  command.insert(command.end(), tool.arguments.begin(), tool.arguments.end());
  command.push_back(file.path());
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return {StatusCode::io_error, fmt::format("cannot make a pipe: {}", error_text(errno))};
  }
  const Descriptor from_child(ends[0]);
  pid_t child = 0;
  {
    const Descriptor to_parent(ends[1]);
    if (const int error = spawn(command, to_parent.get(), child); error != 0) {
      return {StatusCode::io_error, fmt::format("cannot run {}: {}", tool.path, error_text(error))};
    }
  }
  if (!read_all(from_child.get(), on_output, cancel)) ::kill(child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  if (WIFSIGNALED(status)) {
    return {StatusCode::io_error, fmt::format("{} was ended by signal {}", tool.path, WTERMSIG(status))};
  }
  if (WEXITSTATUS(status) != 0) {
    return {StatusCode::io_error, fmt::format("{} ended with exit code {}", tool.path, WEXITSTATUS(status))};
  }
  return Status::ok();
}

}  // namespace gemvjit::tools
