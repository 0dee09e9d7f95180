#include "tools/cache_view/cache_refusal.h"

#include <sys/stat.h>

#include "cache/entry_guard.h"
#include "cache/root_safety.h"
#include "src/runtime/options.h"
#include "tools/cache_view/tool_settings.h"

namespace gemvjit::tools {

std::string default_cache_folder() {
  const auto options = resolve_options({}, tool_environment());
  return options ? options->cache_dir : "";
}

Status check_cache_folder(const std::string& folder) {
  const auto options = resolve_options({}, tool_environment());
  if (folder.empty() || !options) return Status::ok();
  return check_cache_root(folder, options->cache_trust);
}

Status check_entry_file(const std::string& path, EntryPlace place) {
  EntryGuard guard = EntryGuard::of_layer();
  if (place == EntryPlace::cache) {
    const auto options = resolve_options({}, tool_environment());
    if (!options) return Status::ok();
    guard = EntryGuard::of_cache(options->cache_trust);
  }
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) return Status::ok();
  GEMVJIT_TRY(guard.check_way(path));
  return guard.check_file(path, info);
}

}  // namespace gemvjit::tools
