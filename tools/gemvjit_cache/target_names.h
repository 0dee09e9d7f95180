// --arch of gemvjit-cache's commands: the spellings of gemvjit-warmup, and the GPU here for "native".
#pragma once

#include <string>
#include <vector>

#include "cache/kernel_key.h"
#include "tools/common/exit_codes.h"

namespace gemvjit::tools {

// The targets that `name` stands for; a note on them is said on stderr. exit_usage for a name of no target,
// exit_environment where "native" finds no GPU; the reason is told.
ExitCode read_targets(const std::string& name, std::vector<Arch>& targets);

}  // namespace gemvjit::tools
