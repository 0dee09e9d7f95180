#include "tools/gemvjit_tune/runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "tools/common/exit_codes.h"
#include "tools/gemvjit_tune/case_plan.h"

namespace gemvjit::tools {
namespace {

// Cases of a device that are under way: their compiles hide behind each other's measurements.
constexpr std::size_t kOpenThorough = 4, kOpenQuick = 12;
constexpr int kFinalParts = 3;  // finalists take turns, so that a drifting clock favours none

// What the device threads write.
struct Shared {
  std::atomic<std::size_t> next_case{0};
  std::atomic<bool> stop{false}, out_of_time{false};
  std::atomic<std::size_t> done{0};
  std::mutex mutex;
  std::map<std::size_t, CaseResult> results;  // by the case's place in the list
  std::vector<std::string> device_failures;
  bool said_no_alternative = false;
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
};

struct OpenCase {
  std::size_t index = 0;
  TuneCase tune_case;
  std::future<CasePlan> planning;
  std::optional<CaseSearch> search;
  std::vector<SampledReference> references;
  std::vector<std::future<Prepared>> round;
  std::size_t counted = 0;  // candidates that progress has counted for this case
};

class DeviceRun {
 public:
  DeviceRun(const RunContext& context, Shared& shared, int ordinal)
      : context_(context), shared_(shared), ordinal_(ordinal) {}

  void run() {
    const Status status = run_all();
    if (status) return;
    const std::lock_guard lock(shared_.mutex);
    shared_.device_failures.push_back(fmt::format("device {}: {}", ordinal_, status.message()));
  }

 private:
  Status run_all() {
    GEMVJIT_TRY_ASSIGN(bench_, DeviceBench::open(ordinal_, context_.blocks, context_.settings.kernel_seconds));
    if (bench_->gpu().sm() != context_.settings.arch.sm) {
      return {StatusCode::unsupported, fmt::format("{} is no {}: run again for it, with a table of its own",
                                                   bench_->gpu().device_name(), context_.settings.arch.text())};
    }
    open_alternative();
    provenance_ = bench_->provenance();
    provenance_.compiler = context_.source.compiler_version();
    provenance_.date = context_.settings.date;
    provenance_.commit = context_.settings.commit;
    provenance_.tool = context_.settings.tool;
    provenance_.replays = context_.settings.replays;
    std::deque<OpenCase> open;
    for (;;) {
      while (open.size() < (context_.settings.quick ? kOpenQuick : kOpenThorough) && !should_stop()) {
        auto next = open_next();
        if (!next) break;
        open.push_back(std::move(*next));
      }
      if (open.empty() || should_stop()) return Status::ok();
      OpenCase current = std::move(open.front());
      open.pop_front();
      GEMVJIT_TRY_ASSIGN(const bool goes_on, advance(current));
      if (goes_on) open.push_back(std::move(current));
    }
  }

  void open_alternative() {
    if (!context_.settings.alternative) return;
    const Status opened = bench_->open_alternative(context_.settings.cublaslt);
    if (opened) return;
    const std::lock_guard lock(shared_.mutex);
    if (std::exchange(shared_.said_no_alternative, true)) return;
    context_.progress.message("gemvjit-tune: cuBLASLt is not timed: " + opened.message());
  }

  bool should_stop() {
    const double limit = context_.settings.budget_seconds;
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - shared_.start;
    if (limit > 0 && spent.count() >= limit) shared_.out_of_time = shared_.stop = true;
    if (context_.interrupted()) shared_.stop = true;
    return shared_.stop;
  }

  std::optional<OpenCase> open_next() {
    const std::size_t index = shared_.next_case.fetch_add(1);
    if (index >= context_.cases.size()) return std::nullopt;
    OpenCase made;
    made.index = index;
    made.tune_case = context_.cases[index];
    const Machine machine{context_.settings.arch, bench_->sm_count()};
    made.planning = context_.pool.submit([context = context_, c = made.tune_case, machine] {
      return plan_case(c, machine, context.settings.quick, context.settings.max_candidates, context.book, context.table,
                       context.blocks);
    });
    return made;
  }

  // One step of a case: its plan, or one round. False: the case is finished (or the run is to stop).
  Result<bool> advance(OpenCase& open) {
    if (!open.search) {
      CasePlan plan = open.planning.get();
      open.search.emplace(std::move(plan.search));
      open.references = std::move(plan.references);
      return begin_round(open);
    }
    if (const Status begun = bench_->begin_case(open.tune_case); !begun) {
      if (!bench_->alive()) return begun;
      finish(open, begun.message());  // such as a weight that does not fit into the device's memory
      return false;
    }
    const bool final = open.search->in_final();
    GEMVJIT_TRY(final ? final_round(open) : first_round(open));
    if (!final && should_stop()) return false;
    return begin_round(open);
  }

  bool begin_round(OpenCase& open) {
    open.round.clear();
    const std::vector<Configuration> round = open.search->next_round();
    if (round.empty()) {
      finish(open, "");
      return false;
    }
    const bool final = open.search->in_final();
    for (const Configuration& one : round) {
      open.round.push_back(
          context_.pool.submit([context = context_, c = open.tune_case, one, final, gpu = provenance_.gpu] {
            return context.source.prepare(c, one, context.settings.arch, gpu, final);
          }));
    }
    return true;
  }

  // Many candidates, few replays.
  Status first_round(OpenCase& open) {
    const int replays = std::max(3, context_.settings.replays / 3);
    for (auto& future : open.round) {
      if (should_stop()) return Status::ok();
      Prepared one = future.get();
      if (!one.measured) {
        if (one.cubin) {
          auto ready = make_ready(one, open);
          if (ready) note(one, sample_first(*ready, replays, one.sample, *open.search));
        }
        GEMVJIT_TRY(keep(one));
      }
      open.search->report(one.sample.outcome());
      count(open);
    }
    return Status::ok();
  }

