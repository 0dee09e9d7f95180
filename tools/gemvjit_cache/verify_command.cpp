// gemvjit-cache verify: whether every file is one whole entry under its own name; --deep looks into the layers, too,
// and --repair removes what is damaged in the cache folder.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tools/cache_view/cache_refusal.h"
#include "tools/gemvjit_cache/cache_folder.h"
#include "tools/gemvjit_cache/entry_facts.h"
#include "tools/gemvjit_cache/signers.h"
#include "tools/gemvjit_cache/verify_deep.h"

namespace gemvjit::tools {
namespace {

using nlohmann::ordered_json;

struct Repair {
  ordered_json removed = ordered_json::array(), failed = ordered_json::array();
};

// What is unreadable may be whole, and stays.
Repair remove_damaged(const std::string& root, const std::vector<ListedEntry>& entries, bool print) {
  Repair repair;
  const EntryGuard guard = guard_of_root(root);
  for (const ListedEntry& listed : entries) {
    if (state_of(listed) != EntryState::damaged) continue;
    if (const Status status = remove_entry_file(root, listed.path, guard); !status) {
      repair.failed.push_back({{"path", listed.path}, {"problem", status.message()}});
      complain(status.message());
      continue;
    }
    repair.removed.push_back(listed.path);
    if (print) tell("removed {}\n", listed.path);
  }
  return repair;
}

}  // namespace

ExitCode verify_entries(const CacheArguments& arguments) {
  std::shared_ptr<const Signatures> signatures;
  if (const ExitCode code = open_signatures(arguments, signatures); code != exit_done) return code;
  std::vector<ListedEntry> entries;
  if (const ExitCode code = load_entries(arguments, entries); code != exit_done) return code;
  const EntryCounts counts = count_states(entries);
  ordered_json damaged = ordered_json::array(), unreadable = damaged;
  bool removable = false;
  for (const ListedEntry& listed : entries) {
    if (listed.entry) continue;
    const bool is_damaged = state_of(listed) == EntryState::damaged;
    const std::string note = removal_note(listed);
    removable = removable || (is_damaged && note.empty());
    (is_damaged ? damaged : unreadable).push_back(problem_json(listed));
    if (!arguments.json) {
      print_state(is_damaged ? "DAMAGED" : "UNREADABLE", is_damaged ? Paint::bad : Paint::warning,
                  fmt::format(" {}{}\n", named_problem(listed.path, listed.problem.message()), note));
    }
  }
  ordered_json document{{"cache_dir", choose_cache_folder(arguments).path},
                        {"checked", entries.size()},
                        {"whole", counts.whole},
                        {"damaged", damaged},
                        {"unreadable", unreadable}};
  const std::size_t not_trusted = report_signatures(entries, *signatures, !arguments.json, document);
  DeepResult deep;
  Repair repair;
  if (arguments.deep) deep = verify_layers(entries, *signatures, !arguments.json, document);
  if (arguments.repair) {
    repair = remove_damaged(choose_cache_folder(arguments).path, entries, !arguments.json);
    document["removed"] = repair.removed;
    document["failed"] = repair.failed;
  }
  if (arguments.json) {
    print_json(document);
  } else {
    tell("{} entries checked, {} whole, {} damaged, {} unreadable{}\n", entries.size(), counts.whole, counts.damaged,
         counts.unreadable, removable && !arguments.repair ? "; gemvjit-cache rm --damaged removes damaged files" : "");
  }
  if (counts.damaged - repair.removed.size() + deep.damaged + deep.differing > 0) return exit_entry_damaged;
  if (not_trusted + deep.not_trusted > 0) return exit_not_trusted;
  return counts.unreadable + deep.unreadable > 0 ? exit_environment : exit_done;
}

}  // namespace gemvjit::tools
