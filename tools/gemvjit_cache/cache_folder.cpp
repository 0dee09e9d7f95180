#include "tools/gemvjit_cache/cache_folder.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cctype>

#include "src/runtime/options.h"

namespace gemvjit::tools {
namespace {

constexpr std::size_t shortest_prefix = 4;  // hex digits

bool is_digest_prefix(const std::string& text) {
  return text.size() >= shortest_prefix && text.size() <= 2 * sizeof(Digest) &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isxdigit(c) != 0; });
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

}  // namespace

CacheFolder choose_cache_folder(const CacheArguments& arguments) {
  if (arguments.cache_dir) return {*arguments.cache_dir, "--cache-dir"};
  const EnvironmentReader environment = process_environment();
  const CacheEnvironment values{.gemvjit_cache_dir = environment("GEMVJIT_CACHE_DIR").value_or(""),
                                .xdg_cache_home = environment("XDG_CACHE_HOME").value_or(""),
                                .home = environment("HOME").value_or("")};
  CacheFolder folder{.path = choose_cache_dir("", values), .source = ""};
  if (folder.path.empty()) return folder;
  // What named it is what alone gives the same answer.
  if (!values.gemvjit_cache_dir.empty()) {
    folder.source = "GEMVJIT_CACHE_DIR";
  } else if (choose_cache_dir("", {.gemvjit_cache_dir = "", .xdg_cache_home = values.xdg_cache_home, .home = ""}) ==
             folder.path) {
    folder.source = "XDG_CACHE_HOME";
  } else {
    folder.source = "HOME";
  }
  return folder;
}

ExitCode load_entries(const CacheArguments& arguments, std::vector<ListedEntry>& entries) {
  const CacheFolder folder = choose_cache_folder(arguments);
  if (folder.path.empty()) {
    complain("there is no cache folder: name one with --cache-dir or GEMVJIT_CACHE_DIR, or set HOME");
    return exit_environment;
  }
  struct stat info {};
  if (::stat(folder.path.c_str(), &info) == 0 && !S_ISDIR(info.st_mode)) {
    complain(fmt::format("cache {} (from {}) is no folder", folder.path, folder.source));
    return exit_environment;
  }
  auto listed = make_dir_store(folder.path, Log::silent())->list();
  if (!listed) {
    complain(fmt::format("cache {} (from {}): {}", folder.path, folder.source, listed.status().message()));
    return exit_environment;
  }
  entries = std::move(listed).value();
  return exit_done;
}

ExitCode select_entries(const std::vector<ListedEntry>& entries, const std::string& selector,
                        std::vector<const ListedEntry*>& selected) {
  const auto key = KernelKey::parse(selector);
  if (!key && !is_digest_prefix(selector)) {
    complain(
        fmt::format("'{}' is neither a key, such as n4096-k4096-nt1-f0000000000002022-sm_90a, nor {} to 64 hex digits "
                    "that a digest begins with; gemvjit-cache ls shows both",
                    selector, shortest_prefix));
    return exit_usage;
  }
  const std::string prefix = lower(selector);
  std::vector<const ListedEntry*> matches;
  for (const ListedEntry& listed : entries) {
    if (!listed.entry) continue;
    const EntryId& id = listed.entry->id;
    if (key ? id.key == *key : to_hex(id.digest).starts_with(prefix)) matches.push_back(&listed);
  }
  if (matches.empty()) {
    complain(fmt::format("no entry is called {}", selector));
    return exit_nothing_found;
  }
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
