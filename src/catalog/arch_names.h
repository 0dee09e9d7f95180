// Targets as people write them. Keys, tables and the C API take the one spelling of Arch::text(); tools take these.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cache/kernel_key.h"
#include "src/base/status.h"

namespace gemvjit {

struct NamedTargets {
  std::vector<Arch> targets;  // empty: "native", the GPU here
  std::string note;           // for people; "" if there is nothing to say
};

// Any usual spelling, in upper or lower case: a number ("90", "9.0"), with or without "sm_", "sm" or "compute_" before
// it and the suffix a or f behind it, is just that target, and one without a suffix is the plain one (a note says so
// where a device would look for another first, or where no NVRTC builds for a target); the name of a generation is the
// targets that its devices look for first; "native". invalid_argument with the nearest name and all of them for
// anything else. Whether a target exists is for arch_facts() and the compiler to say.
Result<NamedTargets> parse_targets(std::string_view text);

}  // namespace gemvjit
