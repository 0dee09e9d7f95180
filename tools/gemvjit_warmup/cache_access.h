// Whether a cache folder can be written, asked before minutes of compiling.
#pragma once

#include <string>

#include "src/base/status.h"

namespace gemvjit::tools {

// Makes the folder where it is missing and writes and removes a file in it. cache_not_writable with the reason.
Status try_cache_folder(const std::string& folder);

}  // namespace gemvjit::tools
