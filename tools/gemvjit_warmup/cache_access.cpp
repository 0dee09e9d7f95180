#include "tools/gemvjit_warmup/cache_access.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "src/base/files.h"

namespace gemvjit::tools {

Status try_cache_folder(const std::string& folder) {
  if (folder.empty()) {
    return {StatusCode::cache_not_writable,
            "there is no cache folder: name one with --cache-dir or GEMVJIT_CACHE_DIR, or set HOME"};
  }
  if (const Status made = make_directories(folder); !made) {
    return {StatusCode::cache_not_writable, fmt::format("cache folder {}: {}", folder, made.message())};
  }
  // A permission bit is no answer: root ignores it, and a read-only file system ignores root.
  const std::string probe = fmt::format("{}/.writable-{}", folder, ::getpid());
  const int fd = ::open(probe.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) {
    return {StatusCode::cache_not_writable,
            fmt::format("cache folder {}: a file cannot be made in it: {}", folder, std::strerror(errno))};
  }
  ::close(fd);
  ::unlink(probe.c_str());
  return {};
}

}  // namespace gemvjit::tools
