#include "tools/gemvjit_cache/cache_folder.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>

#include "cache/cache_folders.h"
#include "cache/layout.h"
#include "cache/size_limit.h"
#include "src/base/files.h"
#include "src/base/suggestion.h"
#include "src/runtime/options.h"
#include "tools/cache_view/cache_refusal.h"
#include "tools/cache_view/tool_settings.h"
#include "tools/common/printable.h"

namespace gemvjit::tools {
namespace {

constexpr std::size_t shortest_prefix = 4;  // hex digits

bool is_digest_prefix(const std::string& text) {
  return text.size() >= shortest_prefix && text.size() <= 2 * sizeof(Digest) &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isxdigit(c) != 0; });
}

// What the name of an entry's file says; files keep their names when their content is damaged.
bool is_named(const ListedEntry& listed, const std::optional<KernelKey>& key, const std::string& prefix) {
  const std::filesystem::path path = listed.path;
  const std::string stem = path.stem().string();
  const std::size_t dash = stem.rfind('-');
  if (!is_entry_file_name(path.filename().string()) || dash == std::string::npos) return false;
  if (key) return key->text() == stem.substr(0, dash) + "-" + path.parent_path().parent_path().filename().string();
  const std::string digits = stem.substr(dash + 1);  // the digest's first
  return digits.starts_with(prefix) || prefix.starts_with(digits);
}

// Nothing whole is called so: says whether something else is.
ExitCode explain_no_match(const std::vector<ListedEntry>& entries, const std::string& selector,
                          const std::optional<KernelKey>& key, const std::string& prefix) {
  for (const ListedEntry& listed : entries) {
    if (listed.entry || !is_named(listed, key, prefix)) continue;
    const bool damaged = state_of(listed) == EntryState::damaged;
    const std::string note = removal_note(listed);
    complain(fmt::format("the entry {} is {}: {}{}", selector, damaged ? "damaged" : "unreadable",
                         listed.problem.message(),
                         !note.empty() ? note
                         : damaged     ? "; gemvjit-cache rm --damaged removes it, a warmup makes it anew"
                                       : ""));
    return damaged ? exit_entry_damaged : exit_environment;
  }
  complain(fmt::format("no entry is called {}", printable(selector)));
  for (const ListedEntry& listed : entries) {
    if (!listed.entry && !is_entry_file_name(split_path(listed.path).name)) {
      complain("not looked into: " + with_path(listed.path, listed.problem).message());
    }
  }
  return exit_nothing_found;
}

}  // namespace

std::string removal_note(const ListedEntry& listed) {
  const bool is_it = state_of(listed) == EntryState::damaged && is_folder(listed.path);
  return is_it ? "; it is a folder: remove it by hand" : "";
}

Status remove_entry_file(const std::string& root, const std::string& path, const EntryGuard& guard) {
  const Result<Folder> folder = open_cache_folder_of(root, path, &guard);
  if (!folder) return folder.status().code() == StatusCode::not_found ? Status::ok() : folder.status();
  const std::string name = split_path(path).name;
  if (const auto info = folder->examine(name)) {
    const bool is_link = S_ISLNK(info->st_mode) && !is_entry_file_name(name);
    if (is_link || S_ISDIR(info->st_mode)) {
      return {StatusCode::io_error, fmt::format("{} is a {}: remove it by hand", path, is_link ? "link" : "folder")};
    }
  }
  return folder->remove(name);
}

EntryGuard guard_of_folder(const std::string& root) {
  if (const Status used = check_cache_folder(root); !used) {
    say(fmt::format("gemvjit-cache: note: the library here does not use this folder: {}\n", used.message()));
  }
  return guard_of_root(root);
}

EntryCounts count_states(const std::vector<ListedEntry>& entries) {
  EntryCounts counts;
  for (const ListedEntry& listed : entries) {
    const EntryState state = state_of(listed);
    ++(state == EntryState::whole ? counts.whole : state == EntryState::damaged ? counts.damaged : counts.unreadable);
  }
  return counts;
}

CacheFolder choose_cache_folder(const CacheArguments& arguments) {
  if (arguments.cache_dir) return {*arguments.cache_dir, "--cache-dir"};
  const EnvironmentReader& environment = tool_environment();
  const CacheEnvironment values{.gemvjit_cache_dir = environment("GEMVJIT_CACHE_DIR").value_or(""),
                                .xdg_cache_home = environment("XDG_CACHE_HOME").value_or(""),
                                .home = environment("HOME").value_or("")};
  CacheFolder folder{.path = choose_cache_dir("", values), .source = ""};
  if (folder.path.empty()) return folder;
  // What named it is what alone gives the same answer.
  if (!values.gemvjit_cache_dir.empty()) {
    const Result<Settings>& settings = tool_settings();
    folder.source = settings ? settings->origin_of(option_row("cache_dir")) : "GEMVJIT_CACHE_DIR";
  } else if (choose_cache_dir("", {.gemvjit_cache_dir = "", .xdg_cache_home = values.xdg_cache_home, .home = ""}) ==
             folder.path) {
    folder.source = "XDG_CACHE_HOME";
  } else {
    folder.source = "HOME";
  }
  return folder;
}

