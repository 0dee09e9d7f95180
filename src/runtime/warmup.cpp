#include "src/runtime/warmup.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <new>
#include <numeric>
#include <system_error>
#include <thread>
#include <utility>

#include "src/base/process_end.h"
#include "src/catalog/compile_cost.h"
#include "src/runtime/capturing.h"
#include "src/runtime/remote_warmup.h"

namespace gemvjit {
namespace {

bool is_cancelled(const WarmupOptions& options) {
  if (process_is_ending()) return true;
  return options.cancel != nullptr && __atomic_load_n(options.cancel, __ATOMIC_RELAXED) != 0;
}

// One warmup while it runs; shared by its threads.
class WarmupRun {
 public:
  WarmupRun(Context& context, const WorkPlan& plan, const WarmupOptions& options)
      : context_(context), plan_(plan), options_(options), item_status_(plan.items.size()) {
    order_.resize(plan.items.size());
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    // The dearest first, of equals the largest weight.
    std::vector<std::pair<double, double>> rank;
    for (const WorkItem& item : plan.items) {
      const KernelKey& key = item.key();
      rank.emplace_back(compile_cost_ms(key), static_cast<double>(key.n) * static_cast<double>(key.k));
    }
    std::stable_sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) { return rank[a] > rank[b]; });
    for (Status& status : item_status_) status = {StatusCode::cancelled, "the warmup was cancelled before this kernel"};
    if (context.device() != nullptr && options.load) note_caller_context(*context.device());
  }

  void run() {
    const std::size_t wanted = std::min<std::size_t>(order_.size(), context_.options().compile_threads);
    std::vector<std::jthread> threads;  // joined whatever happens below
    try {
      threads.reserve(wanted);
      while (threads.size() + 1 < wanted) threads.emplace_back([this] { work(); });
    } catch (const std::system_error& error) {
      context_.log().warning("warmup goes on with {} threads: {}", threads.size() + 1, error.what());
    } catch (const std::bad_alloc&) {
      context_.log().warning("warmup goes on with {} threads: out of host memory", threads.size() + 1);
    }
    work();
  }

  bool cancelled() const { return cancelled_.load(); }
  bool callback_threw() const { return callback_threw_.load(); }
  const std::vector<Status>& item_status() const { return item_status_; }

 private:
  // The context of the caller, if it is another one of the same device: kernels are resolved in it as well.
  void note_caller_context(const Device& device) {
    const CUcontext current = device.current_context();
    CUdevice of_current = 0;
    if (current == nullptr || current == device.primary) return;
    if (device.driver->cuCtxGetDevice(&of_current) == CUDA_SUCCESS && of_current == device.device) {
      caller_context_ = current;
    }
  }

  // A thread: takes kernels until there are none, or someone cancels.
  void work() noexcept {
    for (;;) {
      if (is_cancelled(options_)) cancelled_.store(true);
      if (cancelled_.load()) return;
      const std::size_t next = next_.fetch_add(1);
      if (next >= order_.size()) return;
      const std::size_t index = order_[next];
      try {
        report(index, make_ready(plan_.items[index]));
      } catch (const std::bad_alloc&) {
        note_failure(index, StatusCode::out_of_memory, "out of host memory");
      } catch (const std::exception& error) {
        note_failure(index, StatusCode::internal_error, error.what());
      } catch (...) {
        note_failure(index, StatusCode::internal_error, "an exception of no known type");
      }
    }
  }

  // Without the text where there is no memory for it.
  void note_failure(std::size_t index, StatusCode code, const char* text) noexcept {
    try {
      item_status_[index] = {code, text};
    } catch (...) {
      item_status_[index] = {code, {}};
    }
  }

  KernelReport make_ready(const WorkItem& item) {
    const auto begin = std::chrono::steady_clock::now();
    KernelReport report = item.native && options_.load ? load(item) : fill_cache(item);
    report.milliseconds = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
    if (report.outcome != Outcome::failed && is_tuned_family(item) && !report.is_fallback) {
      auto& counter = context_.counters().kernels_by_match[static_cast<std::size_t>(report.match)];
      counter.fetch_add(1, std::memory_order_relaxed);
    }
    return report;
  }

  static bool is_tuned_family(const WorkItem& item) {
    return item.key().nt != 0 && !item.is_named && !item.is_fallback;
  }

  KernelReport failed(const WorkItem& item, const Status& status) const {
    KernelReport report = describe_item(context_, item);
    report.outcome = Outcome::failed;
    report.status = status;
    return report;
  }

