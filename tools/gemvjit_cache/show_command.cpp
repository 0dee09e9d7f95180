// gemvjit-cache show: everything about one key or digest.
#include <fmt/format.h>

#include <ctime>
#include <nlohmann/json.hpp>

#include "tools/common/human_units.h"
#include "tools/gemvjit_cache/cache_folder.h"
#include "tools/gemvjit_cache/entry_facts.h"
#include "tools/gemvjit_cache/signers.h"

namespace gemvjit::tools {
namespace {

std::string utc_time(std::int64_t unix_seconds) {
  const auto time = static_cast<std::time_t>(unix_seconds);
  std::tm parts{};
  char text[32] = "";
  if (::gmtime_r(&time, &parts) == nullptr || std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &parts) == 0) {
    return fmt::format("{} s after 1970", unix_seconds);
  }
  return text;
}

void print_facts(const EntryFacts& facts, const SignatureFacts& signature) {
  const auto line = [](const char* name, const std::string& value) { tell("{:<18} {}\n", name, value); };
  line("key", facts.key);
  line("digest", facts.digest);
  line("family", facts.family);
  line("flags", facts.flags_text);
  line("arch", facts.arch);
  line("entry name", facts.entry_name);
  line("compiler", facts.compiler);
  line("compile time", compile_time_text(facts));
  line("created", facts.build ? fmt::format("{} ({} ago)", utc_time(facts.build->when), age_text(facts)) : "unknown");
  line("registers", std::to_string(facts.resources.registers));
  if (facts.launch) {
    line("shared memory",
         fmt::format("{} bytes static, {} dynamic", facts.resources.static_smem_bytes, facts.launch->smem_bytes));
    line("launch", fmt::format("grid {}, block {}, cluster {}", facts.launch->grid_x, facts.launch->block_x,
                               facts.launch->cluster_x));
  } else {
    line("shared memory", fmt::format("{} bytes static", facts.resources.static_smem_bytes));
    line("launch", "unknown: this version makes no such key");
  }
  line("spills", fmt::format("{} bytes stored, {} loaded, stack {}", facts.resources.spill_store_bytes,
                             facts.resources.spill_load_bytes, facts.resources.stack_bytes));
  line("waits (PDL)", facts.waits_for_predecessor ? "yes" : "no");
  line("size", fmt::format("{} file, {} cubin", human_bytes(facts.file_bytes), human_bytes(facts.cubin_bytes)));
  line("signature", signature.text());
  line("path", facts.path);
}

}  // namespace

ExitCode show_entry(const CacheArguments& arguments) {
  std::shared_ptr<const Signatures> signatures;
  if (const ExitCode code = open_signatures(arguments, signatures); code != exit_done) return code;
  std::vector<ListedEntry> entries;
  if (const ExitCode code = load_entries(arguments, entries); code != exit_done) return code;
  std::vector<const ListedEntry*> selected;
  if (const ExitCode code = select_entries(entries, arguments.selectors.front(), selected); code != exit_done) {
    return code;
  }
  const BuildRecords records = BuildRecords::read(choose_cache_folder(arguments).path);
  if (arguments.json) {
    nlohmann::ordered_json document{{"entries", nlohmann::ordered_json::array()}};
    for (const ListedEntry* listed : selected) {
      nlohmann::ordered_json entry = entry_json(entry_facts(*listed, records));
      entry["signature"] = signature_json(signatures->examine(*listed->entry));
      document["entries"].push_back(std::move(entry));
    }
    print_json(document);
    return exit_done;
  }
  for (const ListedEntry* listed : selected) {
    if (listed != selected.front()) tell("\n");
    print_facts(entry_facts(*listed, records), signatures->examine(*listed->entry));
  }
  return exit_done;
}

}  // namespace gemvjit::tools
