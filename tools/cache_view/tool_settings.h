// The settings of the tool's process: configuration files and environment, read once. Threads: any.
#pragma once

#include "src/runtime/settings.h"

namespace gemvjit::tools {

const Result<Settings>& tool_settings();
// Their reader, or the environment alone where the files are refused: for who has said so, or looks on.
const EnvironmentReader& tool_environment();

}  // namespace gemvjit::tools
