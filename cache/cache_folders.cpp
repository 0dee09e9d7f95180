#include "cache/cache_folders.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "src/base/files.h"

namespace gemvjit {
namespace {

std::string_view without_end_slashes(std::string_view path) {
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  return path;
}

// Opens, or else makes, one folder in another.
using Step = Result<Folder> (*)(const Folder& parent, const std::string& name, const EntryGuard& guard, mode_t mode);

Result<Folder> open_step(const Folder& parent, const std::string& name, const EntryGuard& guard, mode_t) {
  if (guard.kind != EntryGuard::Kind::layer) return parent.open_folder(name);
  GEMVJIT_TRY_ASSIGN(const struct stat info, parent.examine(name));
  if (S_ISLNK(info.st_mode)) GEMVJIT_TRY(guard.check_link(parent.path_of(name), info));
  return parent.open_folder_through_link(name);
}

Result<Folder> make_step(const Folder& parent, const std::string& name, const EntryGuard&, mode_t mode) {
  return parent.make_folder(name, mode);
}

// From the root, which was opened, down to `folder`.
Result<Folder> descend(Folder at, std::string_view root, std::string_view folder, const EntryGuard& guard, Step step,
                       mode_t mode) {
  root = without_end_slashes(root);
  if (!folder.starts_with(root)) {
    return Status(StatusCode::io_error, fmt::format("{} is no folder of the cache {}", folder, root));
  }
  folder.remove_prefix(root.size());
  GEMVJIT_TRY(guard.check_folder(at));
  while (!folder.empty()) {
    folder.remove_prefix(folder.front() == '/' ? 1 : 0);
    const std::size_t end = std::min(folder.find('/'), folder.size());
    if (end == 0) continue;
    GEMVJIT_TRY_ASSIGN(Folder next, step(at, std::string(folder.substr(0, end)), guard, mode));
    GEMVJIT_TRY(guard.check_folder(next));
    at = std::move(next);
    folder.remove_prefix(end);
  }
  return at;
}

}  // namespace

Result<Folder> open_cache_folder(const std::string& root, const std::string& folder, const EntryGuard* guard) {
  GEMVJIT_TRY_ASSIGN(Folder at, Folder::open(std::string(without_end_slashes(root))));
  return descend(std::move(at), root, folder, guard != nullptr ? *guard : EntryGuard::of_anyone(), open_step, 0);
}

Result<Folder> make_cache_folder(const std::string& root, const std::string& folder, CacheTrust trust,
                                 const EntryGuard* guard) {
  const SplitPath split = split_path(std::string(without_end_slashes(root)));
  const mode_t mode = file_modes(trust).folder;
  GEMVJIT_TRY_ASSIGN(const Folder parent, Folder::make(split.folder, 0700));
  // A root that is there may be a link: root_safety.h has looked at where it leads.
  Result<Folder> at = split.name.empty() ? Folder::open(split.folder) : parent.open_folder_through_link(split.name);
  if (!at && at.status().code() == StatusCode::not_found) at = parent.make_folder(split.name, mode);
  if (!at) return at;
  return descend(std::move(at).value(), root, folder, guard != nullptr ? *guard : EntryGuard::of_anyone(), make_step,
                 mode);
}

Result<Folder> open_cache_folder_of(const std::string& root, const std::string& path, const EntryGuard* guard) {
  return open_cache_folder(root, split_path(path).folder, guard);
}

Status remove_cache_file(const std::string& root, const std::string& path, const EntryGuard* guard) {
  const Result<Folder> folder = open_cache_folder_of(root, path, guard);
  if (!folder) return folder.status().code() == StatusCode::not_found ? Status::ok() : folder.status();
  return folder->remove(split_path(path).name);
}

}  // namespace gemvjit
