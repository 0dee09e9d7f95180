#include "src/runtime/inspect.h"

#include <fmt/format.h>

#include "src/catalog/arch.h"

namespace gemvjit {
namespace {

// The target that questions about one problem are answered for.
Result<Arch> target_of(const Context& context, const ProblemRequest& request) {
  if (!request.arch && context.device() != nullptr) return context.device_target();
  GEMVJIT_TRY_ASSIGN(const std::vector<Arch> targets, targets_of(context, request));
  return targets.front();
}

Status check_request(const ProblemRequest& request) {
  GEMVJIT_TRY(request.malformed);
  return check_problem(request.problem);
}

KernelReport check_item(const Context& context, const WorkItem& item) {
  Status damaged, unreadable;
  for (const KernelKey& key : item.candidates) {
    const Result<Recipe> recipe = specialize(key);
    if (!recipe) continue;
    const Result<FoundEntry> found = context.store().look(recipe->id());
    if (found) {
      KernelReport report = describe_item(context, item, recipe->id());
      report.path = found->path;
      describe_entry(report, found->entry);
      report.outcome = Outcome::cached;
      return report;
    }
    if (damaged && found.status().code() == StatusCode::entry_damaged) damaged = found.status();
    if (unreadable && found.status().code() == StatusCode::io_error) unreadable = found.status();
  }
  KernelReport report = describe_item(context, item);
  report.outcome = damaged ? Outcome::missing : Outcome::failed;
  if (!damaged) {
    report.status = damaged;
  } else if (!unreadable) {
    // Nobody knows what it holds; a context would build the kernel again.
    report.status = Status(StatusCode::io_error, "unreadable: " + unreadable.message());
  } else {
    report.status =
        Status(StatusCode::not_ready, fmt::format("{} is not in the cache: run a warmup", item.key().text()));
  }
  return report;
}

// Plans, then makes a report for each kernel; the first failure of a problem in `failure`.
template <typename MakeReport>
Status for_each_kernel(const Context& context, std::span<const ProblemRequest> requests,
                       const KernelCallback& on_kernel, const MakeReport& make_report) {
  const WorkPlan work = plan_work(context, requests);
  std::size_t done = 0;
  for (const WorkItem& item : work.items) {
    KernelReport report = make_report(item);
    report.done = ++done;
    report.total = work.items.size();
    if (on_kernel && !on_kernel(report)) return {StatusCode::cancelled, "cancelled by the caller"};
  }
  for (const Status& status : work.problem_status) GEMVJIT_TRY(status);
  return Status::ok();
}

// Where the configuration comes from, and what was measured.
std::string explain_choice(const Choice& choice) {
  std::string text(match_name(choice.match));
  if (const auto& neighbour = choice.neighbour) {
    text += fmt::format(" N={} K={}{}, distance {:.2f}, measured there {:.2f} us", neighbour->n, neighbour->k,
                        neighbour->silu_mul ? " silu_mul" : "", neighbour->distance, neighbour->time_us);
  }
  text += fmt::format(" ({})", choice.provenance);
  if (choice.time_us > 0) text += fmt::format(", measured {:.2f} us", choice.time_us);
  if (choice.spread_us > 0) text += fmt::format(" +- {:.2f}", choice.spread_us);
  if (choice.alternative_us > 0) {
    text += fmt::format(", the best other way {}{:.2f} us",
                        choice.alternative.empty() ? "" : "(" + choice.alternative + ") ", choice.alternative_us);
  }
  return text;
}

std::string explain_nt(const Context& context, const ProblemRequest& request, int nt, const Arch& arch) {
  const std::string head = !family_row(request.problem.family).has_tokens ? "  kernel: " : fmt::format("  nt={}: ", nt);
  const Result<Choice> choice = context.tables().lookup(arch, request.problem, nt, request.allow_untuned);
  if (!choice) return head + choice.status().message() + "\n";
  const Result<KernelKey> key = make_key(request.problem, nt, choice->tile, choice->pdl_wins, arch);
  if (!key) return head + "rejected: " + key.status().message() + "\n";
  const std::string text = fmt::format("{}{}\n    {}\n    configuration: {}", head, key->text(), flags_text(key->flags),
                                       explain_choice(*choice));
  const Result<ArchFacts> facts = arch_facts(arch);
  const char* pdl = !request.problem.pdl       ? "off: not allowed by the problem"
                    : facts && !facts->has_pdl ? "off: the target has none, or is not known"
                    : !choice->pdl_wins        ? "off: the table says that it loses here"
                                               : "on";
  const bool loaded = context.registry().find_key(*key) != nullptr;
  return text + fmt::format("\n    pdl {}; {}\n", pdl, loaded ? "loaded" : "not loaded");
}

}  // namespace

Status supported(const Context& context, const ProblemRequest& request) {
  GEMVJIT_TRY(check_request(request));
  ProblemRequest any = request;
  any.allow_untuned = true;
  for (const int nt : nt_values(request.problem.family)) {
    if (request.nt != 0 && nt != request.nt) continue;
    const Result<WorkItem> item = plan_kernel(context, any, nt);
    if (!item) return item.status();
  }
  return plan_work(context, {&any, 1}).problem_status.front();  // says what is wrong with a misnamed nt
}

Result<int> pick_nt(const Context& context, const ProblemRequest& request, std::int64_t m) {
  GEMVJIT_TRY(check_request(request));
  GEMVJIT_TRY_ASSIGN(const Arch arch, target_of(context, request));
  return context.tables().pick_nt(arch, request.problem, m, request.allow_untuned);
}

Result<bool> is_tuned(const Context& context, const ProblemRequest& request) {
  GEMVJIT_TRY(check_request(request));
  GEMVJIT_TRY_ASSIGN(const Arch arch, target_of(context, request));
  return context.tables().tuned(arch, request.problem);
}

Result<std::string> explain(const Context& context, const ProblemRequest& request, std::int64_t m) {
  GEMVJIT_TRY(check_request(request));
  GEMVJIT_TRY_ASSIGN(const Arch arch, target_of(context, request));
  const FamilyRow& row = family_row(request.problem.family);
  std::string text = fmt::format("{} N={} K={}{} M={} on {}\n", row.name, request.problem.n, request.problem.k,
                                 request.problem.silu_mul ? " silu_mul" : "", m, arch.text());
  if (row.has_tokens) {
    const int nt = context.tables().pick_nt(arch, request.problem, m, request.allow_untuned);
    if (nt != 0) {
      text += fmt::format("choice: nt={}\n", nt);
    } else if (nt_for_m(m) == 0) {
      text += fmt::format("choice: none, M must be 1 to 32\n");
    } else {
      text += fmt::format("choice: none, no {}configuration covers this M and is the fastest: take another path\n",
                          request.allow_untuned ? "" : "measured ");
    }
  }
  for (const int nt : nt_values(request.problem.family)) text += explain_nt(context, request, nt, arch);
  return text;
}

Status plan(const Context& context, std::span<const ProblemRequest> requests, const KernelCallback& on_kernel) {
  return for_each_kernel(context, requests, on_kernel,
                         [&](const WorkItem& item) { return describe_item(context, item); });
}

Status check(const Context& context, std::span<const ProblemRequest> requests, const KernelCallback& on_kernel) {
  Status damaged;
  Status missing;
  GEMVJIT_TRY(for_each_kernel(context, requests, on_kernel, [&](const WorkItem& item) {
    KernelReport report = check_item(context, item);
    Status& first = report.outcome == Outcome::failed ? damaged : missing;
    if (first && !report.status) first = report.status;
    return report;
  }));
  if (!damaged) return damaged;
  if (!missing) return {StatusCode::not_ready, missing.message()};
  return missing;
}

}  // namespace gemvjit
