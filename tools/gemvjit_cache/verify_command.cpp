// gemvjit-cache verify: whether every file is one whole entry under its own name.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tools/gemvjit_cache/cache_folder.h"
#include "tools/gemvjit_cache/entry_facts.h"

namespace gemvjit::tools {

ExitCode verify_entries(const CacheArguments& arguments) {
  std::vector<ListedEntry> entries;
  if (const ExitCode code = load_entries(arguments, entries); code != exit_done) return code;
  std::size_t whole = 0;
  nlohmann::ordered_json damaged = nlohmann::ordered_json::array();
  for (const ListedEntry& listed : entries) {
    if (listed.entry) {
      ++whole;
      continue;
    }
    damaged.push_back(problem_json(listed));
    if (!arguments.json) fmt::print("DAMAGED {}: {}\n", listed.path, listed.problem.message());
  }
  if (arguments.json) {
    print_json({{"cache_dir", choose_cache_folder(arguments).path},
                {"checked", entries.size()},
                {"whole", whole},
                {"damaged", damaged}});
  } else {
    fmt::print("{} entries checked, {} whole, {} damaged{}\n", entries.size(), whole, damaged.size(),
               damaged.empty() ? "" : "; gemvjit-cache rm --damaged removes them");
  }
  return damaged.empty() ? exit_done : exit_entry_damaged;
}

}  // namespace gemvjit::tools
