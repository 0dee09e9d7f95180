#include "cache/quarantine.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <string_view>
#include <utility>
#include <vector>

#include "cache/cache_folders.h"
#include "cache/layout.h"
#include "src/base/files.h"

namespace gemvjit {
namespace {

constexpr std::size_t stamp_digits = 16;

// "<16 hex digits>-<pid>-<an entry's name>": whatever else is there, nobody but its maker removes it.
bool is_quarantined_name(std::string_view name) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto is_hex = [&](char c) { return is_digit(c) || (c >= 'a' && c <= 'f'); };
  if (name.size() <= stamp_digits || name[stamp_digits] != '-') return false;
  if (!std::all_of(name.begin(), name.begin() + stamp_digits, is_hex)) return false;
  name.remove_prefix(stamp_digits + 1);
  const std::size_t dash = name.find('-');
  if (dash == 0 || dash == std::string_view::npos) return false;
  return std::all_of(name.begin(), name.begin() + static_cast<std::ptrdiff_t>(dash), is_digit) &&
         is_entry_file_name(name.substr(dash + 1));
}

using File = std::pair<std::string, std::uint64_t>;  // name, bytes

// The oldest first.
std::vector<File> quarantined_files(const Folder& quarantine) {
  std::vector<File> files;
  const auto names = quarantine.list();  // sorted
  for (const std::string& name : names ? *names : std::vector<std::string>{}) {
    if (!is_quarantined_name(name)) continue;
    const auto info = quarantine.examine(name);
    if (info && !S_ISDIR(info->st_mode)) files.emplace_back(name, static_cast<std::uint64_t>(info->st_size));
  }
  return files;
}

}  // namespace

std::string quarantine_directory(const std::string& root) { return version_directory(root) + "/quarantine"; }

Result<Quarantined> quarantine_file(const std::string& root, const std::string& path, CacheTrust trust,
                                    const EntryGuard* guard) {
  const std::string name = split_path(path).name;
  GEMVJIT_TRY_ASSIGN(Folder from, open_cache_folder_of(root, path, guard));
  GEMVJIT_TRY_ASSIGN(const struct stat info, from.examine(name));
  // A directory is somebody's own doing, and its size is not known.
  if (S_ISDIR(info.st_mode)) return Status(StatusCode::io_error, fmt::format("{} is a directory", path));
  GEMVJIT_TRY_ASSIGN(Folder to, make_cache_folder(root, quarantine_directory(root), trust, guard));
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  const std::uint64_t stamp =
      static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(now.tv_nsec);
  std::string moved = fmt::format("{:016x}-{}-{}", stamp, ::getpid(), name);
  GEMVJIT_TRY(from.move(name, to, moved));
  return Quarantined{std::move(from), std::move(to), std::move(moved)};
}

QuarantineContent quarantine_content(const std::string& root) {
  QuarantineContent content;
  const Result<Folder> quarantine = open_cache_folder(root, quarantine_directory(root), nullptr);
  if (!quarantine) return content;
  for (const File& file : quarantined_files(*quarantine)) ++content.files, content.bytes += file.second;
  return content;
}

void prune_quarantine(const Folder& quarantine, const QuarantineLimits& limits) {
  std::vector<File> files = quarantined_files(quarantine);
  // One that is larger than all may be is no reason to lose the others.
  std::erase_if(files,
                [&](const File& file) { return file.second > limits.bytes && quarantine.remove(file.first).is_ok(); });
  std::uint64_t bytes = 0;
  for (const File& file : files) bytes += file.second;
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (files.size() - i <= limits.files && bytes <= limits.bytes) return;
    (void)quarantine.remove(files[i].first);
    bytes -= files[i].second;
  }
}

}  // namespace gemvjit
