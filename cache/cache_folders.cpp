#include "cache/cache_folders.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <functional>
#include <string_view>

#include "src/base/files.h"

namespace gemvjit {
namespace {

// Opens, or else makes, one folder in another; the guard looks at it.
using Step = std::function<Result<Folder>(const Folder& parent, const std::string& name)>;

// From the root, which was opened, down to `folder`.
Result<Folder> descend(Folder at, const std::string& root, std::string_view folder, const Step& step) {
  const bool is_below =
      folder.starts_with(root) && (folder.size() == root.size() || root == "/" || folder[root.size()] == '/');
  if (!is_below) {
    return Status(StatusCode::io_error, fmt::format("{} is no folder of the cache {}", folder, root));
  }
  folder.remove_prefix(root.size());
  while (!folder.empty()) {
    const std::size_t end = std::min(folder.find('/'), folder.size());
    if (end > 0) {
      GEMVJIT_TRY_ASSIGN(Folder next, step(at, std::string(folder.substr(0, end))));
      at = std::move(next);
    }
    folder.remove_prefix(std::min(end + 1, folder.size()));
  }
  return at;
}

}  // namespace

Result<Folder> open_cache_subfolder(const Folder& parent, const std::string& name, const EntryGuard& guard) {
  const auto open = [&]() -> Result<Folder> {
    if (guard.kind != EntryGuard::Kind::layer) return parent.open_folder(name);
    GEMVJIT_TRY_ASSIGN(const struct stat info, parent.examine(name));
    if (S_ISLNK(info.st_mode)) GEMVJIT_TRY(guard.check_link(parent.path_of(name), info));
    return parent.open_folder_through_link(name);
  };
  GEMVJIT_TRY_ASSIGN(Folder folder, open());
  GEMVJIT_TRY(guard.check_folder(folder));
  return folder;
}

Result<Folder> open_cache_folder(const std::string& root, const std::string& folder, const EntryGuard* guard) {
  const EntryGuard used = guard != nullptr ? *guard : EntryGuard::of_anyone();
  const std::string top = without_end_slashes(root);
  GEMVJIT_TRY_ASSIGN(Folder at, Folder::open_checked(top));
  GEMVJIT_TRY(used.check_folder(at));
  return descend(std::move(at), top, folder, [&](const Folder& parent, const std::string& name) {
    return open_cache_subfolder(parent, name, used);
  });
}

Result<Folder> make_cache_folder(const std::string& root, const std::string& folder, CacheTrust trust,
                                 const EntryGuard* guard) {
  const EntryGuard used = guard != nullptr ? *guard : EntryGuard::of_anyone();
  const mode_t mode = file_modes(trust).folder;
  const std::string top = without_end_slashes(root);
  // A root that is there may be a link: root_safety.h has looked at where it leads.
  Result<Folder> opened = Folder::open_checked(top);
  if (opened.status().code() == StatusCode::not_found) {
    const SplitPath split = split_path(top);
    GEMVJIT_TRY_ASSIGN(const Folder above, Folder::make(split.folder, 0700));
    opened = above.make_folder(split.name, mode);
  }
  GEMVJIT_TRY_ASSIGN(Folder at, std::move(opened));
  GEMVJIT_TRY(used.check_folder(at));
  return descend(std::move(at), top, folder, [&](const Folder& parent, const std::string& name) -> Result<Folder> {
    GEMVJIT_TRY_ASSIGN(Folder made, parent.make_folder(name, mode));
    GEMVJIT_TRY(used.check_folder(made));
    return made;
  });
}

Result<Folder> open_cache_folder_of(const std::string& root, const std::string& path, const EntryGuard* guard) {
  return open_cache_folder(root, split_path(path).folder, guard);
}

Descriptor open_cache_record(const Folder& folder, const std::string& name, std::string_view magic, CacheTrust trust,
                             const EntryGuard* guard, Missing missing) {
  Descriptor file = folder.open_file(name, O_RDWR | O_NONBLOCK);
  if (!file.is_open() && errno == ENOENT && missing == Missing::made) {
    const mode_t mode = file_modes(trust).file;
    // Complete before it has its name, so that nobody finds one without its beginning.
    const auto made = folder.publish(name, magic.data(), magic.size(), {.replace = false, .mode = mode});
    if (!made) return Descriptor(-1);
    file = folder.open_file(name, O_RDWR | O_NONBLOCK);
  }
  struct stat info {};
  if (!file.is_open() || ::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode) || info.st_nlink != 1) {
    return Descriptor(-1);
  }
  if (guard != nullptr && !guard->check_file(folder.path_of(name), file.get(), info)) return Descriptor(-1);
  std::array<char, 16> begin{};
  const ssize_t got = ::pread(file.get(), begin.data(), std::min(begin.size(), magic.size()), 0);
  if (got != static_cast<ssize_t>(magic.size()) || std::string_view(begin.data(), magic.size()) != magic) {
    return Descriptor(-1);
  }
  return file;
}

Status remove_cache_file(const std::string& root, const std::string& path, const EntryGuard* guard) {
  const Result<Folder> folder = open_cache_folder_of(root, path, guard);
  if (!folder) return is_no_folder(split_path(path).folder) ? Status::ok() : folder.status();
  return folder->remove(split_path(path).name);
}

}  // namespace gemvjit
