// gemvjit-cache ls: one line an entry.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tools/common/human_units.h"
#include "tools/common/table.h"
#include "tools/gemvjit_cache/cache_folder.h"
#include "tools/gemvjit_cache/entry_facts.h"

namespace gemvjit::tools {
namespace {

void print_entries(const std::vector<ListedEntry>& entries, const BuildRecords& records) {
  using Align = Table::Align;
  Table table({Table::Column{.title = "KEY", .can_shorten = true},
               {"FAMILY"},
               {.title = "DIGEST", .can_drop = true},
               {"SIZE", Align::right},
               {.title = "REGS", .align = Align::right, .can_drop = true},
               {.title = "SMEM", .align = Align::right, .can_drop = true},
               {.title = "SPILL", .align = Align::right, .can_drop = true},
               {.title = "COMPILE", .align = Align::right, .can_drop = true},
               {"AGE", Align::right}});
  std::uint64_t bytes = 0;
  for (const ListedEntry& listed : entries) {
    bytes += listed.file_bytes;
    if (!listed.entry) continue;
    const EntryFacts facts = entry_facts(listed, records);
    table.add_row({facts.key, facts.family, facts.digest.substr(0, 12), human_bytes(facts.file_bytes),
                   std::to_string(facts.resources.registers), human_bytes(facts.smem_bytes()),
                   human_bytes(facts.spill_bytes()), compile_time_text(facts), age_text(facts)});
  }
  if (!table.empty()) print_table(table);
  for (const ListedEntry& listed : entries) {
    if (listed.entry) continue;
    const bool is_damaged = state_of(listed) == EntryState::damaged;
    print_state(is_damaged ? "DAMAGED" : "UNREADABLE", is_damaged ? Paint::bad : Paint::warning,
                fmt::format(" {}\n", named_problem(listed.path, listed.problem.message())));
  }
  const EntryCounts counts = count_states(entries);
  tell("{} entries, {} damaged, {} unreadable, {}\n", counts.whole, counts.damaged, counts.unreadable,
       human_bytes(bytes));
}

}  // namespace

ExitCode list_entries(const CacheArguments& arguments) {
  std::vector<ListedEntry> entries;
  if (const ExitCode code = load_entries(arguments, entries); code != exit_done) return code;
  const std::string folder = choose_cache_folder(arguments).path;
  const BuildRecords records = BuildRecords::read(folder);
  if (!arguments.json) {
    print_entries(entries, records);
    return exit_done;
  }
  nlohmann::ordered_json document{{"cache_dir", folder},
                                  {"entries", nlohmann::ordered_json::array()},
                                  {"damaged", nlohmann::ordered_json::array()},
                                  {"unreadable", nlohmann::ordered_json::array()}};
  for (const ListedEntry& listed : entries) {
    if (listed.entry) {
      document["entries"].push_back(entry_json(entry_facts(listed, records)));
    } else {
      document[state_of(listed) == EntryState::damaged ? "damaged" : "unreadable"].push_back(problem_json(listed));
    }
  }
  print_json(document);
  return exit_done;
}

}  // namespace gemvjit::tools
