// What doctor says of the cache's layers: the writable folder, then the read-only ones in the order they are asked.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "tools/gemvjit_cache/commands.h"

namespace gemvjit::tools {

// exists, owner, mode, free_bytes and file_system of a path, null where it is not there, and problem.
nlohmann::ordered_json path_facts(const std::string& path);

// An array; every element has path, kind (writable, folder, bundle or none), named_by, exists, owner, mode, free_bytes,
// file_system, entries (of a bundle), problem and warning (of a writable folder that will not last), null where there
// is nothing to say.
nlohmann::ordered_json examine_layers(const CacheArguments& arguments);
void print_layers(const nlohmann::ordered_json& layers);

}  // namespace gemvjit::tools
