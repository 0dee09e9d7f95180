// gemvjit-cache stats: how much there is, by target and family.
#include <fmt/format.h>

#include <ctime>
#include <nlohmann/json.hpp>
#include <set>

#include "cache/quarantine.h"
#include "cache/usage_ledger.h"
#include "tools/common/human_units.h"
#include "tools/common/table.h"
#include "tools/gemvjit_cache/cache_folder.h"
#include "tools/gemvjit_cache/entry_facts.h"
#include "tools/gemvjit_cache/prometheus.h"

namespace gemvjit::tools {
namespace {

void add(EntryGroup& group, const EntryFacts& facts) {
  ++group.entries;
  group.bytes += facts.file_bytes;
  if (facts.build) group.compile_ms += facts.build->milliseconds;
}

nlohmann::ordered_json group_json(const EntryGroup& group) {
  return {{"entries", group.entries}, {"bytes", group.bytes}, {"compile_ms", group.compile_ms}};
}

constexpr std::int64_t recent_seconds = 600;

FolderHistory history_of(const std::string& root) {
  FolderHistory history;
  history.quarantine = quarantine_content(root);
  const std::int64_t now = std::time(nullptr);
  history.recent_evictions = UsageLedger(root).read().evictions_since(now - recent_seconds);
  return history;
}

}  // namespace

ExitCode show_stats(const CacheArguments& arguments) {
  if (arguments.prometheus && arguments.json) {
    complain("stats takes either --prometheus or --json, not both");
    return exit_usage;
  }
  std::vector<ListedEntry> entries;
  if (const ExitCode code = load_entries(arguments, entries, Cubins::drop); code != exit_done) return code;
  EntryGroup all;
  EntryGroups groups;
  std::set<std::string> compilers;
  const std::string folder = choose_cache_folder(arguments).path;
  const BuildRecords records = BuildRecords::read(folder);
  for (const ListedEntry& listed : entries) {
    if (!listed.entry) continue;
    const EntryFacts facts = entry_facts(listed, records);
    add(all, facts);
    add(groups[{facts.arch, facts.family}], facts);
    compilers.insert(facts.compiler);
  }
  const EntryCounts counts = count_states(entries);
  const FolderHistory history = history_of(folder);
  if (arguments.prometheus) {
    fmt::print("{}", prometheus_text(groups, counts, history));
    return exit_done;
  }
  if (arguments.json) {
    nlohmann::ordered_json document{{"cache_dir", folder}};
    document.update(group_json(all));
    document["damaged"] = counts.damaged;
    document["unreadable"] = counts.unreadable;
    document["quarantine_files"] = history.quarantine.files;
    document["quarantine_bytes"] = history.quarantine.bytes;
    document["recent_evictions"] = history.recent_evictions;
    document["compilers"] = compilers;
    document["groups"] = nlohmann::ordered_json::array();
    for (const auto& [name, group] : groups) {
      nlohmann::ordered_json row{{"arch", name.first}, {"family", name.second}};
      row.update(group_json(group));
      document["groups"].push_back(row);
    }
    print_json(document);
    return exit_done;
  }
  using Align = Table::Align;
  Table table({{"ARCH"},
               {"FAMILY"},
               {"ENTRIES", Align::right},
               {"SIZE", Align::right},
               {.title = "COMPILE", .align = Align::right, .can_drop = true}});
  const auto row = [&](const std::string& arch, const std::string& family, const EntryGroup& group) {
    table.add_row({arch, family, std::to_string(group.entries), human_bytes(group.bytes),
                   group.compile_ms == 0 ? "unknown" : human_seconds(static_cast<double>(group.compile_ms) / 1000)});
  };
  for (const auto& [name, group] : groups) row(name.first, name.second, group);
  row("all", "", all);
  tell("cache {}\n", folder);
  print_table(table);
  tell("damaged {}, unreadable {}\nin quarantine {} ({}), evicted in the last ten minutes {}\n", counts.damaged,
       counts.unreadable, history.quarantine.files, human_bytes(history.quarantine.bytes), history.recent_evictions);
  for (const std::string& compiler : compilers) tell("compiled by {}\n", compiler);
  return exit_done;
}

}  // namespace gemvjit::tools
