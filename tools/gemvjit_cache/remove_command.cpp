// gemvjit-cache rm: remove what a selector names, and nothing without one. All selectors are looked up before the first
// file goes, so that a wrong one removes nothing.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>

#include "tools/cache_view/cache_refusal.h"
#include "tools/gemvjit_cache/cache_folder.h"
#include "tools/gemvjit_cache/entry_facts.h"

namespace gemvjit::tools {

ExitCode remove_entries(const CacheArguments& arguments) {
  if (arguments.selectors.empty() && !arguments.all && !arguments.damaged) {
    complain("rm needs to be told what: keys or digest prefixes, --damaged, or --all");
    return exit_usage;
  }
  if (arguments.all && !arguments.selectors.empty()) {
    complain("rm takes either --all or names, not both");
    return exit_usage;
  }
  std::vector<ListedEntry> entries;
  if (const ExitCode code = load_entries(arguments, entries, Cubins::drop); code != exit_done) return code;

  std::set<std::string> paths;
  for (const ListedEntry& listed : entries) {
    if (arguments.all || (arguments.damaged && state_of(listed) == EntryState::damaged)) paths.insert(listed.path);
  }
  for (const std::string& selector : arguments.selectors) {
    std::vector<const ListedEntry*> selected;
    if (const ExitCode code = select_entries(entries, selector, selected); code != exit_done) return code;
    for (const ListedEntry* listed : selected) paths.insert(listed->path);
  }

  const std::string root = choose_cache_folder(arguments).path;
  const EntryGuard guard = guard_of_root(root);
  nlohmann::ordered_json removed = nlohmann::ordered_json::array(), failed = nlohmann::ordered_json::array();
  for (const std::string& path : paths) {
    if (const Status status = remove_entry_file(root, path, guard); !status) {
      failed.push_back({{"path", path}, {"problem", status.message()}});
      complain(status.message());
      continue;
    }
    removed.push_back(path);
    if (!arguments.json) tell("removed {}\n", path);
  }
  if (arguments.json) {
    print_json({{"removed", removed}, {"failed", failed}});
  } else {
    tell("{} entries removed\n", removed.size());
  }
  return failed.empty() ? exit_done : exit_cache_not_writable;
}

}  // namespace gemvjit::tools
