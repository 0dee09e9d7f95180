// What doctor says of the locks with which processes share builds.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "tools/gemvjit_cache/commands.h"

namespace gemvjit::tools {

// path (null: there are no locks), named_by ("XDG_RUNTIME_DIR", or what named the cache that they lie in), the facts of
// the path (doctor_layers.h), passed_over (why not XDG_RUNTIME_DIR, where that is set), and problem.
nlohmann::ordered_json examine_locks(const CacheArguments& arguments);

}  // namespace gemvjit::tools
