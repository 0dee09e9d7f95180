#include "cache/file_modes.h"

#include "src/base/files.h"

namespace gemvjit {

Status make_cache_folder(const std::string& root, const std::string& folder, CacheTrust trust) {
  const mode_t mode = file_modes(trust).folder;
  if (trust == CacheTrust::shared) {
    std::string path = root;
    while (path.size() > 1 && path.ends_with('/')) path.pop_back();
    GEMVJIT_TRY(make_directories(split_path(path).folder));
  }
  return make_directories(folder, mode);
}

}  // namespace gemvjit