ExitCode require_cache_folder(const CacheArguments& arguments, FolderUse use, CacheFolder& folder) {
  folder = choose_cache_folder(arguments);
  if (folder.path.empty()) {
    complain("there is no cache folder: name one with --cache-dir or GEMVJIT_CACHE_DIR, or set HOME");
    return exit_environment;
  }
  if (use == FolderUse::make) return exit_done;
  struct stat info {};
  const bool exists = ::stat(folder.path.c_str(), &info) == 0;
  // A default or a variable may name what the first warmup will make; who names a folder here expects it to be there.
  if (!exists && arguments.cache_dir) {
    complain(fmt::format("cache {} (from {}): {}", folder.path, folder.source, std::strerror(errno)));
    return exit_environment;
  }
  if (exists && !S_ISDIR(info.st_mode)) {
    complain(fmt::format("cache {} (from {}) is no folder", folder.path, folder.source));
    return exit_environment;
  }
  return exit_done;
}

ExitCode open_limited_store(const std::string& root, std::unique_ptr<CubinStore>& store, std::uint64_t& max_bytes) {
  const auto options = resolve_options({}, tool_environment());
  if (!options) {
    complain(options.status().message());
    return exit_usage;
  }
  max_bytes = options->cache_max_bytes;
  DirStoreOptions of_folder;
  of_folder.trust = trust_of_root(root);
  of_folder.guard = guard_of_folder(root);
  SizeLimit limit;
  limit.guard = of_folder.guard;
  limit.max_bytes = max_bytes;
  limit.trust = of_folder.trust;
  store = make_size_limited_store(make_dir_store(root, Log::silent(), of_folder), limit, Log::silent());
  return exit_done;
}

ExitCode load_entries(const CacheArguments& arguments, std::vector<ListedEntry>& entries, Cubins cubins,
                      const std::function<void(const ListedEntry&)>& look) {
  CacheFolder folder;
  if (const ExitCode code = require_cache_folder(arguments, FolderUse::look, folder); code != exit_done) return code;
  const std::string root = without_end_slashes(folder.path);
  const EntryGuard guard = guard_of_folder(root);
  const Status listed = visit_entries(
      root,
      [&](ListedEntry entry) {
        if (look) look(entry);
        if (entry.entry && cubins == Cubins::drop) entry.entry->cubin.bytes = {};
        entries.push_back(std::move(entry));
      },
      &guard);
  if (!listed) {
    complain(fmt::format("cache {} (from {}): {}", folder.path, folder.source, listed.message()));
    return exit_environment;
  }
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  return exit_done;
}

ExitCode select_entries(const std::vector<ListedEntry>& entries, const std::string& selector,
                        std::vector<const ListedEntry*>& selected) {
  const auto parsed = KernelKey::parse(selector);
  const std::optional<KernelKey> key = parsed ? std::optional(*parsed) : std::nullopt;
  if (!key && !is_digest_prefix(selector)) {
    complain(
        fmt::format("'{}' is neither a key, such as n4096-k4096-nt1-f0000410208848021-sm_90a, nor {} to 64 hex digits "
                    "that a digest begins with; gemvjit-cache ls shows both",
                    printable(selector), shortest_prefix));
    return exit_usage;
  }
  const std::string prefix = lower_case(selector);
  std::vector<const ListedEntry*> matches;
  for (const ListedEntry& listed : entries) {
    if (!listed.entry) continue;
    const EntryId& id = listed.entry->id;
    if (key ? id.key == *key : to_hex(id.digest).starts_with(prefix)) matches.push_back(&listed);
  }
  if (matches.empty()) return explain_no_match(entries, selector, key, prefix);
  if (!key && matches.size() > 1) {
    std::string text = fmt::format("{} is ambiguous, {} digests begin so:", selector, matches.size());
    for (const ListedEntry* match : matches) {
      text += fmt::format("\n  {}  {}", to_hex(match->entry->id.digest), match->entry->id.key.text());
    }
    complain(text);
    return exit_usage;
  }
  selected.insert(selected.end(), matches.begin(), matches.end());
  return exit_done;
}

}  // namespace gemvjit::tools
