#include "tools/gemvjit_warmup/isolated_warmup.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <deque>
#include <optional>
#include <vector>

#include "cache/cache_folders.h"
#include "src/base/files.h"
#include "src/base/folder.h"
#include "src/catalog/compile_cost.h"
#include "tools/cache_view/cache_refusal.h"
#include "tools/gemvjit_warmup/kernel_calls.h"
#include "tools/gemvjit_warmup/worker.h"
#include "tools/gemvjit_warmup/worker_process.h"
#include "tools/gemvjit_warmup/worker_reply.h"

namespace gemvjit::tools {
namespace {

double now_s() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// What the library told of a kernel, outliving its callback.
struct Kernel {
  std::string key, digest, arch, flags_text, match, path;
  gemvjit_kernel_info info{};
  double cost = 0;
};

// Writing to a worker that has ended is an error to be told of, not a signal.
class IgnoreBrokenPipes {
 public:
  IgnoreBrokenPipes() : before_(std::signal(SIGPIPE, SIG_IGN)) {}
  ~IgnoreBrokenPipes() { std::signal(SIGPIPE, before_); }
  IgnoreBrokenPipes(const IgnoreBrokenPipes&) = delete;
  IgnoreBrokenPipes& operator=(const IgnoreBrokenPipes&) = delete;

 private:
  void (*before_)(int);
};

struct Slot {
  std::optional<WorkerProcess> worker;
  std::optional<Kernel> kernel;  // that it works on
  double begun = 0;
};

class IsolatedRun {
 public:
  IsolatedRun(gemvjit_context* context, const IsolationOptions& options)
      : context_(context),
        options_(options),
        settings_{gemvjit_cache_dir(context), options.log_level, options.memory_mb, ::getpid()} {}

  gemvjit_status run(const ProblemList& list) {
    const gemvjit_status checked = check_kernels(context_, list, on_checked, this);
    if (checked != GEMVJIT_OK && checked != GEMVJIT_NOT_READY && checked != GEMVJIT_ENTRY_DAMAGED) first_ = checked;
    for (Kernel& kernel : cached_) {
      if (stopped_) break;
      report(kernel);
    }
    std::stable_sort(waiting_.begin(), waiting_.end(), [](const Kernel& a, const Kernel& b) {
      return std::pair(a.cost, static_cast<double>(a.info.n) * static_cast<double>(a.info.k)) >
             std::pair(b.cost, static_cast<double>(b.info.n) * static_cast<double>(b.info.k));
    });
    slots_.resize(std::min(waiting_.size(), static_cast<std::size_t>(std::max(options_.jobs, 1))));
    while (give_out()) wait_for_replies();
    slots_.clear();  // idle workers end
    return stopped_ ? GEMVJIT_CANCELLED : first_;
  }

 private:
  static int on_checked(void* user, const gemvjit_kernel_info* info) {
    auto& run = *static_cast<IsolatedRun*>(user);
    Kernel kernel{info->key, info->digest, info->arch, info->flags_text, info->match, info->path, *info, 0};
    run.total_ = info->total;
    if (info->outcome == GEMVJIT_OUTCOME_CACHED) {
      run.cached_.push_back(std::move(kernel));
    } else {
      if (const auto key = KernelKey::parse(kernel.key)) kernel.cost = compile_cost_ms(*key);
      run.waiting_.push_back(std::move(kernel));
    }
    return 0;
  }

  void report(Kernel& kernel, const std::string& error = "") {
    gemvjit_kernel_info& info = kernel.info;
    info.key = kernel.key.c_str();
    info.digest = kernel.digest.c_str();
    info.arch = kernel.arch.c_str();
    info.flags_text = kernel.flags_text.c_str();
    info.match = kernel.match.c_str();
    info.path = kernel.path.c_str();
    info.error = error.c_str();
    info.done = ++done_;
    info.total = total_;
    if (info.outcome == GEMVJIT_OUTCOME_FAILED && first_ == GEMVJIT_OK) {
      first_ = static_cast<gemvjit_status>(info.status);
    }
    if (options_.on_kernel != nullptr && options_.on_kernel(options_.user, &info) != 0) stopped_ = true;
  }

  void fail(Slot& slot, gemvjit_status status, const std::string& error) {
    Kernel kernel = std::move(*slot.kernel);
    slot.kernel.reset();
    kernel.info.outcome = GEMVJIT_OUTCOME_FAILED;
    kernel.info.status = status;
    kernel.info.milliseconds = (now_s() - slot.begun) * 1000;
    report(kernel, fmt::format("{}: {}", kernel.key, error));
  }

  // A kernel for every idle worker. False when all is done.
  bool give_out() {
    if (options_.cancel != nullptr && *options_.cancel != 0) stopped_ = true;
    bool busy = false;
    for (Slot& slot : slots_) {
      while (!slot.kernel && !stopped_ && !waiting_.empty()) {
        slot.kernel = std::move(waiting_.front());
        waiting_.pop_front();
        begin(slot);
      }
      busy = busy || slot.kernel;
    }
    return busy;
  }

