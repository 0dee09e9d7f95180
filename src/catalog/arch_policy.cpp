#include "src/catalog/arch_policy.h"

#include <algorithm>
#include <set>

namespace gemvjit {
namespace {

Reason reason_for(const Arch& target, bool is_listed) {
  if (!is_listed) return Reason::arch_unknown_chip;
  if (target.suffix == 'a') return Reason::arch_specific;
  return target.suffix == 'f' ? Reason::arch_family : Reason::arch_plain;
}

}  // namespace

std::vector<PolicyRow> arch_policy(std::span<const int> supported_sms,
                                   const std::function<bool(const Arch&)>& supports) {
  std::set<int> sms;
  for (const int sm : known_sms()) sms.insert(sm);
  for (const int sm : supported_sms) {
    if (arch_facts({sm, 0})) sms.insert(sm);
  }
  std::vector<PolicyRow> rows;
  for (const int sm : sms) {
    PolicyRow row;
    row.sm = sm;
    row.is_listed = arch_facts({sm, 0})->is_listed;
    const std::vector<Arch> candidates = possible_targets(sm / 10, sm % 10);
    if (std::ranges::find(supported_sms, sm) != supported_sms.end()) {
      const auto found = std::ranges::find_if(candidates, supports);
      if (found != candidates.end()) row.target = *found;
    }
    if (row.target) {
      row.reason = reason_for(*row.target, row.is_listed);
    } else {
      row.note = nvrtc_that_builds(candidates.front());
    }
    rows.push_back(row);
  }
  return rows;
}

}  // namespace gemvjit
