// Whether a folder of the cache can be written, asked before minutes of compiling.
#pragma once

#include <string>

#include "src/base/status.h"

namespace gemvjit::tools {

// `folder`: one that entries are directly in, <root>/v1/<target>/<fan-out>. Whether the library would use it, as far as
// the folders below the root tell, and whether a file can be made in it; where that is not there yet, in the nearest
// one above it. Leaves nothing behind and makes no folder. cache_not_writable with the reason; also for "", which is no
// cache folder at all: `named` is the one that --cache-dir names, or "", so that one which the library refuses is told
// from none.
Status try_cache_folder(const std::string& folder, const std::string& named);

}  // namespace gemvjit::tools
