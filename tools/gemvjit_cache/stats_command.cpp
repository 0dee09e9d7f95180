// gemvjit-cache stats: how much there is, by target and family.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>

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
  group.compile_ms += facts.compile_ms;
}

nlohmann::ordered_json group_json(const EntryGroup& group) {
  return {{"entries", group.entries}, {"bytes", group.bytes}, {"compile_ms", group.compile_ms}};
}

}  // namespace

ExitCode show_stats(const CacheArguments& arguments) {
  if (arguments.prometheus && arguments.json) {
    complain("stats takes either --prometheus or --json, not both");
    return exit_usage;
  }
  std::vector<ListedEntry> entries;
  if (const ExitCode code = load_entries(arguments, entries); code != exit_done) return code;
  EntryGroup all;
  EntryGroups groups;
  std::set<std::string> compilers;
  for (const ListedEntry& listed : entries) {
    if (!listed.entry) continue;
    const EntryFacts facts = entry_facts(listed);
    add(all, facts);
    add(groups[{facts.arch, facts.family}], facts);
    compilers.insert(facts.compiler);
  }
  const EntryCounts counts = count_states(entries);
  if (arguments.prometheus) {
    fmt::print("{}", prometheus_text(groups, counts));
    return exit_done;
  }
  const std::string folder = choose_cache_folder(arguments).path;
  if (arguments.json) {
    nlohmann::ordered_json document{{"cache_dir", folder}};
    document.update(group_json(all));
    document["damaged"] = counts.damaged;
    document["unreadable"] = counts.unreadable;
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
  Table table({{"ARCH"}, {"FAMILY"}, {"ENTRIES", Align::right}, {"SIZE", Align::right}, {"COMPILE", Align::right}});
  const auto row = [&](const std::string& arch, const std::string& family, const EntryGroup& group) {
    table.add_row({arch, family, std::to_string(group.entries), human_bytes(group.bytes),
                   human_seconds(static_cast<double>(group.compile_ms) / 1000)});
  };
  for (const auto& [name, group] : groups) row(name.first, name.second, group);
  row("all", "", all);
  fmt::print("cache {}\n{}damaged {}, unreadable {}\n", folder, table.text(), counts.damaged, counts.unreadable);
  for (const std::string& compiler : compilers) fmt::print("compiled by {}\n", compiler);
  return exit_done;
}

}  // namespace gemvjit::tools
