#include "cache/store.h"

namespace gemvjit {
namespace {

bool is_absolute(const std::string& path) { return path.starts_with('/'); }

std::string below(std::string path, std::string_view name) {
  if (!path.ends_with('/')) path += '/';
  return path += name;
}

}  // namespace

std::string choose_cache_dir(const std::string& explicit_dir, const CacheEnvironment& environment) {
  if (!explicit_dir.empty()) return explicit_dir;
  if (!environment.gemvjit_cache_dir.empty()) return environment.gemvjit_cache_dir;
  if (is_absolute(environment.xdg_cache_home)) return below(environment.xdg_cache_home, "gemvjit");
  if (is_absolute(environment.home)) return below(environment.home, ".cache/gemvjit");
  return "";
}

}  // namespace gemvjit
