#include "cache/entry_files.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>

#include "cache/layout.h"
#include "src/base/files.h"

namespace gemvjit {
namespace {

Result<Entry> load_once(const std::string& path, const EntryGuard* guard) {
  if (guard == nullptr) {
    GEMVJIT_TRY_ASSIGN(const Bytes bytes, read_file(path, entry_size_limit));
    return decode_entry(bytes);
  }
  // The folders last: what was opened is known by then to be no other user's file.
  GEMVJIT_TRY_ASSIGN(const Bytes bytes, read_file(path, entry_size_limit, [&](const struct stat& info) -> Status {
                       GEMVJIT_TRY(guard->check_file(path, info));
                       return guard->check_way(path);
                     }));
  return decode_entry(bytes);
}

void list_file(const std::string& root, const std::string& path, const std::function<void(ListedEntry)>& on_entry,
               const EntryGuard* guard) {
  struct stat info {};
  ListedEntry item;
  item.path = path;
  if (::lstat(path.c_str(), &info) == 0) item.file_bytes = static_cast<std::uint64_t>(info.st_size);
  Result<Entry> entry = load_entry_file(path, guard);
  if (!entry) {
    if (entry.status().code() == StatusCode::not_found) return;  // removed since it was listed
    item.problem = entry.status();
  } else if (entry_path(root, entry->id) != path) {
    item.problem = foreign_entry(entry->id);
  } else {
    item.entry = std::move(entry).value();
  }
  on_entry(std::move(item));
}

}  // namespace

Result<Entry> load_entry_file(const std::string& path, const EntryGuard* guard) {
  Result<Entry> first = load_once(path, guard);
  if (first || first.status().code() == StatusCode::not_found) return first;
  return load_once(path, guard);
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

Status visit_entry_files(
    const std::string& root,
    const std::function<void(const std::string& folder, const std::string& name, const std::string& arch)>& on_file,
    const std::function<void(const std::string& folder, const Status& problem)>& on_problem, const EntryGuard* guard) {
  const auto look_into = [&](const std::string& folder) -> Result<std::vector<std::string>> {
    if (guard != nullptr) GEMVJIT_TRY(guard->check_folder(folder));
    return list_directory(folder);
  };
  const auto names_in = [&](const std::string& folder) {
    auto names = look_into(folder);
    if (names) return std::move(names).value();
    if (names.status().code() != StatusCode::not_found) on_problem(folder, names.status());
    return std::vector<std::string>();
  };
  const auto archs = look_into(version_directory(root));
  if (!archs) return archs.status().code() == StatusCode::not_found ? Status::ok() : archs.status();
  for (const std::string& arch : *archs) {
    if (!Arch::parse(arch)) continue;
    const std::string target = version_directory(root) + "/" + arch;
    for (const std::string& part : names_in(target)) {
      if (!is_fan_out_name(part)) continue;
      const std::string folder = target + "/" + part;
      for (const std::string& name : names_in(folder)) {
        if (is_entry_file_name(name)) on_file(folder, name, arch);
      }
    }
  }
  return Status::ok();
}

Status visit_entries(const std::string& root, const std::function<void(ListedEntry entry)>& on_entry,
                     const EntryGuard* guard) {
  return visit_entry_files(
      root,
      [&](const std::string& folder, const std::string& name, const std::string&) {
        list_file(root, folder + "/" + name, on_entry, guard);
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