  // The slot is without a kernel afterwards if no worker takes it.
  void begin(Slot& slot) {
    slot.begun = now_s();
    for (int attempt = 0; attempt < 2; ++attempt) {
      if (!slot.worker) {
        Result<WorkerProcess> started = WorkerProcess::start(worker_arguments(settings_));
        if (!started) return fail(slot, GEMVJIT_INTERNAL_ERROR, started.status().message());
        slot.worker.emplace(std::move(started).value());
      }
      if (slot.worker->send(slot.kernel->key)) return;
      slot.worker.reset();  // somebody ended it while it was idle
    }
    fail(slot, GEMVJIT_INTERNAL_ERROR, "no worker process takes it");
  }

  // Until something has happened, or it is time to look at the clock.
  void wait_for_replies() {
    std::vector<pollfd> fds;
    std::vector<Slot*> busy;
    double next = now_s() + 1;
    for (Slot& slot : slots_) {
      if (!slot.kernel) continue;
      fds.push_back({slot.worker->reply_fd(), POLLIN, 0});
      busy.push_back(&slot);
      next = std::min(next, slot.begun + options_.timeout_s);
    }
    const int wait_ms = std::max(0, static_cast<int>((next - now_s()) * 1000) + 1);
    if (::poll(fds.data(), fds.size(), wait_ms) < 0) return;  // a signal: the flag is looked at next
    for (std::size_t i = 0; i < fds.size(); ++i) {
      if (fds[i].revents != 0) {
        hear(*busy[i]);
      } else if (now_s() >= busy[i]->begun + options_.timeout_s) {
        end_hanging(*busy[i]);
      }
    }
  }

  void hear(Slot& slot) {
    std::vector<std::string> lines;
    const bool is_open = slot.worker->receive(lines);
    for (const std::string& line : lines) {
      WorkerReply reply;
      if (!read_reply(line, reply)) continue;  // half a line of one that ended
      if (reply.is_log) {
        if (options_.log_callback != nullptr) {
          options_.log_callback(options_.user, static_cast<gemvjit_log_level>(reply.log_level), reply.message.c_str());
        }
      } else if (slot.kernel) {
        finish(slot, reply);
      }
    }
    if (is_open) return;
    const pid_t pid = slot.worker->pid();
    const std::string end = slot.worker->wait();
    slot.worker.reset();
    if (!slot.kernel) return;
    remove_temporaries(*slot.kernel, pid);
    fail(slot, GEMVJIT_COMPILE_FAILED, fmt::format("the process that compiled it {}", end));
  }

  void finish(Slot& slot, const WorkerReply& reply) {
    Kernel kernel = std::move(*slot.kernel);
    slot.kernel.reset();
    gemvjit_kernel_info& info = kernel.info;
    info.outcome = reply.outcome;
    info.status = reply.status;
    info.milliseconds = reply.milliseconds;
    info.compile_ms = reply.compile_ms;
    info.registers = reply.registers;
    info.smem_bytes = reply.smem_bytes;
    info.spill_bytes = reply.spill_bytes;
    info.cubin_bytes = reply.cubin_bytes;
    if (!reply.path.empty()) kernel.path = reply.path;
    report(kernel, reply.error);
  }

  void end_hanging(Slot& slot) {
    const pid_t pid = slot.worker->pid();
    slot.worker->kill();
    (void)slot.worker->wait();
    slot.worker.reset();
    remove_temporaries(*slot.kernel, pid);
    fail(slot, GEMVJIT_COMPILE_FAILED,
         fmt::format("it was not done after {} seconds, and its process was killed", options_.timeout_s));
  }

  // What a worker that was ended was publishing.
  static void remove_temporaries(const Kernel& kernel, pid_t pid) {
    std::string root = kernel.path;  // <root>/v1/<target>/<fan-out>/<file>
    for (int level = 0; level < 4; ++level) root = split_path(root).folder;
    const EntryGuard guard = guard_of_cache();
    const auto folder = open_cache_folder_of(root, kernel.path, &guard);
    const auto names = folder ? folder->list() : Result<std::vector<std::string>>(folder.status());
    if (!names) return;
    const std::string prefix = fmt::format("{}{}-", temporary_file_prefix, pid);
    for (const std::string& name : *names) {
      if (name.starts_with(prefix)) (void)folder->remove(name);
    }
  }

  gemvjit_context* context_;
  const IsolationOptions& options_;
  const WorkerSettings settings_;
  std::vector<Kernel> cached_;
  std::deque<Kernel> waiting_;
  std::vector<Slot> slots_;
  std::size_t done_ = 0, total_ = 0;
  bool stopped_ = false;
  gemvjit_status first_ = GEMVJIT_OK;
};

}  // namespace

gemvjit_status warm_isolated(gemvjit_context* context, const ProblemList& list, const IsolationOptions& options) {
  const IgnoreBrokenPipes ignore;
  return IsolatedRun(context, options).run(list);
}

}  // namespace gemvjit::tools
