#include "tools/gemvjit_warmup/worker.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <iostream>

#include "tools/gemvjit_warmup/worker_reply.h"

namespace gemvjit::tools {
namespace {

constexpr int reply_fd = 3;

void reply(const WorkerReply& what) {
  const std::string line = write_reply(what) + "\n";
  std::size_t done = 0;
  while (done < line.size()) {
    const ssize_t written = ::write(reply_fd, line.data() + done, line.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) ::_exit(1);  // nobody listens
    done += static_cast<std::size_t>(written);
  }
}

void on_log(void*, gemvjit_log_level level, const char* message) {
  WorkerReply line;
  line.is_log = true;
  line.log_level = level;
  line.message = message;
  reply(line);
}

int on_kernel(void* user, const gemvjit_kernel_info* kernel) {
  auto& result = *static_cast<WorkerReply*>(user);
  result.path = kernel->path;
  result.error = kernel->error;
  result.outcome = kernel->outcome;
  result.status = kernel->status;
  result.milliseconds = kernel->milliseconds;
  result.compile_ms = kernel->compile_ms;
  result.registers = kernel->registers;
  result.smem_bytes = kernel->smem_bytes;
  result.spill_bytes = kernel->spill_bytes;
  result.cubin_bytes = kernel->cubin_bytes;
  return 0;
}

WorkerReply warm_one(gemvjit_context* context, const std::string& key) {
  WorkerReply result;
  gemvjit_warmup_options options{};
  options.struct_size = sizeof options;
  options.on_kernel = on_kernel;
  options.user = &result;
  options.level = GEMVJIT_LEVEL_COMPILED;
  options.require_cache = 1;
  const char* text = key.c_str();
  const gemvjit_status status = gemvjit_warmup_keys(context, &text, 1, &options);
  if (status != GEMVJIT_OK && result.error.empty()) {  // there was no kernel to tell of
    result.outcome = GEMVJIT_OUTCOME_FAILED;
    result.status = status;
    result.error = gemvjit_last_error();
  }
  return result;
}

bool parse_number(const char* text, int& value) {
  const char* end = text + std::char_traits<char>::length(text);
  return std::from_chars(text, end, value).ptr == end;
}

// The end of the parent ends this process, also where the parent ended before this was said.
bool bind_to_parent(int parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  return ::getppid() == parent;
}

}  // namespace

std::vector<std::string> worker_arguments(const WorkerSettings& settings) {
  return {kWorkerArgument, settings.cache_dir, fmt::format("{}", settings.log_level),
          fmt::format("{}", settings.memory_mb), fmt::format("{}", settings.parent)};
}

int run_worker(int argc, char** argv) {
  WorkerSettings settings;
  if (argc != 6 || !parse_number(argv[3], settings.log_level) || !parse_number(argv[4], settings.memory_mb) ||
      !parse_number(argv[5], settings.parent)) {
    return 2;
  }
  std::signal(SIGINT, SIG_IGN);
  std::signal(SIGTERM, SIG_IGN);
  std::signal(SIGHUP, SIG_IGN);
  if (!bind_to_parent(settings.parent)) return 1;
  ::dup2(STDERR_FILENO, STDOUT_FILENO);  // stdout is for the parent's result alone
  if (settings.memory_mb > 0) {
    const rlim_t bytes = static_cast<rlim_t>(settings.memory_mb) << 20;
    const rlimit limit{bytes, bytes};
    if (::setrlimit(RLIMIT_AS, &limit) != 0) return 1;
  }
  gemvjit_options options;
  (void)gemvjit_options_init(&options);
  options.device = GEMVJIT_DEVICE_NONE;
  options.cache_dir = argv[2];
  options.compile_threads = 1;
  options.log_level = settings.log_level;
  options.log_callback = on_log;
  gemvjit_context* context = nullptr;
  const gemvjit_status made = gemvjit_create(&options, &context);
  const std::string why_not = made == GEMVJIT_OK ? "" : gemvjit_last_error();
  for (std::string key; std::getline(std::cin, key);) {
    WorkerReply result;
    result.status = made;
    result.error = why_not;
    reply(made == GEMVJIT_OK ? warm_one(context, key) : result);
  }
  (void)gemvjit_destroy(context);
  return 0;
}

}  // namespace gemvjit::tools
