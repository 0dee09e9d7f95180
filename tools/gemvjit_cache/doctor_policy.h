// The doctor's table of targets: which is built for which compute capability here, and why.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "src/cuda/nvrtc_api.h"

namespace gemvjit::tools {

// [{"capability", "target", "reason", "note"}...]; the target is null where this NVRTC builds none.
nlohmann::ordered_json examine_policy(const cuda::NvrtcApi& nvrtc);
void print_policy(const nlohmann::ordered_json& policy);

}  // namespace gemvjit::tools
