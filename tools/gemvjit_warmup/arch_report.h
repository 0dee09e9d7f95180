// What --arch was taken to mean, for people and as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tools/gemvjit_warmup/warmup_options.h"

namespace gemvjit::tools {

// A line for each name that is not its target's own spelling, "hopper: sm_90a", and the notes.
std::vector<std::string> arch_notes(const WarmupOptions& options);

// [{"name", "targets": [text...], "note"}...]
nlohmann::ordered_json archs_json(const WarmupOptions& options);

}  // namespace gemvjit::tools