  // One replay, and the others unless it is hopeless.
  Status sample_first(const ReadyKernel& kernel, int replays, CandidateSample& sample, const CaseSearch& search) {
    GEMVJIT_TRY(bench_->sample(kernel, 1, sample.samples_us));
    if (search.is_hopeless(sample.outcome())) return Status::ok();
    return bench_->sample(kernel, replays - 1, sample.samples_us);
  }

  // Few candidates by turns, many replays.
  Status final_round(OpenCase& open) {
    std::vector<Prepared> all;
    std::vector<std::unique_ptr<ReadyKernel>> kernels;
    for (auto& future : open.round) {
      Prepared& one = all.emplace_back(future.get());
      kernels.push_back(one.measured || !one.cubin ? nullptr : make_ready(one, open));
      if (!one.sample.failure.empty() && !one.measured) GEMVJIT_TRY(keep(one));
    }
    const int replays = std::max(1, (context_.settings.replays + kFinalParts - 1) / kFinalParts);
    for (int part = 0; part < kFinalParts; ++part) {
      for (std::size_t i = 0; i < all.size(); ++i) {
        if (kernels[i]) note(all[i], bench_->sample(*kernels[i], replays, all[i].sample.samples_us));
      }
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (kernels[i]) GEMVJIT_TRY(keep(all[i]));
      open.search->report(all[i].sample.outcome());
    }
    return Status::ok();
  }

  // Null, with the reason in the sample, for a kernel that does not work.
  std::unique_ptr<ReadyKernel> make_ready(Prepared& one, OpenCase& open) {
    auto ready = bench_->make_ready(one, open.references);
    if (ready) return std::move(*ready);
    note(one, ready.status());
    return nullptr;
  }

  static void note(Prepared& one, const Status& status) {
    if (status) return;
    one.sample.failure = status.message();
    one.sample.samples_us.clear();
  }

  // Into the book, where also a kernel that killed the device is found by the next run, which then leaves it alone.
  Status keep(const Prepared& one) {
    GEMVJIT_TRY(context_.book.add(one.sample));
    if (one.sample.failure.empty() || bench_->alive()) return Status::ok();
    if (bench_->hangs()) leave(one);
    return {StatusCode::cuda_error,
            fmt::format("{} {}: {}; the device is of no use to this process any more. Run again to go on without it",
                        one.sample.tune_case.text(), one.sample.configuration.text(), one.sample.failure)};
  }

  // Nothing of this process can be ended in order, since all of it would wait for the device. What was measured is in
  // the file of samples, from which the next run makes the table.
  [[noreturn]] void leave(const Prepared& one) {
    context_.progress.message(
        fmt::format("gemvjit-tune: {} {} on device {} {}; this process can only be left. Run again "
                    "with the same --samples to go on without that configuration",
                    one.sample.tune_case.text(), one.sample.configuration.text(), ordinal_, one.sample.failure));
    std::_Exit(exit_some_failed);
  }

  void finish(OpenCase& open, const std::string& problem) {
    CaseResult result;
    result.tune_case = open.tune_case;
    result.problem = problem;
    result.provenance = provenance_;
    if (problem.empty()) {
      result.choice = open.search->choose();
      add_alternative(result);
    }
    const std::size_t rest =
        context_.settings.max_candidates - std::min(open.counted, context_.settings.max_candidates);
    shared_.done += rest;
    update_progress();
    const std::lock_guard lock(shared_.mutex);
    shared_.results.emplace(open.index, std::move(result));
  }

  // The faster of cuBLASLt and the baseline.
  void add_alternative(CaseResult& result) {
    if (bench_->alternative() != nullptr) {
      AlternativeSample sample;
      sample.tune_case = result.tune_case;
      sample.gpu = provenance_.gpu;
      sample.compiler = bench_->alternative()->cublaslt().version();
      if (const auto known = context_.book.find(sample)) {
        sample = *known;
      } else {
        sample = bench_->time_alternative(result.tune_case, std::max(5, context_.settings.replays / 2));
        (void)context_.book.add(sample);  // a file that cannot be written was said with the candidates
      }
      if (sample.failure.empty()) result.alternative_us = sample.us, result.alternative = "cublasLt bf16";
    }
    const auto other = context_.baseline.fastest(result.tune_case);
    if (other && (result.alternative_us <= 0 || other->us < result.alternative_us)) {
      result.alternative_us = other->us, result.alternative = other->name;
    }
  }

  void count(OpenCase& open) {
    if (open.counted >= context_.settings.max_candidates) return;
    ++open.counted;
    ++shared_.done;
    update_progress();
  }
  void update_progress() {
    context_.progress.update(shared_.done, context_.cases.size() * context_.settings.max_candidates);
  }

  const RunContext& context_;
  Shared& shared_;
  const int ordinal_;
  std::unique_ptr<DeviceBench> bench_;
  Provenance provenance_;
};

}  // namespace

RunReport run_cases(const RunContext& context) {
  Shared shared;
  std::vector<std::thread> threads;
  for (const int ordinal : context.settings.devices) {
    threads.emplace_back([&context, &shared, ordinal] { DeviceRun(context, shared, ordinal).run(); });
  }
  for (std::thread& thread : threads) thread.join();
  RunReport report;
  for (auto& [index, result] : shared.results) report.results.push_back(std::move(result));
  report.unfinished = context.cases.size() - report.results.size();
  report.out_of_time = shared.out_of_time;
  report.device_failures = std::move(shared.device_failures);
  return report;
}

}  // namespace gemvjit::tools