  // Into the cache and no further.
  KernelReport fill_cache(const WorkItem& item) {
    const Result<Delivered> delivered = context_.resolver().ensure_cached(item.candidates);
    if (!delivered) return failed(item, delivered.status());
    KernelReport report = describe_item(context_, item, delivered->entry->id);
    describe_entry(report, *delivered->entry);
    report.outcome = delivered->compiled ? Outcome::compiled : Outcome::cached;
    check_kept(report, delivered->kept);
    return report;
  }

  // Into the cache and onto the device.
  KernelReport load(const WorkItem& item) {
    Result<Ready> ready = context_.resolver().resolve(item.candidates, caller_context_, *options_.load);
    if (!ready) return failed(item, ready.status());
    if (options_.require_cache && ready->was_loaded) {  // loaded, perhaps without having been kept
      const Result<Delivered> delivered = context_.resolver().ensure_cached({&ready->kernel->spec.key, 1});
      if (!delivered) return failed(item, delivered.status());
      ready->compiled = delivered->compiled;
      ready->kept = delivered->kept;
    }
    const LoadedKernel& kernel = *ready->kernel;
    KernelReport report = describe_item(context_, item, {kernel.spec.key, kernel.digest});
    report.compile_ms = kernel.compile_ms;
    report.resources = kernel.resources;
    report.cubin_bytes = kernel.cubin_bytes;
    report.outcome = ready->compiled ? Outcome::compiled : Outcome::cached;
    check_kept(report, ready->kept);
    return report;
  }

  void check_kept(KernelReport& report, const Status& kept) const {
    if (!options_.require_cache) return;
    if (!kept) {
      report.status = {StatusCode::cache_not_writable,
                       fmt::format("{} was built but could not be kept: {}", report.key.text(), kept.message())};
    } else if (context_.store().root().empty()) {
      report.status = {StatusCode::cache_not_writable,
                       fmt::format("{} was built but there is no cache directory to keep it in: set "
                                   "GEMVJIT_CACHE_DIR, or name one",
                                   report.key.text())};
    }
    if (!report.status) report.outcome = Outcome::failed;
  }

  void report(std::size_t index, KernelReport report) {
    item_status_[index] = report.status;
    const std::lock_guard lock(report_mutex_);
    report.done = ++done_;
    report.total = order_.size();
    if (!options_.on_kernel || callback_threw_.load() || process_is_ending()) return;
    try {
      if (!options_.on_kernel(report)) cancelled_.store(true);
    } catch (...) {  // it must not end the thread that it happens to run in, nor be called again
      callback_threw_.store(true);
      cancelled_.store(true);
    }
  }

  Context& context_;
  const WorkPlan& plan_;
  const WarmupOptions& options_;
  std::vector<std::size_t> order_;
  std::vector<Status> item_status_;  // each written by the one thread that took the item
  CUcontext caller_context_ = nullptr;
  std::atomic<std::size_t> next_{0};
  std::atomic<bool> cancelled_{false};
  std::atomic<bool> callback_threw_{false};
  std::mutex report_mutex_;
  std::size_t done_ = 0;
};

}  // namespace

WarmupResult warm_up(Context& context, std::span<const ProblemRequest> requests, const WarmupOptions& options) {
  if (context.device() != nullptr && options.load && some_stream_captures(*context.device())) {
    const Status captures(StatusCode::not_ready,
                          "a stream captures a graph, and kernels are not loaded meanwhile: end the capture first, or "
                          "warm up before it");
    return WarmupResult::same_for_all(captures, requests.size());
  }
  const WorkPlan plan = plan_work(context, requests);
  for (const Status& status : plan.problem_status) {
    if (!status) context.counters().unserved_problems.fetch_add(1, std::memory_order_relaxed);
  }
  RemoteWarmup remote(context, plan, [&options] { return is_cancelled(options); });
  WarmupRun run(context, plan, options);
  run.run();
  remote.publish();

  WarmupResult result;
  result.problems = plan.problem_status;
  for (std::size_t i = 0; i < plan.items.size(); ++i) {
    const Status& status = run.item_status()[i];
    if (status) continue;
    for (const std::size_t problem : plan.items[i].problems) result.note_failure(problem, status);
  }
  if (run.callback_threw()) {
    result.overall = {StatusCode::internal_error,
                      "the warmup was cancelled: its callback threw an exception; kernels that were finished are kept"};
    return result;
  }
  if (run.cancelled()) {
    result.overall = {StatusCode::cancelled, "the warmup was cancelled; kernels that were finished are kept"};
    return result;
  }
  result.conclude();
  return result;
}

}  // namespace gemvjit
