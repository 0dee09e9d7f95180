#include "tools/cache_view/cache_refusal.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "cache/cache_folders.h"
#include "cache/layout.h"
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

EntryGuard guard_of_cache() {
  const auto options = resolve_options({}, tool_environment());
  return options ? EntryGuard::of_cache(options->cache_trust) : EntryGuard::of_anyone();
}

CacheTrust trust_of_root(const std::string& root) {
  const auto options = resolve_options({}, tool_environment());
  const CacheTrust trust = options ? options->cache_trust : CacheTrust::owner;
  if (check_cache_root(root, trust) || !check_cache_root(root, CacheTrust::shared)) return trust;
  return CacheTrust::shared;
}

EntryGuard guard_of_root(const std::string& root) {
  const CacheTrust trust = trust_of_root(root);
  return check_cache_root(root, trust) ? EntryGuard::of_cache(trust) : EntryGuard::of_anyone();
}

Status check_entry_file(const std::string& root, const EntryId& id, EntryPlace place) {
  const EntryGuard guard = place == EntryPlace::cache ? guard_of_cache() : EntryGuard::of_layer();
  const Result<Folder> folder = open_cache_folder(root, entry_directory(root, id), &guard);
  if (!folder) return folder.status().code() == StatusCode::not_found ? Status::ok() : folder.status();
  const std::string name = entry_file_name(id);
  const Descriptor file = folder->open_file(name, O_PATH);
  struct stat info {};
  if (!file.is_open() || ::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) return Status::ok();
  return guard.check_file(folder->path_of(name), file.get(), info);
}

}  // namespace gemvjit::tools
