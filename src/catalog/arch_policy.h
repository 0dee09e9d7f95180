// Which target is built for which compute capability, by what an NVRTC has.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/catalog/arch.h"
#include "src/catalog/reasons.h"

namespace gemvjit {

struct PolicyRow {
  int sm = 0;                  // 10 * major + minor of the capability
  std::optional<Arch> target;  // what is built for it; none: nothing can be
  Reason reason = Reason::arch_not_built;
  bool is_listed = true;  // false: a chip that this version has no facts of
  std::string note;       // which NVRTC can build for it, where this one cannot; else ""
};

// A row for each capability from 8.0 on that this version or the compiler knows, ascending. `supported_sms` is the
// compiler's own list; `supports` is asked only for targets of numbers in it, the best first, and no further than to
// the first that it has.
std::vector<PolicyRow> arch_policy(std::span<const int> supported_sms,
                                   const std::function<bool(const Arch&)>& supports);

}  // namespace gemvjit
