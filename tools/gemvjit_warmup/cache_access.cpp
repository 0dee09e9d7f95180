#include "tools/gemvjit_warmup/cache_access.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "cache/cache_folders.h"
#include "cache/layout.h"
#include "src/base/files.h"
#include "src/base/folder.h"
#include "tools/cache_view/cache_refusal.h"

namespace gemvjit::tools {
namespace {

// The folder, or the nearest one above it that is there.
std::string nearest_existing(std::string folder) {
  struct stat info {};
  while (::lstat(folder.c_str(), &info) != 0 && (errno == ENOENT || errno == ENOTDIR)) {
    const std::size_t slash = folder.find_last_of('/');
    if (slash == std::string::npos) return ".";
    if (slash == 0) return "/";
    folder.resize(slash);
  }
  return folder;
}

}  // namespace

Status try_cache_folder(const std::string& folder, const std::string& named) {
  if (folder.empty()) {
    GEMVJIT_TRY(check_cache_folder(named.empty() ? default_cache_folder() : named));
    return {StatusCode::cache_not_writable,
            "there is no cache folder: name one with --cache-dir or GEMVJIT_CACHE_DIR, or set HOME"};
  }
  // What the library would not trust it does not write to either.
  const EntryGuard guard = guard_of_cache();
  std::string root = folder;  // <root>/v1/<target>/<fan-out>
  for (int level = 0; level < 3; ++level) root = split_path(root).folder;
  if (const Status trusted = open_cache_folder(root, folder, &guard).status();
      !trusted && trusted.code() != StatusCode::not_found) {
    return {StatusCode::cache_not_writable, fmt::format("cache folder {}: {}", folder, trusted.message())};
  }
  const std::string place = nearest_existing(folder);
  const auto cannot = [&](const std::string& reason) {
    return Status(StatusCode::cache_not_writable,
                  fmt::format("cache folder {}: a file cannot be made in {}: {}", folder, place, reason));
  };
  const Result<Folder> opened = Folder::open_checked(place);
  if (!opened) return cannot(opened.status().message());
  // A permission bit is no answer: root ignores it, and a read-only file system ignores root. Named as the store names
  // what it is about to publish: should this process die here, a later writer sweeps it.
  for (unsigned attempt = 0;; ++attempt) {
    const std::string probe = temporary_file_name(attempt);
    const Descriptor file = opened->open_file(probe, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (file.is_open()) return opened->remove(probe);
    if (attempt == 15 || (errno != EEXIST && errno != EINTR)) return cannot(std::strerror(errno));
  }
}

}  // namespace gemvjit::tools
