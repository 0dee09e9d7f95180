// gemvjit-cache verify: whether every file is one whole entry under its own name.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tools/gemvjit_cache/cache_folder.h"
#include "tools/gemvjit_cache/entry_facts.h"

namespace gemvjit::tools {

ExitCode verify_entries(const CacheArguments& arguments) {
  std::vector<ListedEntry> entries;
  if (const ExitCode code = load_entries(arguments, entries); code != exit_done) return code;
  const EntryCounts counts = count_states(entries);
  nlohmann::ordered_json damaged = nlohmann::ordered_json::array(), unreadable = damaged;
  bool removable = false;
  for (const ListedEntry& listed : entries) {
    if (listed.entry) continue;
    const bool is_damaged = state_of(listed) == EntryState::damaged;
    const std::string note = removal_note(listed);
    removable = removable || (is_damaged && note.empty());
    (is_damaged ? damaged : unreadable).push_back(problem_json(listed));
    if (!arguments.json) {
      fmt::print("{} {}: {}{}\n", is_damaged ? "DAMAGED" : "UNREADABLE", listed.path, listed.problem.message(), note);
    }
  }
  if (arguments.json) {
    print_json({{"cache_dir", choose_cache_folder(arguments).path},
                {"checked", entries.size()},
                {"whole", counts.whole},
                {"damaged", damaged},
                {"unreadable", unreadable}});
  } else {
    fmt::print("{} entries checked, {} whole, {} damaged, {} unreadable{}\n", entries.size(), counts.whole,
               counts.damaged, counts.unreadable,
               removable ? "; gemvjit-cache rm --damaged removes damaged files" : "");
  }
  if (counts.damaged > 0) return exit_entry_damaged;
  return counts.unreadable > 0 ? exit_environment : exit_done;
}

}  // namespace gemvjit::tools
