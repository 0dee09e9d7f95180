#include "src/tuning/selection.h"

#include <fmt/format.h>

namespace gemvjit {
namespace {

std::optional<Reason> reason_without_pdl(const Arch& arch, const Problem& problem, const Choice& choice) {
  if (!problem.pdl) return Reason::pdl_not_wanted;
  const Result<ArchFacts> facts = arch_facts(arch);
  if (facts && !facts->has_pdl) return Reason::pdl_not_on_target;
  if (!choice.pdl_wins) return Reason::pdl_slower;
  return std::nullopt;
}

NtSelection look_at(const TuningTables& tables, const Arch& arch, const Problem& problem, int nt, bool allow_untuned) {
  NtSelection one;
  one.nt = nt;
  const Result<Choice> choice = tables.lookup(arch, problem, nt, allow_untuned, &one.rejected);
  if (!choice) {
    one.detail = choice.status().message();
    return one;
  }
  const Result<KernelKey> key = make_key(problem, nt, choice->tile, choice->pdl_wins, arch);
  if (!key) {
    one.detail = key.status().message();
    return one;
  }
  one.choice = *choice;
  one.key = *key;
  one.reason = reason_of(choice->match);
  one.without_pdl = reason_without_pdl(arch, problem, *choice);
  return one;
}

// Why the kernel of an nt is not the one for M.
void judge(NtSelection& one, std::int64_t m, int smallest, int chosen) {
  if (smallest == 0) {
    one.not_chosen = Reason::m_out_of_range;
  } else if (one.nt < smallest) {
    one.not_chosen = Reason::nt_too_small;
    one.detail = fmt::format("serves M up to {}, M is {}", one.nt * kTokensPerTile, m);
  } else if (one.choice && one.choice->match == Match::exact && !one.choice->tuned()) {
    const Choice& choice = *one.choice;
    one.not_chosen = Reason::alternative_faster;
    one.detail =
        fmt::format("{:.2f} us, {} {:.2f} us", choice.time_us,
                    choice.alternative.empty() ? "the best other way" : choice.alternative, choice.alternative_us);
  } else if (one.key && chosen != 0 && one.nt > chosen) {
    one.not_chosen = Reason::nt_larger_than_needed;
  }
}

}  // namespace

Reason reason_of(Match match) {
  switch (match) {
    case Match::exact:
      return Reason::exact;
    case Match::predicted:
      return Reason::predicted;
    case Match::nearest_shape:
      return Reason::nearest_shape;
    case Match::family_default:
      break;
  }
  return Reason::family_default;
}

Selection select_kernel(const TuningTables& tables, const Arch& arch, const Problem& problem, std::int64_t m,
                        bool allow_untuned) {
  Selection selection;
  if (const Status served = check_problem(problem); !served) {
    selection.reason = Reason::shape_not_served;
    selection.detail = served.message();
    return selection;
  }
  const bool has_tokens = family_row(problem.family).has_tokens;
  const int smallest = has_tokens ? nt_for_m(m) : 0;
  selection.nt = has_tokens ? tables.pick_nt(arch, problem, m, allow_untuned) : 0;
  if (has_tokens && smallest == 0) selection.reason = Reason::m_out_of_range;
  for (const int nt : nt_values(problem.family)) {
    NtSelection one = look_at(tables, arch, problem, nt, allow_untuned);
    if (has_tokens) judge(one, m, smallest, selection.nt);
    one.is_chosen = one.key.has_value() && (!has_tokens || (selection.nt != 0 && nt == selection.nt));
    if (one.is_chosen) {
      selection.is_served = true;
      selection.reason = one.reason;
    }
    selection.kernels.push_back(std::move(one));
  }
  return selection;
}

}  // namespace gemvjit
