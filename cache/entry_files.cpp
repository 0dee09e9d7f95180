#include "cache/entry_files.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>

#include "cache/cache_folders.h"
#include "cache/layout.h"
#include "src/base/files.h"

namespace gemvjit {
namespace {

Result<Entry> load_once(const Folder& folder, const std::string& name, const EntryGuard* guard) {
  const auto check = [&](int descriptor, const struct stat& info) {
    return guard == nullptr ? Status::ok() : guard->check_file(folder.path_of(name), descriptor, info);
  };
  GEMVJIT_TRY_ASSIGN(const Bytes bytes, folder.read_file(name, entry_size_limit, check));
  return decode_entry(bytes);
}

template <typename Load>
Result<Entry> twice(const Load& load) {
  Result<Entry> first = load();
  return first || first.status().code() == StatusCode::not_found ? std::move(first) : load();
}

void list_file(const std::string& root, const Folder& folder, const std::string& name,
               const std::function<void(ListedEntry)>& on_entry, const EntryGuard* guard) {
  ListedEntry item;
  item.path = folder.path_of(name);
  if (const auto info = folder.examine(name)) item.file_bytes = static_cast<std::uint64_t>(info->st_size);
  Result<Entry> entry = load_entry_file(folder, name, guard);
  if (!entry) {
    if (entry.status().code() == StatusCode::not_found) return;  // removed since it was listed
    item.problem = entry.status();
  } else if (entry_path(root, entry->id) != item.path) {
    item.problem = foreign_entry(entry->id);
  } else {
    item.entry = std::move(entry).value();
  }
  on_entry(std::move(item));
}

}  // namespace

Result<Entry> load_entry_file(const Folder& folder, const std::string& name, const EntryGuard* guard) {
  return twice([&] { return load_once(folder, name, guard); });
}

Result<Entry> load_entry_file(const std::string& root, const EntryId& id, const EntryGuard* guard) {
  return twice([&]() -> Result<Entry> {
    GEMVJIT_TRY_ASSIGN(const Folder folder, open_cache_folder(root, entry_directory(root, id), guard));
    return load_once(folder, entry_file_name(id), guard);
  });
}

EntryState entry_state(const std::string& path, const Status& problem) {
  if (problem) return EntryState::whole;
  if (problem.code() == StatusCode::entry_damaged) return EntryState::damaged;
  // io_error also stands for what is of the wrong kind, or too large.
  struct stat info {};
  if (problem.code() != StatusCode::io_error || ::lstat(path.c_str(), &info) != 0) return EntryState::unreadable;
  const bool is_possible = is_entry_file_name(split_path(path).name)
                               ? S_ISREG(info.st_mode) && static_cast<std::uint64_t>(info.st_size) <= entry_size_limit
                               : S_ISDIR(info.st_mode) || S_ISLNK(info.st_mode);
  return is_possible ? EntryState::unreadable : EntryState::damaged;
}

bool is_folder(const std::string& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

Status foreign_entry(const EntryId& found) {
  return {StatusCode::entry_damaged, fmt::format("it holds {} with digest {}, another kernel than its name says",
                                                 found.key.text(), to_hex(found.digest))};
}

Status with_path(const std::string& path, const Status& failure) {
  if (failure.message().find(path) != std::string::npos) return failure;
  return {failure.code(), fmt::format("{}: {}", path, failure.message())};
}

Status visit_entry_files(const std::string& root, const OnEntryFile& on_file, const OnProblem& on_problem,
                         const EntryGuard* guard) {
  const EntryGuard used = guard != nullptr ? *guard : EntryGuard::of_anyone();
  const auto names_in = [&](const Result<Folder>& folder, const std::string& path) {
    auto names = folder ? folder->list() : folder.status();
    if (names) return std::move(names).value();
    if (names.status().code() != StatusCode::not_found) on_problem(path, names.status());
    return std::vector<std::string>();
  };
  const Result<Folder> all = open_cache_folder(root, version_directory(root), guard);
  if (!all) return all.status().code() == StatusCode::not_found ? Status::ok() : all.status();
  GEMVJIT_TRY_ASSIGN(const std::vector<std::string> archs, all->list());
  for (const std::string& arch : archs) {
    if (!Arch::parse(arch)) continue;
    const Result<Folder> target = open_cache_subfolder(*all, arch, used);
    for (const std::string& part : names_in(target, all->path_of(arch))) {
      if (!is_fan_out_name(part)) continue;
      const Result<Folder> folder = open_cache_subfolder(*target, part, used);
      for (const std::string& name : names_in(folder, target->path_of(part))) {
        if (is_entry_file_name(name)) on_file(*folder, name, arch);
      }
    }
  }
  return Status::ok();
}

Status visit_entries(const std::string& root, const std::function<void(ListedEntry entry)>& on_entry,
                     const EntryGuard* guard) {
  return visit_entry_files(
      root,
      [&](const Folder& folder, const std::string& name, const std::string&) {
        list_file(root, folder, name, on_entry, guard);
      },
      [&](const std::string& folder, const Status& problem) {
        on_entry({folder, 0, {}, problem});
      },
      guard);
}

Result<std::vector<ListedEntry>> list_entry_files(const std::string& root, const EntryGuard* guard) {
  std::vector<ListedEntry> listed;
  GEMVJIT_TRY(visit_entries(
      root, [&](ListedEntry entry) { listed.push_back(std::move(entry)); }, guard));
  std::sort(listed.begin(), listed.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  return listed;
}

}  // namespace gemvjit
