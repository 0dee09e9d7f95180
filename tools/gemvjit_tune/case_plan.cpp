#include "tools/gemvjit_tune/case_plan.h"

#include <algorithm>

namespace gemvjit::tools {
namespace {

constexpr std::size_t kNearShapes = 4, kOfEachShape = 3;

}  // namespace

std::vector<Configuration> make_seeds(const TuneCase& c, const Machine& machine, bool quick, std::size_t max_candidates,
                                      const SampleBook& book, const std::vector<Known>& table) {
  const std::size_t room = quick ? max_candidates : std::max<std::size_t>(max_candidates * 3 / 5, 1);
  const std::size_t for_known = quick ? (max_candidates > 2 ? max_candidates - 2 : 1) : max_candidates / 5;
  std::vector<Configuration> seeds;
  const auto add = [&](const Configuration& one, std::size_t limit) {
    if (seeds.size() < limit && std::find(seeds.begin(), seeds.end(), one) == seeds.end()) seeds.push_back(one);
  };
  for (Configuration one : book.nearest(c, kNearShapes, kOfEachShape, table)) {
    one.pdl = true;  // the final tries without
    if (is_valid(c, machine, one)) add(one, for_known);
  }
  // Asked for all, since some of the model's first may be there already.
  for (const Configuration& one : pick_diverse(c, machine, enumerate_candidates(c, machine), room + seeds.size())) {
    add(one, room);
  }
  return seeds;
}

CasePlan plan_case(const TuneCase& c, const Machine& machine, bool quick, std::size_t max_candidates,
                   const SampleBook& book, const TableFile& table, const HostBlocks& blocks) {
  const auto present = table.present(c);
  CasePlan plan{CaseSearch(
                    make_seeds(c, machine, quick, max_candidates, book, table.known()), present ? &*present : nullptr,
                    [c, machine](const Configuration& one) { return is_valid(c, machine, one); },
                    quick ? quick_limits(max_candidates) : thorough_limits(max_candidates)),
                {}};
  for (const std::int64_t m : c.tokens()) plan.references.push_back(make_reference(blocks, c.problem(), m));
  return plan;
}

}  // namespace gemvjit::tools
