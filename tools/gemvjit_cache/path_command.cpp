// gemvjit-cache path: where the cache is, for scripts.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tools/gemvjit_cache/cache_folder.h"
#include "tools/gemvjit_cache/entry_facts.h"

namespace gemvjit::tools {

ExitCode show_path(const CacheArguments& arguments) {
  const CacheFolder folder = choose_cache_folder(arguments);
  if (folder.path.empty()) {
    complain("there is no cache folder: kernels are kept in memory only; set GEMVJIT_CACHE_DIR or HOME");
    return exit_environment;
  }
  if (arguments.json) {
    print_json({{"cache_dir", folder.path}, {"source", folder.source}});
  } else {
    fmt::print("{}\n", folder.path);
  }
  return exit_done;
}

}  // namespace gemvjit::tools
