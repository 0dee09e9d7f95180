#include "cache/quarantine.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <ctime>
#include <system_error>
#include <utility>
#include <vector>

#include "cache/file_modes.h"
#include "cache/layout.h"
#include "src/base/files.h"

namespace gemvjit {

std::string quarantine_directory(const std::string& root) { return version_directory(root) + "/quarantine"; }

Result<std::string> quarantine_file(const std::string& root, const std::string& path, CacheTrust trust) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) {
    if (errno == ENOENT) return Status(StatusCode::not_found, fmt::format("there is no file {}", path));
    return Status(StatusCode::io_error, fmt::format("cannot examine {}", path));
  }
  // A directory is somebody's own doing, and its size is not known.
  if (S_ISDIR(info.st_mode)) return Status(StatusCode::io_error, fmt::format("{} is a directory", path));
  const std::string directory = quarantine_directory(root);
  GEMVJIT_TRY(make_cache_folder(root, directory, trust));
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  const std::uint64_t stamp =
      static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(now.tv_nsec);
  const std::string moved =
      fmt::format("{}/{:016x}-{}-{}", directory, stamp, ::getpid(), path.substr(path.rfind('/') + 1));
  if (std::rename(path.c_str(), moved.c_str()) != 0) {
    const int error = errno;
    if (error == ENOENT) return Status(StatusCode::not_found, fmt::format("there is no file {}", path));
    return Status(StatusCode::io_error,
                  fmt::format("cannot move {} to {}: {}", path, moved, std::generic_category().message(error)));
  }
  return moved;
}

namespace {

using File = std::pair<std::string, std::uint64_t>;  // path, bytes

// The oldest first.
std::vector<File> quarantined_files(const std::string& directory) {
  std::vector<File> files;
  const auto names = list_directory(directory);  // sorted
  for (const std::string& name : names ? *names : std::vector<std::string>{}) {
    struct stat info {};
    const std::string path = directory + "/" + name;
    if (::lstat(path.c_str(), &info) != 0 || S_ISDIR(info.st_mode)) continue;
    files.emplace_back(path, static_cast<std::uint64_t>(info.st_size));
  }
  return files;
}

}  // namespace

QuarantineContent quarantine_content(const std::string& root) {
  QuarantineContent content;
  for (const File& file : quarantined_files(quarantine_directory(root))) ++content.files, content.bytes += file.second;
  return content;
}

void prune_quarantine(const std::string& root, const QuarantineLimits& limits) {
  std::vector<File> files = quarantined_files(quarantine_directory(root));
  // One that is larger than all may be is no reason to lose the others.
  std::erase_if(files, [&](const File& file) { return file.second > limits.bytes && remove_file(file.first).is_ok(); });
  std::uint64_t bytes = 0;
  for (const File& file : files) bytes += file.second;
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (files.size() - i <= limits.files && bytes <= limits.bytes) return;
    (void)remove_file(files[i].first);
    bytes -= files[i].second;
  }
}

}  // namespace gemvjit
