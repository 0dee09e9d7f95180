#include "tools/gemvjit_warmup/cache_access.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <random>

#include "cache/cache_folders.h"
#include "cache/layout.h"
#include "src/base/files.h"
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

// Named as the store names what it is about to publish: should this process die here, a later writer sweeps it. Random,
// because in containers many processes have the same id.
std::string probe_name() {
  std::random_device random;
  const std::uint64_t number = std::uint64_t{random()} << 32 | random();
  return fmt::format("{}{}-{:016x}", temporary_file_prefix, ::getpid(), number);
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
  if (const Status trusted = open_cache_folder(folder, version_directory(folder), &guard).status();
      !trusted && trusted.code() != StatusCode::not_found) {
    return {StatusCode::cache_not_writable, fmt::format("cache folder {}: {}", folder, trusted.message())};
  }
  const std::string place = nearest_existing(folder);
  // A permission bit is no answer: root ignores it, and a read-only file system ignores root.
  int fd = -1;
  std::string probe;
  for (int attempt = 0; attempt < 16 && fd < 0; ++attempt) {
    probe = place + "/" + probe_name();
    fd = ::open(probe.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0 && errno != EEXIST && errno != EINTR) break;
  }
  if (fd < 0) {
    return {StatusCode::cache_not_writable,
            fmt::format("cache folder {}: a file cannot be made in {}: {}", folder, place, std::strerror(errno))};
  }
  ::close(fd);
  ::unlink(probe.c_str());
  return {};
}

}  // namespace gemvjit::tools
