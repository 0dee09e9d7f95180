// gemvjit-cache stats: how much there is, by target and family.
#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "tools/common/human_units.h"
#include "tools/common/table.h"
#include "tools/gemvjit_cache/cache_folder.h"
#include "tools/gemvjit_cache/entry_facts.h"

namespace gemvjit::tools {
namespace {

struct Group {
  std::size_t entries = 0;
  std::uint64_t bytes = 0, compile_ms = 0;
  void add(const EntryFacts& facts) {
    ++entries;
    bytes += facts.file_bytes;
    compile_ms += facts.compile_ms;
  }
};

nlohmann::ordered_json group_json(const Group& group) {
  return {{"entries", group.entries}, {"bytes", group.bytes}, {"compile_ms", group.compile_ms}};
}

}  // namespace

ExitCode show_stats(const CacheArguments& arguments) {
  std::vector<ListedEntry> entries;
  if (const ExitCode code = load_entries(arguments, entries); code != exit_done) return code;
  Group all;
  std::map<std::pair<std::string, std::string>, Group> groups;  // by arch and family
  std::set<std::string> compilers;
  for (const ListedEntry& listed : entries) {
    if (!listed.entry) continue;
    const EntryFacts facts = entry_facts(listed);
    all.add(facts);
    groups[{facts.arch, facts.family}].add(facts);
    compilers.insert(facts.compiler);
  }
  const EntryCounts counts = count_states(entries);
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
  const auto row = [&](const std::string& arch, const std::string& family, const Group& group) {
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
